"""Metrics of predicted numbers, such as ages."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import attrs

from clocs_core import Metric, hookimpl


@hookimpl
def clocs_metrics() -> list[Metric]:
    """Offer the mean absolute error first, then two metrics without a unit."""
    return [
        Metric(
            name="mae",
            limits=(0.0, float("inf")),
            summary="Mean absolute error, in the unit of the task; lower is better.",
            tasks=("number",),
            better="lower",
            score=Deferred("mean_absolute_error"),
            score_draws=Deferred("draw_mae"),
        ),
        Metric(
            name="r2",
            limits=(-float("inf"), 1.0),
            summary="Share of the variance of the labels that the predictions explain (R squared).",
            tasks=("number",),
            score=Deferred("r_squared"),
            score_draws=Deferred("draw_r2"),
        ),
        Metric(
            name="spearman",
            limits=(-1.0, 1.0),
            summary="Rank correlation of predictions and labels (Spearman's rho).",
            tasks=("number",),
            score=Deferred("spearman"),
            score_draws=Deferred("draw_spearman"),
        ),
    ]


@attrs.frozen
class Deferred:
    """A function of `metrics`, which imports NumPy; it is imported when it is called."""

    name: str

    def __call__(self, *rows: Any) -> Any:
        """Call it with prediction, label and weight."""
        return getattr(import_module(f"{__name__}.metrics"), self.name)(*rows)
