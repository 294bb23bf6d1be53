"""AUROC and average precision per class, with a weight per row."""

from __future__ import annotations

import numpy as np

from clocs_plugins.classification.rows import Flags, Floats, Integers, mean_of_classes, per_class


def macro_auroc(probability: Floats, label: Integers, weight: Floats) -> float:
    """Compute the mean over classes of the AUROC of one class against the rest. Arguments as for `auroc_per_class`.

    A class without a positive or without a negative of positive weight has no AUROC and is left out of the mean; the
    others keep their columns. NaN if no class has an AUROC, or if a row of positive weight predicts NaN.
    """
    return mean_of_classes(auroc_per_class(probability, label, weight), probability, weight)


def auroc_per_class(probability: Floats, label: Integers, weight: Floats) -> Floats:
    """Compute the share (class,) of (positive, negative) pairs that each class's column ranks right; ties count half.

    probability: (n, class), any scores that rise with the class. label: (n,) classes, or (n, class) of 0 and 1.
    weight: (n,), how often each row counts; rows of weight 0 are ignored.
    NaN for a class that lacks positives or negatives. Raise ValueError if shapes or labels do not fit.
    """
    return per_class(_area, probability, label, weight)


def macro_auprc(probability: Floats, label: Integers, weight: Floats) -> float:
    """Compute the mean over classes of the average precision of one class against the rest; classes as in AUROC."""
    return mean_of_classes(auprc_per_class(probability, label, weight), probability, weight)


def auprc_per_class(probability: Floats, label: Integers, weight: Floats) -> Floats:
    """Compute the average precision (class,): the precision at every threshold, weighted by the recall it adds.

    There is no interpolation, which would be too optimistic. Chance level is the share of positives, not one half.
    Arguments, NaN and errors as in `auroc_per_class`.
    """
    return per_class(_precision, probability, label, weight)


def _area(score: Floats, positive: Flags, weight: Floats) -> float:
    """Compute the area of one class from scores, flags and weights (n,); O(n log n), for the sorting."""
    if positive.all() or not positive.any():
        return float("nan")
    ups, downs = _counts_up_to_ties(score, positive, weight)
    tied_up, below = np.diff(ups, prepend=0.0), np.concatenate([[0.0], downs[:-1]])
    # A positive beats the negatives below its tie and half of those in it: the mean of `below` and `downs`.
    return float((tied_up * (below + downs)).sum() / (2 * ups[-1] * downs[-1]))


def _precision(score: Floats, positive: Flags, weight: Floats) -> float:
    """Compute the average precision of one class, from the highest score down."""
    if positive.all() or not positive.any():
        return float("nan")
    ups, downs = _counts_up_to_ties(-score, positive, weight)
    return float((np.diff(ups, prepend=0.0) * ups / (ups + downs)).sum() / ups[-1])


def _counts_up_to_ties(score: Floats, positive: Flags, weight: Floats) -> tuple[Floats, Floats]:
    """Count positives and negatives up to and including each tie of scores, in rising order: (tie,) each."""
    order = np.argsort(score)
    score, weight = score[order], weight[order]
    up = np.where(positive[order], weight, 0.0)
    ends = np.append(np.flatnonzero(score[1:] != score[:-1]), len(score) - 1)  # the last place of each tie
    return np.cumsum(up)[ends], np.cumsum(weight - up)[ends]
