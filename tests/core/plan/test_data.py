"""A data set with its options: presets become channels, and an empty task is the first."""

from __future__ import annotations

import pytest
from fake_offers import tiny
from fake_plugins import fake_point

from clocs_core.errors import SettingsError, UnknownName
from clocs_core.plan.data import inherit_data, resolve_data
from clocs_core.plan.layers import Assignment
from clocs_core.plugins.catalogue import build_catalogue
from clocs_core.plugins.host import load_plugins


def resolve(**data):
    catalogue, _ = build_catalogue(load_plugins([fake_point("fakes", clocs_datasets=lambda: [tiny()])]))
    return resolve_data(catalogue, "tiny", {"data": data})


def test_presets_and_defaults_become_the_names_they_stand_for():
    plan = resolve(channels=["both"])
    assert (plan.name, plan.data.channels, plan.data.task, plan.data.split) == (
        "tiny",
        ("right", "left"),
        "parity",
        "64/16/20",
    )
    assert resolve().data.channels == ("left", "right")
    assert resolve(task="findings").task.kind == "any_of"


def test_names_that_are_not_there_are_refused_with_their_neighbours():
    with pytest.raises(UnknownName, match=r"'tiny' has no task 'party'\. Did you mean 'parity'"):
        resolve(task="party")
    with pytest.raises(UnknownName, match=r"'tiny' has no channel 'rigth'\. Did you mean 'right'"):
        resolve(channels=["rigth"])
    with pytest.raises(SettingsError, match="A channel is named twice in left, left"):
        resolve(channels=["left", "left"])


@pytest.mark.parametrize(("given", "named"), [({"data_root": "new"}, ()), ({}, (Assignment("", "data_root", "new"),))])
def test_a_new_data_root_wins_over_the_folder_of_an_earlier_run(given, named):
    assert inherit_data({"root": "old", "task": "t"}, given, named) == {"task": "t", **given}
    assert inherit_data({"root": "old"}, {}) == {"root": "old"}
