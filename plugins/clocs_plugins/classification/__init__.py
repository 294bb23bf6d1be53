"""Metrics of classification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clocs_core import Metric, hookimpl

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@hookimpl
def clocs_metrics() -> list[Metric]:
    """Offer the paper's metric, for one-of and any-of tasks."""
    summary = "Area under the ROC curve, one class against the rest, mean over the classes that occur."
    return [Metric(name="auroc", summary=summary, score=auroc)]


def auroc(probability: NDArray[np.float64], label: NDArray[np.int64], weight: NDArray[np.float64]) -> float:
    """The score; see `metrics.macro_auroc`."""
    from clocs_plugins.classification.metrics import macro_auroc

    return macro_auroc(probability, label, weight)
