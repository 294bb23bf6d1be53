"""The estimate of how long an evaluation takes."""

from __future__ import annotations

import attrs
import pytest

from clocs_core.contracts.records import Task
from clocs_core.evaluation.duration import estimate_scoring
from clocs_core.evaluation.scoring import Scoring
from clocs_core.plugins.session import open_session
from clocs_core.settings.sections import ScoringSettings

ONE_OF = Task("rhythm", ("a", "b", "c"))


def scoring(task: Task, **settings: object) -> Scoring:
    metrics = tuple(found.offer for found in open_session().catalogue.metrics)
    return Scoring(task, "somewhere", metrics, ScoringSettings(**settings), 0)  # type: ignore[arg-type]


def estimate(task: Task = ONE_OF, train: int = 60, scored: int = 30, **settings: object) -> float:
    """Estimate with a clock that stands still while nobody looks: each part takes one second."""
    return estimate_scoring(scoring(task, **settings), 4, train, scored, 2, iter(range(9)).__next__)


def test_two_encoders_are_fitted_once_and_scored_with_all_bootstrap_samples():
    assert estimate(resamples=2000) == 2 * (1 + 2000 / 200)


def test_each_label_fraction_is_fitted_in_proportion_and_scored_as_a_whole():
    assert estimate(resamples=200, label_fraction=(0.25, 0.5)) == pytest.approx(2 * (0.75 + 2))


def test_choosing_c_fits_six_models():
    assert estimate(resamples=200, C="auto") == 2 * (6 + 1)


def test_more_rows_than_are_tried_take_longer_in_proportion():
    assert estimate(train=20_000, scored=4_000, resamples=200) == 2 * (10 + 2)


@pytest.mark.parametrize("kind", ["any_of", "number"])
def test_every_kind_of_task_has_an_estimate(kind: str):
    task = attrs.evolve(ONE_OF, kind=kind, classes=() if kind == "number" else ONE_OF.classes)
    assert estimate(task, resamples=200) == 4


def test_without_rows_there_is_nothing_to_score():
    assert estimate(scored=0) == 0
