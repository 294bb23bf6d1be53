"""F1 and calibration of many weightings of the same rows, in NumPy, or in torch on any device.

Whatever does not depend on weights is computed once, in NumPy. The sums over rows are products of the weights (draw, n)
with a few columns, which are computed where the weights lie.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from clocs_plugins.classification.decisions import BINS, bin_of, confidences, decisions_of
from clocs_plugins.classification.rows import (
    Floats,
    Integers,
    mean_over_classes,
    nan_where_missing,
    positives,
    refuse_other_shapes,
)

Sum: TypeAlias = Callable[[Floats], Floats]
"""Adds up columns (n, k) over rows, with the weights of every draw: (draw, k)."""


def draw_f1(probability: Floats, label: Integers, weights: Floats) -> Floats:
    """Compute `macro_f1` (draw,) for every row of `weights` (draw, n)."""
    refuse_other_shapes(probability, label, weights[0])
    return _f1(probability, label, partial(np.matmul, weights))


def draw_calibration(probability: Floats, label: Integers, weights: Floats) -> Floats:
    """Compute `calibration` (draw,) for every row of `weights` (draw, n)."""
    refuse_other_shapes(probability, label, weights[0])
    return _calibration(probability, label, partial(np.matmul, weights))


def tensor_f1(probability: Tensor, label: Tensor, weights: Tensor) -> Tensor:
    """Compute `draw_f1` where the weights lie."""
    return _on_device(_f1, probability, label, weights)


def tensor_calibration(probability: Tensor, label: Tensor, weights: Tensor) -> Tensor:
    """Compute `draw_calibration` where the weights lie."""
    return _on_device(_calibration, probability, label, weights)


def _on_device(
    score: Callable[[Floats, Integers, Sum], Floats], probability: Tensor, label: Tensor, weights: Tensor
) -> Tensor:
    said, truth = probability.cpu().numpy(), label.cpu().numpy()
    refuse_other_shapes(said, truth, weights[0])

    def add_up(columns: Floats) -> Floats:
        summed: Floats = (weights @ torch.from_numpy(columns).to(weights)).cpu().numpy()  # sync point
        return summed

    return torch.from_numpy(score(said, truth, add_up))


def _f1(probability: Floats, label: Integers, add_up: Sum) -> Floats:
    positive, classes = positives(label, probability.shape[1]), probability.shape[1]
    decided = decisions_of(probability, label.ndim == 1)
    sums = add_up(np.hstack([decided & positive, decided, positive, _unpredicted(probability)]).astype(np.float64))
    right, said, there = (sums[:, at * classes : (at + 1) * classes] for at in range(3))  # (draw, class)
    f1 = np.full(there.shape, np.nan)  # (draw, class)
    np.divide(2 * right, said + there, out=f1, where=there > 0)
    return nan_where_missing(mean_over_classes(f1), sums[:, 3 * classes :])


def _calibration(probability: Floats, label: Integers, add_up: Sum) -> Floats:
    pairs = confidences(probability, positives(label, probability.shape[1]), label.ndim == 1)
    every, errors = np.hstack([np.ones((len(probability), 1)), _unpredicted(probability)]), []
    for confidence, right in pairs:
        gaps = np.nan_to_num(right - confidence)[:, None] * (bin_of(confidence)[:, None] == np.arange(BINS))  # (n, bin)
        sums = add_up(np.hstack([gaps, every]))
        errors.append(np.abs(sums[:, :BINS]).sum(1))
    total, missing = sums[:, BINS], sums[:, BINS + 1 :]
    found = np.full(len(total), np.nan)
    np.divide(np.mean(errors, axis=0), total, out=found, where=total > 0)
    return nan_where_missing(1 - found, missing)


def _unpredicted(probability: Floats) -> Floats:
    """Return 1 for rows without a prediction, else 0: (n, 1)."""
    missing: Floats = np.isnan(probability).max(axis=1, keepdims=True, initial=False).astype(np.float64)
    return missing
