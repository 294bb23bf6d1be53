"""F1 and calibration of many weightings of the same rows: what does not depend on weights is computed once."""

from __future__ import annotations

import numpy as np

from clocs_plugins.classification.decisions import BINS, bin_of, confidences, decisions_of
from clocs_plugins.classification.rows import (
    Floats,
    Integers,
    mean_over_classes,
    nan_where_missing,
    positives,
    refuse_other_shapes,
)


def draw_f1(probability: Floats, label: Integers, weights: Floats) -> Floats:
    """Compute `macro_f1` (draw,) for every row of `weights` (draw, n)."""
    refuse_other_shapes(probability, label, weights[0])
    positive = positives(label, probability.shape[1])
    decided = decisions_of(probability, label.ndim == 1)
    right, said, there = (weights @ flags.astype(np.float64) for flags in (decided & positive, decided, positive))
    f1 = np.full(there.shape, np.nan)  # (draw, class)
    np.divide(2 * right, said + there, out=f1, where=there > 0)
    return nan_where_missing(mean_over_classes(f1), weights[:, np.isnan(probability).any(1)])


def draw_calibration(probability: Floats, label: Integers, weights: Floats) -> Floats:
    """Compute `calibration` (draw,) for every row of `weights` (draw, n)."""
    refuse_other_shapes(probability, label, weights[0])
    total = weights.sum(1)
    errors = []
    for confidence, right in confidences(probability, positives(label, probability.shape[1]), label.ndim == 1):
        gaps = np.nan_to_num(right - confidence)[:, None] * (bin_of(confidence)[:, None] == np.arange(BINS))  # (n, bin)
        errors.append(np.abs(weights @ gaps).sum(1))
    found = np.full(len(weights), np.nan)
    np.divide(np.mean(errors, axis=0), total, out=found, where=total > 0)
    return nan_where_missing(1 - found, weights[:, np.isnan(probability).any(1)])
