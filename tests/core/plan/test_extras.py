"""Listeners and sections of plugins: all are used, their options are set by their names alone."""

from __future__ import annotations

import pytest
from fake_offers import trackers
from fake_plugins import fake_point, points

from clocs_core.errors import SettingsError
from clocs_core.plan.evaluation import resolve_evaluation
from clocs_core.plan.pretraining import resolve
from clocs_core.plugins.session import open_session


@pytest.fixture(scope="module")
def catalogue():
    return open_session(points(), (), False).catalogue


def run(catalogue, *assignments, **tables):
    return resolve(catalogue, {"run": {"method": "together", "dataset": "tiny"}, **tables}, assignments)


def test_options_are_set_with_the_name_in_front_and_kept_where_they_differ(catalogue):
    made = run(catalogue, "diary.every=3", "patients.most=5")
    assert [one.options.every for one in made.extras.trackers] == [3]
    assert [one.options.most for one in made.extras.sections] == [5]
    tables = made.tables()
    assert tables["diary"] == {"every": 3, "epochs": 0}
    again = resolve(catalogue, tables)
    assert again.extras.trackers == made.extras.trackers
    assert "diary" not in run(catalogue).tables()


def test_an_option_that_a_run_has_too_stays_the_run_s(catalogue):
    """Or whoever installs a listener could no longer say `-o epochs=7`."""
    made = run(catalogue, "epochs=7")
    assert made.train.epochs == 7
    assert made.extras.trackers[0].options.epochs == 0


def test_an_evaluation_has_them_too_and_keeps_its_name(catalogue):
    tables = {"evaluation": {"encoder": "flat", "dataset": "many"}}
    made = resolve_evaluation(catalogue, None, tables, ["diary.every=3"])
    assert made.extras.trackers[0].options.every == 3
    assert made.name == resolve_evaluation(catalogue, None, tables, []).name


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("diary.evry=3", "'diary' has no option 'evry'"),
        ("diary.every=-1", "every"),
        ("dairy.every=1", "no part 'dairy'"),
    ],
)
def test_options_that_do_not_exist_are_refused(catalogue, given, message):
    with pytest.raises(SettingsError, match=message):
        run(catalogue, given)


def test_two_of_one_name_are_told_apart_by_their_distributions():
    more = fake_point("other", "strangers", clocs_listeners=trackers)
    made = run(open_session([*points(), more], (), False).catalogue, "diary.every=2", "strangers:diary.every=5")
    assert sorted(one.options.every for one in made.extras.trackers) == [2, 5]
