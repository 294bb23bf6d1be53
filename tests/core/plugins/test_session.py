"""A session with one more data set: the one that the caller holds comes before any of its name."""

from __future__ import annotations

import pytest
from fake_offers import offers, tiny
from fake_plugins import fake_module, fake_point, no_offers

from clocs_core.errors import UnknownName
from clocs_core.plugins.host import Plugin
from clocs_core.plugins.session import open_session

OWNER = Plugin("memory", "clocs", "1.0", fake_module("memory"))


def session():
    hooks = offers() | {"clocs_datasets": lambda: [tiny(), tiny("other")]}
    return open_session([fake_point("fakes", **hooks)])


def names(one):
    return [item.offer.name for item in one.catalogue.datasets]


def test_a_data_set_is_put_first():
    assert names(session().with_dataset(tiny("mine"), OWNER)) == ["mine", "tiny", "other"]


def test_a_data_set_hides_the_one_of_its_name():
    """Two of a name would be ambiguous, and nobody who holds recordings in memory means a plugin's."""
    mine = tiny("other", summary="mine")
    more = session().with_dataset(mine, OWNER)
    found = more.catalogue.datasets.get("other")
    assert found.offer is mine
    assert found.plugin is OWNER
    assert names(more) == ["other", "tiny"]


def test_the_session_itself_and_its_other_shelves_stay_as_they_were():
    before = session()
    after = before.with_dataset(tiny("mine"), OWNER)
    assert names(before) == ["tiny", "other"]
    assert after.host is before.host
    assert after.catalogue.shelves()[1:] == before.catalogue.shelves()[1:]


def test_broken_plugins_are_still_told_of():
    broken = fake_point("broken", clocs_datasets=lambda: 7)
    found = open_session([broken]).with_dataset(tiny("mine"), OWNER)
    with pytest.raises(UnknownName, match="broken"):
        found.catalogue.datasets.get("gone")


def test_a_plugin_can_be_left_out():
    points = [fake_point("a", clocs_datasets=lambda: [tiny("of-a")]), fake_point("b", clocs_datasets=no_offers)]
    assert names(open_session(points)) == ["of-a"]
    assert names(open_session(points, without=["a"])) == []
