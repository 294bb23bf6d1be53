"""Intervals by bootstrap over patients: whole patients are drawn with replacement, with all their rows.

Frames of one patient are not independent, so resampling frames would give intervals that are far too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.evaluate.linear import Predictions

__all__ = ["Interval", "ScoreFunction", "bootstrap", "compare"]

ScoreFunction = Callable[[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]], float]


@attrs.frozen
class Interval:
    """A value with its central 95 % interval. `draws` are the values of all bootstrap samples, in their order."""

    value: float
    low: float
    high: float
    draws: NDArray[np.float64] = attrs.field(eq=False, repr=False)


def bootstrap(predictions: Predictions, score: ScoreFunction, resamples: int, seed: int) -> Interval:
    """Score the predictions, and score them again on `resamples` draws of the patients.

    The draws depend on the seed and the number of patients alone, so that two sets of predictions of the same test
    patients are resampled alike, and `compare` can pair them.
    """
    rows = predictions.probability, predictions.label
    value = score(*rows, np.ones(len(predictions.patient)))
    draws = np.array([score(*rows, weight) for weight in _weights(predictions.patient, resamples, seed)])
    return _interval(value, draws)


def compare(a: Interval, b: Interval) -> Interval:
    """The difference a - b, paired draw by draw: the same patients stand in both."""
    return _interval(a.value - b.value, a.draws - b.draws)


def _interval(value: float, draws: NDArray[np.float64]) -> Interval:
    defined = draws[np.isfinite(draws)]  # a draw without any class to score has no value
    low, high = np.percentile(defined, [2.5, 97.5]) if len(defined) else (np.nan, np.nan)
    return Interval(float(value), float(low), float(high), draws)


def _weights(patient: NDArray[np.int64], resamples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    _, number = np.unique(patient, return_inverse=True)
    patients = int(number.max()) + 1
    rng = np.random.default_rng(seed)
    for _ in range(resamples):
        drawn = np.bincount(rng.integers(0, patients, patients), minlength=patients)
        yield drawn[number].astype(np.float64)
