"""Call the functions of a metric. An error names the metric where one fails, or returns something else than scores.

The arrays are read-only for a metric, and tensors must not be changed: all bootstrap samples, and all other metrics,
read the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clocs_core.contracts.result_offers import Metric
from clocs_core.contracts.returned import broken_promise
from clocs_core.errors import ClocsError, PluginError

Floats = NDArray[np.float64]


def score_once(metric: Metric, probability: Floats, label: NDArray[Any], weight: Floats) -> float:
    """Score rows with one weight each (n,)."""
    found = np.asarray(_call(metric, "score", metric.score, *map(_read_only, (probability, label, weight))))
    if found.shape != () or found.dtype.kind not in "fiu":
        raise _other(metric, "score", "a float, NaN where it is not defined", found)
    return float(found)


def score_draws(metric: Metric, probability: Floats, label: NDArray[Any], weights: Floats) -> Floats:
    """Score bootstrap samples (draw, n) by the metric's own `score_draws`, which it must have: (draw,)."""
    assert metric.score_draws is not None
    arrays = map(_read_only, (probability, label, weights))
    found = np.asarray(_call(metric, "score_draws", metric.score_draws, *arrays))
    if found.shape != (len(weights),) or found.dtype.kind not in "fiu":
        raise _other(metric, "score_draws", f"floats of the shape ({len(weights)},)", found)
    return found.astype(np.float64, copy=False)


def score_tensors(metric: Metric, probability: Tensor, label: Tensor, weights: Tensor) -> Tensor:
    """Score bootstrap samples (draw, n) on their device by the metric's own `score_tensors`, which it must have."""
    assert metric.score_tensors is not None
    given = (probability, label, weights)
    before = [one._version for one in given]  # counts changes in place; asking waits for nothing
    found = _call(metric, "score_tensors", metric.score_tensors, *given)
    if before != [one._version for one in given]:
        raise broken_promise("changes its arguments, which all metrics read", metric, "score_tensors")
    if not isinstance(found, Tensor) or found.shape != (len(weights),) or not found.is_floating_point():
        raise _other(metric, "score_tensors", f"a tensor of floats of the shape ({len(weights)},)", found)
    return found.double()


def _call(metric: Metric, name: str, function: Callable[..., object], *arguments: object) -> Any:
    try:
        return function(*arguments)
    except (ClocsError, torch.OutOfMemoryError):  # with less memory, core asks for smaller blocks
        raise
    except (Exception, SystemExit) as problem:  # code of plugins may raise anything
        raise PluginError(
            f"`{name}` of the metric {metric.name!r} failed: {type(problem).__name__}: {problem}. Its plugin has to be "
            "repaired, or leave the metric out with `metrics=...`."
        ) from problem


def _other(metric: Metric, name: str, promised: str, found: object) -> PluginError:
    shape = getattr(found, "shape", ())
    given = f"{type(found).__name__} of shape {tuple(shape)}" if shape else f"{found!s:.60}"
    return broken_promise(f"must return {promised}, got {given}", metric, name)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
