"""Scores of class probabilities against labels, with a weight per row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["auroc_per_class", "macro_auroc"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def macro_auroc(probability: Floats, label: Integers, weight: Floats) -> float:
    """The mean over classes of the AUROC of one class against the rest. Arguments as for `auroc_per_class`.

    A class without a positive or without a negative of positive weight has no AUROC and is left out of the mean;
    the others keep their own columns. NaN where no class has one, or where a row that counts predicts NaN.
    """
    area = auroc_per_class(probability, label, weight)
    defined = area[~np.isnan(area)]
    if defined.size == 0 or np.isnan(probability[weight > 0]).any():
        return float("nan")
    return float(defined.mean())


def auroc_per_class(probability: Floats, label: Integers, weight: Floats) -> Floats:
    """The share of (positive, negative) pairs that each class's column ranks right, ties counted half: (class,).

    probability: (n, class), any scores that rise with the class. label: (n,) classes, or (n, class) of 0 and 1.
    weight: (n,), how often each row counts; a row of weight 0 is not looked at.
    NaN for a class that lacks positives or negatives. Raises ValueError where shapes or labels do not fit.
    """
    _refuse_other_shapes(probability, label, weight)
    counts = weight > 0
    probability, label, weight = probability[counts], label[counts], weight[counts]
    positive = _positives(label, probability.shape[1])  # (n, class)
    return np.array([_area(score, of, weight) for score, of in zip(probability.T, positive.T, strict=True)])


def _area(score: Floats, positive: Flags, weight: Floats) -> float:
    """The area of one class: scores, flags and weights (n,); n log n in time, for the sorting."""
    if positive.all() or not positive.any():
        return float("nan")
    order = np.argsort(score)
    score, weight = score[order], weight[order]
    up = np.where(positive[order], weight, 0.0)
    ends = np.append(np.flatnonzero(score[1:] != score[:-1]), len(score) - 1)  # the last place of each tie
    ups = np.cumsum(up)[ends]  # (tie,): positives up to and including it
    downs = np.cumsum(weight - up)[ends]
    tied_up, below = np.diff(ups, prepend=0.0), np.concatenate([[0.0], downs[:-1]])
    # A positive beats the negatives below its tie and half of those in it: the mean of `below` and `downs`.
    return float((tied_up * (below + downs)).sum() / (2 * ups[-1] * downs[-1]))


def _positives(label: Integers, classes: int) -> Flags:
    """Which rows are of which class, (n, class)."""
    largest = classes - 1 if label.ndim == 1 else 1
    if label.size and (label.min() < 0 or label.max() > largest):
        raise ValueError(f"auroc got labels from {label.min()} to {label.max()}, expected 0 to {largest}")
    positive: Flags = label == 1 if label.ndim == 2 else label[:, None] == np.arange(classes)
    return positive


def _refuse_other_shapes(probability: Floats, label: Integers, weight: Floats) -> None:
    rows = len(probability)
    if probability.ndim != 2 or weight.shape != (rows,) or label.shape not in ((rows,), probability.shape):
        raise ValueError(
            f"auroc got probability {probability.shape}, label {label.shape} and weight {weight.shape}; "
            "expected (n, class), then (n,) or (n, class), then (n,)"
        )
