"""Score predicted numbers (n, 1) against labels (n,), with a weight per row; one weighting, or many at once.

Each metric is written for many weightings (draw, n); a single one is the first of one draw. All are NaN where no row
counts, or where a row of positive weight predicts NaN. R squared and the rank correlation are NaN where all labels are
equal, and the rank correlation also where all predictions are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Draw = Callable[[Floats, Floats, Floats], Floats]


def mean_absolute_error(prediction: Floats, label: Floats, weight: Floats) -> float:
    """Compute the weighted mean of the distances between predictions and labels."""
    return _first(draw_mae, prediction, label, weight)


def r_squared(prediction: Floats, label: Floats, weight: Floats) -> float:
    """Compute 1 - squared error / squared distance of the labels from their mean. It may be negative."""
    return _first(draw_r2, prediction, label, weight)


def spearman(prediction: Floats, label: Floats, weight: Floats) -> float:
    """Compute the correlation of ranks; equal values share the mean of their ranks."""
    return _first(draw_spearman, prediction, label, weight)


def draw_mae(prediction: Floats, label: Floats, weights: Floats) -> Floats:
    """Compute `mean_absolute_error` (draw,) for every row of `weights` (draw, n)."""
    predicted, y, strange = _columns(prediction, label, weights)
    return _unless(strange, weights @ np.abs(predicted - y), weights.sum(1))


def draw_r2(prediction: Floats, label: Floats, weights: Floats) -> Floats:
    """Compute `r_squared` (draw,) for every row of `weights` (draw, n)."""
    predicted, y, strange = _columns(prediction, label, weights)
    total = weights.sum(1)
    y = y - y.mean()  # near 0, so that the variance below loses no digits
    predicted = predicted - label.mean(dtype=np.float64)
    mean = _unless(strange, weights @ y, total)
    spread = weights @ y**2 - total * mean**2
    varies = np.where(spread > 1e-12 * np.maximum(weights @ y**2, 1e-300), spread, 0.0)
    return 1 - _unless(strange, weights @ (predicted - y) ** 2, varies)


def draw_spearman(prediction: Floats, label: Floats, weights: Floats) -> Floats:
    """Compute `spearman` (draw,) for every row of `weights` (draw, n)."""
    predicted, y, strange = _columns(prediction, label, weights)
    total = weights.sum(1)
    a, b = (_ranks(values, weights) - (total[:, None] + 1) / 2 for values in (predicted, y))  # (draw, n), mean 0
    both, of_a, of_b = ((weights * product).sum(1) for product in (a * b, a * a, b * b))
    return _unless(strange, both, np.sqrt(of_a * of_b))


def _ranks(values: Floats, weights: Floats) -> Floats:
    """Return the rank of every row in every draw (draw, n), where a row of weight 2 is two equal rows."""
    _, tie = np.unique(values, return_inverse=True)  # (n,): number of the value, in rising order
    held = np.zeros((len(weights), int(tie.max()) + 1))
    np.add.at(held.T, tie, weights.T)
    last = held.cumsum(1)  # (draw, value): the last rank of each value
    return (last - (held - 1) / 2)[:, tie]


def _columns(prediction: Floats, label: Floats, weights: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return predictions and labels (n,) in float64, and whether a draw (draw,) has no row or a NaN prediction."""
    n = len(label)
    if prediction.shape != (n, 1) or label.shape != (n,) or weights.shape[1:] != (n,):
        raise ValueError(
            f"the metric got predictions {prediction.shape}, labels {label.shape} and weights {weights.shape[1:]}; "
            "expected (n, 1), (n,) and (n,)"
        )
    bad = np.isnan(prediction[:, 0])
    strange = (weights.sum(1) <= 0) | (weights[:, bad] > 0).any(1)
    return np.where(bad, 0.0, prediction[:, 0]), label.astype(np.float64), strange


def _unless(strange: NDArray[np.bool_], above: Floats, below: Floats) -> Floats:
    """Divide, with NaN for strange draws and where `below` is not positive."""
    found = np.full(len(above), np.nan)
    np.divide(above, below, out=found, where=(below > 0) & ~strange)
    return found


def _first(draw: Draw, prediction: Floats, label: Floats, weight: Floats) -> float:
    return float(draw(prediction, label, weight[None])[0])
