"""Tasks and channels of a run: by name, by preset, and as many as its method needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from fake_offers import pairs, tiny, together
from fake_plans import catalogue_of, planned, refused

from clocs_core import Defaults, Needs
from clocs_core.errors import SettingsError, UnknownName
from clocs_core.plan.pretraining import resolve
from clocs_core.settings.toml_file import Tables


def test_the_first_task_is_the_default() -> None:
    assert planned().task.name == planned().data.task == "parity"
    assert planned("task=findings").task.kind == "any_of"


def test_every_metric_comes_along() -> None:
    """A run may be evaluated on another task later; the protocol picks those that suit it."""
    assert [metric.name for metric in planned().metrics] == ["hits", "many"]


def test_an_unknown_task_answers_with_its_neighbour() -> None:
    assert refused("task=partiy", kind=UnknownName) == "Data set 'tiny' has no task 'partiy'. Did you mean 'parity'?"


@pytest.mark.parametrize(
    ("asked", "channels"),
    [
        ((), ("left", "right")),
        (("channels=right",), ("right",)),
        (("channels=right,left",), ("right", "left")),
        (("channels=1",), ("right",)),
        (("channels=both",), ("right", "left")),
    ],
)
def test_channels_are_names_or_a_preset(asked: Sequence[str], channels: tuple[str, ...]) -> None:
    assert planned(*asked).data.channels == channels


def test_a_data_set_may_choose_a_preset_by_default() -> None:
    catalogue = catalogue_of(clocs_datasets=lambda: [tiny("one", defaults=Defaults(channels="1"))])
    tables: Tables = {"run": {"method": "together", "dataset": "one"}}
    assert resolve(catalogue, tables).data.channels == ("right",)
    assert resolve(catalogue, tables, ["channels=left"]).data.channels == ("left",)


def test_an_unknown_channel_answers_with_its_neighbour() -> None:
    assert refused("channels=lef", kind=UnknownName) == ("Data set 'tiny' has no channel 'lef'. Did you mean 'left'?")


def test_an_unknown_channel_far_from_all_answers_with_presets_too() -> None:
    assert refused("channels=V9", kind=UnknownName) == (
        "Data set 'tiny' has no channel 'V9'. There is: 1, both, left, right."
    )


def test_a_channel_named_twice_is_refused() -> None:
    assert refused("channels=left,left") == "A channel is named twice in left, left."


def test_a_data_set_that_learns_its_channels_from_files_takes_any_name() -> None:
    catalogue = catalogue_of(clocs_datasets=lambda: [tiny("open", channels=(), presets={})])
    tables: Tables = {"run": {"method": "together", "dataset": "open"}}
    assert resolve(catalogue, tables).data.channels == ()
    assert resolve(catalogue, tables, ["channels=x"]).data.channels == ("x",)


def test_a_method_that_contrasts_leads_refuses_one() -> None:
    """Before anything is read: with one lead there is nothing to contrast."""
    assert planned(method="leads").needs.least_channels == 2
    assert refused("channels=left", method="leads") == (
        "Method 'leads' needs at least 2 channels, got 1 (left); name more with `channels=...`, or choose another "
        "method."
    )


@pytest.mark.parametrize("own", [(0, 2), (1, None), (1, 2)])
def test_channels_that_the_first_encoder_lacks_are_refused(own: tuple[int, int | None]) -> None:
    """Its evaluation would be of none, or of fewer than the method says."""
    needs = Needs(channels="all", encoders=2, first_channels=own)
    views = attrs.evolve(pairs(), name="sides", needs=lambda _options: needs)
    method = together("sides", views="sides")
    catalogue = catalogue_of(clocs_views=lambda: [views], clocs_methods=lambda: [method])
    tables: Tables = {"run": {"method": "sides", "dataset": "tiny"}}
    assert resolve(catalogue, tables).needs.of_first(("left", "right")) == ("left", "right")[slice(*own)]
    with pytest.raises(
        SettingsError, match=r"Method 'sides' needs at least 2 channels, got 1 \(left\); name more with"
    ):
        resolve(catalogue, tables, ["channels=left"])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"first_channels": (-1, None)}, "a number from 0 on and a larger one or None, got "),
        ({"first_channels": (1, 1)}, r"got \(1, 1\)"),
        ({"channels": "all", "encoder_channels": "all", "first_channels": (0, 1)}, "cannot be evaluated on some"),
    ],
)
def test_needs_that_nothing_can_meet_are_refused(fields: dict[str, Any], message: str) -> None:
    """By the plugin's own author, as soon as they are made."""
    with pytest.raises(ValueError, match=message):
        Needs(**fields)
