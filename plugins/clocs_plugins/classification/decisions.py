"""Score decisions by F1 and probabilities by calibration."""

from __future__ import annotations

import numpy as np

from clocs_plugins.classification.rows import Flags, Floats, Integers, counting, mean_of_classes, positives

BINS = 15  # bins of equal width, as in Guo et al., On Calibration of Modern Neural Networks, ICML 2017


def macro_f1(probability: Floats, label: Integers, weight: Floats) -> float:
    """Compute the mean over classes of F1, the harmonic mean of precision and recall.

    In a one-of task the decision is the most probable class (the first of equal ones), in an any-of task every class
    above one half. A class without a positive row of positive weight is left out of the mean. Arguments as for AUROC.
    """
    probability, label, weight = counting(probability, label, weight)
    positive = positives(label, probability.shape[1])
    decided = decisions_of(probability, label.ndim == 1)
    right, said, there = ((weight[:, None] * flags).sum(0) for flags in (decided & positive, decided, positive))
    f1 = np.full(len(there), np.nan)
    np.divide(2 * right, said + there, out=f1, where=there > 0)
    return mean_of_classes(f1, probability, weight)


def calibration(probability: Floats, label: Integers, weight: Floats) -> float:
    """Compute one minus the expected calibration error: 1 if a share p of the decisions with confidence p is right.

    Rows are binned by confidence; the error is the mean, over rows, of the distance between mean confidence and
    share of right decisions in their bin. In a one-of task the confidence is the probability of the decided class; in
    an any-of task it is the probability of each class, and the score is the mean over classes.
    """
    probability, label, weight = counting(probability, label, weight)
    positive = positives(label, probability.shape[1])
    if not len(probability) or np.isnan(probability).any():
        return float("nan")
    pairs = confidences(probability, positive, label.ndim == 1)
    return float(np.mean([1 - _error(confidence, right, weight) for confidence, right in pairs]))


def confidences(probability: Floats, positive: Flags, one_of: bool) -> list[tuple[Floats, Flags]]:
    """Return the confidence of each row and whether it is right, (n,) each: one pair, or one per class."""
    if not one_of:
        return list(zip(probability.T, positive.T, strict=True))
    rows, decided = np.arange(len(probability)), probability.argmax(1)
    return [(probability[rows, decided], positive[rows, decided])]


def bin_of(confidence: Floats) -> Integers:
    """Return the bin of every row (n,). A confidence on an edge belongs to the bin below it."""
    return np.searchsorted(np.linspace(0, 1, BINS + 1)[1:-1], confidence)


def decisions_of(probability: Floats, one_of: bool) -> Flags:
    """Return the decisions (n, class)."""
    if not one_of:
        return probability > 0.5
    decided: Flags = probability.argmax(1)[:, None] == np.arange(probability.shape[1])
    return decided


def _error(confidence: Floats, right: Flags, weight: Floats) -> float:
    """Compute the expected calibration error of rows (n,)."""
    gap = np.bincount(bin_of(confidence), weight * (right - confidence), minlength=BINS)  # (bin,) right - confidence
    return float(np.abs(gap).sum() / weight.sum())
