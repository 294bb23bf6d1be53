"""Metrics of classification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clocs_core import Metric, hookimpl

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@hookimpl
def clocs_metrics() -> list[Metric]:
    """Offer the paper's metric first, then three others, all for one-of and any-of tasks."""
    area = "one class against the rest, mean over the classes that occur."
    return [
        Metric(name="auroc", summary=f"Area under the ROC curve, {area}", score=auroc, score_draws=draw_auroc),
        Metric(
            name="auprc", summary=f"Area under the precision-recall curve, {area}", score=auprc, score_draws=draw_auprc
        ),
        Metric(
            name="f1", summary="F1 of the decisions, mean over the classes that occur.", score=f1, score_draws=draw_f1
        ),
        Metric(
            name="calibration",
            summary="One minus the expected calibration error, 15 bins.",
            score=calibration,
            score_draws=draw_calibration,
        ),
    ]


def auroc(probability: NDArray[np.float64], label: NDArray[np.int64], weight: NDArray[np.float64]) -> float:
    """Compute the score; see `metrics.macro_auroc`."""
    from clocs_plugins.classification.metrics import macro_auroc

    return macro_auroc(probability, label, weight)


def auprc(probability: NDArray[np.float64], label: NDArray[np.int64], weight: NDArray[np.float64]) -> float:
    """Compute the score; see `metrics.macro_auprc`."""
    from clocs_plugins.classification.metrics import macro_auprc

    return macro_auprc(probability, label, weight)


def f1(probability: NDArray[np.float64], label: NDArray[np.int64], weight: NDArray[np.float64]) -> float:
    """Compute the score; see `decisions.macro_f1`."""
    from clocs_plugins.classification.decisions import macro_f1

    return macro_f1(probability, label, weight)


def calibration(probability: NDArray[np.float64], label: NDArray[np.int64], weight: NDArray[np.float64]) -> float:
    """Compute the score; see `decisions.calibration`."""
    from clocs_plugins.classification import decisions

    return decisions.calibration(probability, label, weight)


def draw_auroc(
    probability: NDArray[np.float64], label: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute many scores at once; see `draws.draw_auroc`."""
    from clocs_plugins.classification import draws

    return draws.draw_auroc(probability, label, weights)


def draw_auprc(
    probability: NDArray[np.float64], label: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute many scores at once; see `draws.draw_auprc`."""
    from clocs_plugins.classification import draws

    return draws.draw_auprc(probability, label, weights)


def draw_f1(
    probability: NDArray[np.float64], label: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute many scores at once; see `draws.draw_f1`."""
    from clocs_plugins.classification import draws

    return draws.draw_f1(probability, label, weights)


def draw_calibration(
    probability: NDArray[np.float64], label: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute many scores at once; see `draws.draw_calibration`."""
    from clocs_plugins.classification import draws

    return draws.draw_calibration(probability, label, weights)
