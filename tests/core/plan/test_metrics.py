"""Metrics that are asked for are reported, in that order; all are where none is named."""

from __future__ import annotations

import pytest
from fake_plugins import fake_point, points

from clocs_core.contracts.result_offers import Metric
from clocs_core.errors import AmbiguousName, SettingsError, UnknownName
from clocs_core.plan.evaluation import resolve_evaluation
from clocs_core.plan.pretraining import resolve
from clocs_core.plugins.host import installed_entry_points
from clocs_core.plugins.session import open_session


@pytest.fixture(scope="module")
def catalogue():
    return open_session(points(), (), False).catalogue


def evaluation(catalogue, *assignments):
    return resolve_evaluation(catalogue, None, {"evaluation": {"encoder": "flat", "dataset": "many"}}, assignments)


def run(catalogue, *assignments):
    return resolve(catalogue, {"run": {"method": "together", "dataset": "many"}}, assignments)


@pytest.mark.parametrize("plan", [evaluation, run])
def test_the_metrics_asked_for_are_used_in_their_order(catalogue, plan):
    assert [one.name for one in plan(catalogue).metrics] == ["hits", "many"]
    assert [one.name for one in plan(catalogue, "metrics=many,hits,many").metrics] == ["many", "hits"]
    assert [one.name for one in plan(catalogue, "metrics=many", "task=findings").metrics] == ["many"]


@pytest.mark.parametrize("plan", [evaluation, run])
def test_a_metric_that_is_unknown_or_suits_no_task_is_refused_before_anything_is_read(catalogue, plan):
    with pytest.raises(UnknownName, match=r"No metric 'hit'\. Did you mean 'hits'"):
        plan(catalogue, "metrics=hit")
    with pytest.raises(
        SettingsError, match=r"None of the metrics many is for tasks of the kind one_of.*there is hits\."
    ):
        plan(catalogue, "metrics=many")


def test_without_a_choice_an_evaluation_keeps_the_name_of_its_folder(catalogue):
    """It follows from the settings, and those of before there was a choice must find their folder again."""
    assert "metrics" not in evaluation(catalogue).tables()["evaluate"]
    assert evaluation(catalogue, "metrics=hits").tables()["evaluate"]["metrics"] == ["hits"]


def test_a_report_has_one_metric_of_a_name():
    """A plugin's metric with the name of another took its place in silence."""
    other = Metric(name="hits", summary="Mine.", score=lambda *_: 0.5)
    twice = open_session((*points(), fake_point("mine", "mine", clocs_metrics=lambda: [other])), (), False).catalogue
    with pytest.raises(AmbiguousName, match="2 plugins offer the metric 'hits'"):
        run(twice)
    assert run(twice, "metrics=mine:hits").metrics == (other,)
    with pytest.raises(SettingsError, match="have a name in common"):
        run(twice, "metrics=mine:hits,fakes:hits")


def test_a_metric_of_ours_keeps_its_name():
    mine = Metric(name="auroc", summary="Mine.", score=lambda *_: 0.5)
    found = open_session((*installed_entry_points(), fake_point("mine", "mine", clocs_metrics=lambda: [mine])))
    plan = resolve(found.catalogue, {"run": {"method": "cmsc", "dataset": "demo"}}, ())
    assert mine not in plan.metrics
    assert "auroc" in [one.name for one in plan.metrics]
