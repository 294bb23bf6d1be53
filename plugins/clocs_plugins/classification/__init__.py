"""Metrics of classification."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import attrs

from clocs_core import Metric, hookimpl


@hookimpl
def clocs_metrics() -> list[Metric]:
    """Offer the paper's metric first, then three others, all for one-of and any-of tasks."""
    area = "one class against the rest, mean over the classes that occur."
    return [
        Metric(
            name="auroc",
            limits=(0.0, 1.0),
            summary=f"Area under the ROC curve, {area}",
            score=Deferred("metrics", "macro_auroc"),
            score_draws=Deferred("ranking", "draw_auroc"),
            score_tensors=Deferred("ranking", "tensor_auroc"),
        ),
        Metric(
            name="auprc",
            limits=(0.0, 1.0),
            summary=f"Area under the precision-recall curve, {area}",
            score=Deferred("metrics", "macro_auprc"),
            score_draws=Deferred("ranking", "draw_auprc"),
            score_tensors=Deferred("ranking", "tensor_auprc"),
        ),
        Metric(
            name="f1",
            limits=(0.0, 1.0),
            summary="F1 of the decisions, mean over the classes that occur.",
            score=Deferred("decisions", "macro_f1"),
            score_draws=Deferred("draws", "draw_f1"),
            score_tensors=Deferred("draws", "tensor_f1"),
        ),
        Metric(
            name="calibration",
            limits=(0.0, 1.0),
            summary="One minus the expected calibration error, 15 bins.",
            score=Deferred("decisions", "calibration"),
            score_draws=Deferred("draws", "draw_calibration"),
            score_tensors=Deferred("draws", "tensor_calibration"),
        ),
    ]


@attrs.frozen
class Deferred:
    """A function of a module of this folder, which imports NumPy or torch; the module is imported when it is called."""

    module: str
    name: str

    def __call__(self, *rows: Any) -> Any:
        """Call it with probability, label and weight."""
        return getattr(import_module(f"{__name__}.{self.module}"), self.name)(*rows)
