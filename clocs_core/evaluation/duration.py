"""Estimate how long classifiers take to fit and score, by fitting and scoring made-up embeddings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.contracts.protocols import Features
from clocs_core.contracts.records import Task
from clocs_core.evaluation.classifiers import MODELS
from clocs_core.evaluation.linear import GRID
from clocs_core.evaluation.scoring import Scoring, score_predictions

_ROWS = 2000  # rows that are fitted and scored; both take time in proportion to their number
_RESAMPLES = 200  # bootstrap samples that are scored; fewer would count the fixed cost of a call too often


def estimate_scoring(
    scoring: Scoring, embedding_dim: int, train: int, scored: int, inits: int, clock: Callable[[], float]
) -> float:
    """Return seconds to fit and score `inits` encoders at every label fraction. train, scored: labelled rows."""
    if not scoring.fitting or not train or not scored:
        return 0.0
    rng = np.random.default_rng(0)
    seen, asked = (_made_up(min(rows, _ROWS), embedding_dim, scoring.task, rng) for rows in (train, scored))
    few = attrs.evolve(scoring, settings=attrs.evolve(scoring.settings, resamples=_RESAMPLES))
    settings, (fit, _) = scoring.settings, MODELS[scoring.task.kind]
    began = clock()
    predicted = fit(seen, asked, scoring.task, scoring.device, 1.0)
    fitted = clock()
    score_predictions({("linear", "made up", 1.0): predicted}, "", few)
    ended = clock()
    models = sum(settings.label_fraction) * (len(GRID) if settings.C == "auto" else 1)
    fitting = (fitted - began) * models * train / len(seen)
    intervals = (ended - fitted) * len(settings.label_fraction) * scored / len(asked) * settings.resamples / _RESAMPLES
    return inits * (fitting + intervals)


def _made_up(rows: int, embedding_dim: int, task: Task, rng: np.random.Generator) -> Features:
    """Draw embeddings; every class occurs, and every row is a patient."""
    number = np.arange(rows)
    label: NDArray[Any]
    if not task.classes:
        label = rng.normal(size=rows).astype(np.float32)
    elif task.kind == "one_of":
        label = number % len(task.classes)
    else:
        label = (number[:, None] % (2 + np.arange(len(task.classes))) == 0).astype(np.int64)
    return Features(rng.normal(size=(rows, embedding_dim)).astype(np.float32), label, number, number)
