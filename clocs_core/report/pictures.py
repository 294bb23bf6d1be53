"""Draw the pictures of a page, section by section.

Each function imports matplotlib, which takes a second: a process that lets another one draw needs no import.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clocs_core.artifacts.clinical import Clinical
from clocs_core.artifacts.metrics import EpochRow
from clocs_core.contracts.events import EmbeddingMap, Picture
from clocs_core.contracts.scores import Score
from clocs_core.evaluation.distance_bins import PatientDistances


def draw_training(rows: Sequence[EpochRow], best_epoch: int) -> list[Picture]:
    """Draw the curves of a training."""
    from clocs_core.report import figures

    return [figures.loss_curves(rows, best_epoch), figures.health_curves(rows)]


def draw_scores(scores: Sequence[Score]) -> list[Picture]:
    """Draw the scores, if there are any."""
    from clocs_core.report import figures

    return [figures.score_bars(scores)] if scores else []


def draw_embeddings(embeddings: EmbeddingMap, distances: PatientDistances | None, has_labels: bool) -> list[Picture]:
    """Draw embeddings by label and by patient, and their distances; labels and distances where there are any."""
    from clocs_core.report import figures

    pictures = [figures.embedding_map(embeddings, "label")] if has_labels else []
    pictures.append(figures.embedding_map(embeddings, "patient"))
    if distances is not None:
        pictures.append(figures.distance_histogram(distances))
    return pictures


def draw_views(
    signal: NDArray[np.floating],
    titles: Sequence[str],
    views: Sequence[str],
    sampling_rate: float | None,
    views_in_all: int,
) -> list[Picture]:
    """Draw instances (instance, view, sample) as the encoder reads them."""
    from clocs_core.report.traces import traces

    return [traces(signal, titles, views, sampling_rate, views_in_all)]


def draw_classes(clinical: Clinical) -> list[Picture]:
    """Draw the curves of each class, or predicted against true numbers."""
    from clocs_core.report import class_figures

    drawn = (class_figures.class_curves(clinical), class_figures.predicted_against_true(clinical))
    return [one for one in drawn if one is not None]
