"""Helpers of the metrics: rows of positive weight, positives per class, and means over classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def counting(probability: Floats, label: Integers, weight: Floats) -> tuple[Floats, Integers, Floats]:
    """Return the rows of positive weight. Raise ValueError if shapes do not fit."""
    refuse_other_shapes(probability, label, weight)
    counts = weight > 0
    return probability[counts], label[counts], weight[counts]


def positives(label: Integers, classes: int) -> Flags:
    """Return whether each row is of each class (n, class). Raise ValueError for a label that is no class."""
    largest = classes - 1 if label.ndim == 1 else 1
    if label.size and (label.min() < 0 or label.max() > largest):
        raise ValueError(f"the metric got labels from {label.min()} to {label.max()}, expected 0 to {largest}")
    positive: Flags = label == 1 if label.ndim == 2 else label[:, None] == np.arange(classes)
    return positive


def per_class(
    of_class: Callable[[Floats, Flags, Floats], float], probability: Floats, label: Integers, weight: Floats
) -> Floats:
    """Compute a value per class (class,) from its scores, flags and weights (n,), without rows of weight 0."""
    probability, label, weight = counting(probability, label, weight)
    positive = positives(label, probability.shape[1])  # (n, class)
    return np.array([of_class(score, of, weight) for score, of in zip(probability.T, positive.T, strict=True)])


def mean_of_classes(values: Floats, probability: Floats, weight: Floats) -> float:
    """Average the classes that have a value; NaN if none has, or if a row of positive weight predicts NaN."""
    defined = values[~np.isnan(values)]
    if defined.size == 0 or np.isnan(probability[weight > 0]).any():
        return float("nan")
    return float(defined.mean())


def mean_over_classes(values: Floats) -> Floats:
    """Average the classes that have a value (draw,); NaN where none has. values: (draw, class)."""
    there = ~np.isnan(values)
    count = there.sum(1)
    mean = np.full(len(values), np.nan)
    np.divide(np.where(there, values, 0).sum(1), count, out=mean, where=count > 0)
    return mean


def nan_where_missing(found: Floats, missing: Floats) -> Floats:
    """Set a draw to NaN if it has a row without a prediction. missing: the weights of such rows (draw, row)."""
    return np.where((missing > 0).any(1), np.nan, found)


def refuse_other_shapes(probability: Floats, label: Integers, weight: Any) -> None:
    """Raise ValueError if shapes do not fit."""
    rows = len(probability)
    if probability.ndim != 2 or weight.shape != (rows,) or label.shape not in ((rows,), probability.shape):
        raise ValueError(
            f"the metric got probability {probability.shape}, label {label.shape} and weight {tuple(weight.shape)}; "
            "expected (n, class), then (n,) or (n, class), then (n,)"
        )
