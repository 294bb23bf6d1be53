"""Intervals by bootstrap over patients: whole patients are drawn with replacement, with all their rows.

Frames of one patient are not independent, so resampling frames would give intervals that are far too narrow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.artifacts.predictions import Predictions

Floats = NDArray[np.float64]
ScoreFunction = Callable[[Floats, NDArray[Any], Floats], float]
DrawFunction = Callable[[Floats, NDArray[Any], Floats], Floats]


_AT_ONCE = 2**24  # numbers per block of draws: 128 MB


@attrs.frozen
class Interval:
    """A value with its central 95 % interval. `draws`: the values of all bootstrap samples, in order."""

    value: float
    low: float
    high: float
    draws: NDArray[np.float64] = attrs.field(eq=False, repr=False)


def bootstrap(
    predictions: Predictions, score: ScoreFunction, resamples: int, seed: int, score_draws: DrawFunction | None = None
) -> Interval:
    """Score the predictions, and score them again on `resamples` draws of the patients.

    score_draws: scores many draws at once, if the metric has it.

    The draws depend on the seed and the number of patients alone. So two sets of predictions of the same test
    patients get the same draws, and `compare` can pair them.
    """
    rows = predictions.probability, predictions.label
    value = score(*rows, np.ones(len(predictions.patient)))
    drawn, number = _draw(predictions.patient, resamples, seed)
    if score_draws is None or not resamples:
        return cut_interval(value, np.array([score(*rows, one[number].astype(np.float64)) for one in drawn]))
    size = max(1, _AT_ONCE // len(number))
    blocks = (drawn[at : at + size, number].astype(np.float64) for at in range(0, resamples, size))  # (draw, n)
    return cut_interval(value, np.concatenate([score_draws(*rows, block) for block in blocks]))


def compare(a: Interval, b: Interval) -> Interval:
    """Return the difference a - b, paired draw by draw: both have the same patients in each draw."""
    return cut_interval(a.value - b.value, a.draws - b.draws)


def cut_interval(value: float, draws: NDArray[np.float64]) -> Interval:
    """Cut the central 95 % out of draws."""
    defined = draws[np.isfinite(draws)]  # a draw without any class to score is NaN
    low, high = np.percentile(defined, [2.5, 97.5]) if len(defined) else (np.nan, np.nan)
    return Interval(float(value), float(low), float(high), draws)


def _draw(patient: NDArray[np.int64], resamples: int, seed: int) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """Return how often each draw has each patient (draw, patient), and the patient's number of each row (n,)."""
    _, number = np.unique(patient, return_inverse=True)
    patients = int(number.max()) + 1
    rng = np.random.default_rng(seed)
    drawn = np.zeros((resamples, patients), dtype=np.uint16)
    for one in drawn:
        one[:] = np.bincount(rng.integers(0, patients, patients), minlength=patients)
    return drawn, number
