"""Draw the pictures of a run's report, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from clocs_core.artifacts.metrics import EpochRow
from clocs_core.artifacts.reports import Report
from clocs_core.contracts.events import EmbeddingMap, Picture
from clocs_core.evaluation.patient_distances import PatientDistances
from clocs_core.report import figures


def draw_pictures(
    rows: Sequence[EpochRow],
    report: Report,
    embeddings: EmbeddingMap,
    distances: PatientDistances | None,
    views: Picture,
    has_labels: bool,
) -> list[Picture]:
    """Draw curves, scores, embeddings, distances and views; scores and labels only where there are any."""
    pictures = [figures.loss_curves(rows, report.best_epoch), figures.health_curves(rows)]
    if report.scores:
        pictures.append(figures.score_bars(report.scores))
    if has_labels:
        pictures.append(figures.embedding_map(embeddings, "label"))
    pictures.append(figures.embedding_map(embeddings, "patient"))
    if distances is not None:
        pictures.append(figures.distance_histogram(distances))
    return [*pictures, views]
