"""Intervals by bootstrap over patients: whole patients are drawn with replacement, with all their rows.

Frames of one patient are not independent, so resampling frames would give intervals that are far too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.result_offers import Metric
from clocs_core.data.memory import within_memory
from clocs_core.evaluation.metric_scores import score_draws, score_once, score_tensors

Floats = NDArray[np.float64]
Limits: TypeAlias = tuple[float, float]
NO_LIMITS: Limits = (-math.inf, math.inf)
ScoreFunction = Callable[[Floats, NDArray[Any], Floats], float]

_AT_ONCE = 2**24  # numbers per block of draws: 128 MB
_AT_ONCE_ON_GPU = 2**27  # 1 GB


@attrs.frozen
class Interval:
    """A value with its central 95 % interval. `draws`: the values of all bootstrap samples, in order.

    limits: the least and the largest value that there can be.
    """

    value: float
    low: float
    high: float
    draws: NDArray[np.float64] = attrs.field(eq=False, repr=False)
    limits: Limits = NO_LIMITS


def bootstrap(
    predictions: Predictions, metric: Metric, resamples: int, seed: int, device: torch.device | None = None
) -> Interval:
    """Score the predictions, and score them again on `resamples` draws of the patients.

    device: where to compute, for a metric that can; default: the CPU.

    The draws depend on the seed and the number of patients alone. So two sets of predictions of the same test
    patients get the same draws, and `compare` can pair them.
    """
    return bootstrap_all(predictions, (metric,), resamples, seed, device)[0]


def bootstrap_all(
    predictions: Predictions,
    metrics: Sequence[Metric],
    resamples: int,
    seed: int,
    device: torch.device | None = None,
) -> list[Interval]:
    """Bootstrap each metric, on the same draws. Arguments as in `bootstrap`."""
    patients, number = np.unique(predictions.patient, return_inverse=True)
    rows = predictions.probability, predictions.label, np.ones(len(number))
    drawn = score_groups(predictions, metrics, _draw(len(patients), resamples, seed), number, device)
    return [
        cut_interval(score_once(metric, *rows), draws, metric.limits)
        for metric, draws in zip(metrics, drawn, strict=True)
    ]


def score_groups(
    predictions: Predictions,
    metrics: Sequence[Metric],
    drawn: NDArray[np.uint16],
    group: NDArray[np.int64],
    device: torch.device | None = None,
) -> list[Floats]:
    """Score the rows once for each draw: (draw,) for each metric.

    drawn: how often each group counts, (draw, group). group: of each row. device: as in `bootstrap`.
    Weights of rows are made once for all metrics: making them takes as long as a quick metric.
    """
    rows, found = (predictions.probability, predictions.label), dict.fromkeys(range(len(metrics)), np.empty(0))
    on_gpu = device is not None and device.type != "cpu"
    by_tensor = {at: one for at, one in enumerate(metrics) if on_gpu and one.score_tensors}
    if by_tensor and len(drawn):
        assert device is not None
        found |= zip(by_tensor, _score_on(device, list(by_tensor.values()), rows, drawn, group), strict=True)
    by_block = {at: one for at, one in enumerate(metrics) if at not in by_tensor and one.score_draws}
    if by_block and len(drawn):
        parts = [[score_draws(one, *rows, block) for one in by_block.values()] for block in _in_blocks(drawn, group)]
        found |= zip(by_block, (np.concatenate(one) for one in zip(*parts, strict=True)), strict=True)
    for at, metric in enumerate(metrics):
        if at not in by_tensor and at not in by_block:
            found[at] = np.array([score_once(metric, *rows, one[group].astype(np.float64)) for one in drawn])
    return list(found.values())


def draw_weights(patient: NDArray[np.int64], resamples: int, seed: int) -> Iterator[Floats]:
    """Yield how often each row counts in each draw of the patients, as blocks (draw, n). patient: of each row (n,)."""
    patients, number = np.unique(patient, return_inverse=True)
    return _in_blocks(_draw(len(patients), resamples, seed), number)


def draw_weights_on(
    device: torch.device, patient: NDArray[np.int64], resamples: int, seed: int, share: float = 1.0
) -> Iterator[Tensor]:
    """Yield what `draw_weights` does, as tensors on a device. share: how large blocks are, of the usual size."""
    patients, number = np.unique(patient, return_inverse=True)
    return _blocks_on(device, _draw(len(patients), resamples, seed), number, int(share * _AT_ONCE))


def _blocks_on(
    device: torch.device, drawn: NDArray[np.uint16], group: NDArray[np.int64], at_once: int
) -> Iterator[Tensor]:
    """Yield the weights of rows (draw, n), at most so many `at_once`."""
    counts = torch.from_numpy(drawn).to(device).to(torch.int32).T  # (group, draw)
    rows = torch.from_numpy(group).to(device)
    for some in counts.split(max(1, at_once // len(group)), dim=1):
        yield some[rows].double().T


def _in_blocks(drawn: NDArray[np.uint16], group: NDArray[np.int64]) -> Iterator[Floats]:
    size = max(1, _AT_ONCE // len(group))
    for at in range(0, len(drawn), size):
        yield drawn[at : at + size, group].astype(np.float64)  # (draw, n)


def _score_on(
    device: torch.device,
    metrics: Sequence[Metric],
    rows: tuple[Floats, NDArray[np.int64]],
    drawn: NDArray[np.uint16],
    number: NDArray[np.int64],
) -> list[Floats]:
    """Score all draws on a GPU; in smaller blocks, or on the CPU, where its memory does not suffice."""

    def compute(where: torch.device, share: float) -> list[Floats]:
        probability, label = (torch.tensor(one, device=where) for one in rows)
        most = _AT_ONCE if where.type == "cpu" else _AT_ONCE_ON_GPU
        parts = [
            [score_tensors(metric, probability, label, weights).cpu() for metric in metrics]
            for weights in _blocks_on(where, drawn, number, int(share * most))
        ]
        return [torch.cat(one).numpy() for one in zip(*parts, strict=True)]

    return within_memory(compute, device)


def compare(a: Interval, b: Interval) -> Interval:
    """Return the difference a - b, paired draw by draw: both have the same patients in each draw."""
    return cut_interval(a.value - b.value, a.draws - b.draws, limits_of_difference(a.limits, b.limits))


def limits_of_difference(a: Limits, b: Limits) -> Limits:
    """Return the least and the largest difference a - b that there can be."""
    return a[0] - b[1], a[1] - b[0]


def cut_interval(value: float, draws: NDArray[np.float64], limits: Limits = NO_LIMITS) -> Interval:
    """Cut the central 95 % out of draws."""
    defined = draws[np.isfinite(draws)]  # a draw without any class to score is NaN
    low, high = np.percentile(defined, [2.5, 97.5]) if len(defined) else (np.nan, np.nan)
    return Interval(float(value), float(low), float(high), draws, limits)


@lru_cache(maxsize=1)  # all scores of an evaluation have the same draws
def _draw(patients: int, resamples: int, seed: int) -> NDArray[np.uint16]:
    """Return how often each draw has each patient (draw, patient). Do not change it: it is kept."""
    rng = np.random.default_rng(seed)
    drawn = np.zeros((resamples, patients), dtype=np.uint16)
    for one in drawn:
        one[:] = np.bincount(rng.integers(0, patients, patients), minlength=patients)
    return drawn
