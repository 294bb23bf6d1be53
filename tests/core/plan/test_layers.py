"""Layers of settings: the later wins, names find their table, and Python values are read like typed ones."""

from __future__ import annotations

from pathlib import Path

import attrs
import numpy as np
import pytest

from clocs_core.errors import PluginError, SettingsError
from clocs_core.plan.layers import Assignment, Layers, as_assignments, name_settings, overlaid
from clocs_core.settings.options import option


@attrs.frozen
class Train:
    a: int = option(0, "lowest")
    b: int = option(0, "preset")
    c: int = option(0, "default of the data set")
    d: int = option(0, "file")
    e: int = option(0, "given")


@attrs.frozen
class Ordered:
    d: int = option(0, "the smaller one")
    e: int = option(9, "the larger one")

    def __attrs_post_init__(self):
        if self.e <= self.d:
            raise ValueError(f"e must be above d, got d {self.d} and e {self.e}")


@attrs.frozen
class Cut:
    rate: float | None = option(None, "of frames")
    length: int = option(1, "of frames")


@attrs.frozen
class Read:
    rate: float = option(1.0, "of recordings")
    root: Path | None = option(None, "where")
    names: tuple[str, ...] = option((), "of channels")
    shares: tuple[float, ...] = option((1.0,), "of labels")
    most: int | None = option(4, "at most")


CLASSES = {"train": Train, "pretrain_framing": Cut, "evaluate_framing": Cut, "dataset": Read}


def layers(given=(), presets=None, tables=None):
    return Layers(presets or {}, {}, tables or {}, given)


def test_each_layer_wins_over_those_below_it():
    found = Layers(
        presets={"train": {"b": 1, "c": 1, "d": 1, "e": 1}},
        defaults={"train": {"c": 2, "d": 2, "e": 2}},
        tables={"train": {"d": 3, "e": 3}},
        given=as_assignments(["e=4"]),
    ).table("train", Train)
    assert found == Train(a=0, b=1, c=2, d=3, e=4)


def test_an_assignment_of_another_table_is_not_taken():
    given = as_assignments(["dataset.rate=7", "evaluate_framing.rate=8"])
    assert layers(given).table("pretrain_framing", Cut) == Cut()


def test_an_option_of_the_data_set_hides_that_of_the_framings():
    checked = layers(as_assignments(["rate=50", "length=9"])).checked(CLASSES)
    assert checked.table("dataset", Read).rate == 50.0
    assert checked.table("pretrain_framing", Cut) == Cut(rate=None, length=9)
    assert checked.table("evaluate_framing", Cut) == Cut(rate=None, length=9)


def test_without_a_data_set_that_has_it_an_option_sets_both_framings():
    classes = {name: cls for name, cls in CLASSES.items() if name != "dataset"}
    checked = layers(as_assignments(["rate=50"])).checked(classes)
    assert [checked.table(name, Cut).rate for name in ("pretrain_framing", "evaluate_framing")] == [50.0, 50.0]


def test_a_preset_of_no_part_is_the_fault_of_the_plugin_and_a_table_that_of_the_user():
    with pytest.raises(PluginError, match=r"presets options of 'trian'.*Did you mean 'train'"):
        layers(presets={"trian": {}}).checked(CLASSES)
    with pytest.raises(PluginError, match=r"presets the option 'bb' of 'train', which has no such option"):
        layers(presets={"train": {"bb": 1}}).checked(CLASSES)
    with pytest.raises(SettingsError, match=r"a table \[trian\].*Did you mean 'train'"):
        layers(tables={"trian": {}}).checked(CLASSES)


def test_a_preset_of_another_type_is_the_fault_of_the_plugin_unless_the_user_gives_a_worse_value():
    presets = {"train": {"b": "many"}}
    with pytest.raises(PluginError, match=r"`train\.b=\.\.\.`: .*'many'.* The method presets it, so its plugin must"):
        layers(presets=presets).table("train", Train)
    with pytest.raises(SettingsError, match=r"`train\.c=\.\.\.`: ") as caught:
        layers(presets={"train": {"b": 2}}, tables={"train": {"c": "few"}}).table("train", Train)
    assert not isinstance(caught.value, PluginError)
    with pytest.raises(SettingsError, match="must be above d, got d 5 and e 2") as caught:  # a rule of two options
        layers(as_assignments(["e=2"]), {"train": {"d": 5}}).table("train", Ordered)
    assert not isinstance(caught.value, PluginError)
    assert layers(as_assignments(["b=3"]), presets).table("train", Train).b == 3


# -------------------------------------------------------------------------------------------------------- Python values


def read(**values):
    """The record of the data set from values by name."""
    return layers(name_settings(values)).checked({"dataset": Read}).table("dataset", Read)


@pytest.mark.parametrize("two", [2, np.int64(2), np.array(2), np.float32(2)], ids=type)
def test_numbers_of_numpy_are_numbers(two):
    found = read(rate=two).rate
    assert found == 2.0
    assert type(found) is float


def test_a_number_of_numpy_is_still_read_strictly():
    with pytest.raises(SettingsError, match=r"`dataset\.most=\.\.\.`: expected a whole number, got 2\.5"):
        read(most=np.float64(2.5))


@pytest.mark.parametrize("given", [0.5, [0.5], (0.5,), np.array([0.5]), "0.5"], ids=repr)
def test_one_value_may_stand_for_a_list_of_one(given):
    assert read(shares=given).shares == (0.5,)


def test_text_for_a_list_is_read_with_commas_and_not_letter_by_letter():
    assert read(names="II, V1").names == ("II", "V1")
    assert read(names=["II, V1"]).names == ("II, V1",)


def test_none_undoes_a_default():
    assert read(most=None).most is None
    with pytest.raises(SettingsError, match=r"`dataset\.rate=\.\.\.`: expected a number, got 'none'"):
        read(rate=None)


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_is_the_same_from_another_folder(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/of/somebody")
    assert read(root=kind("here")).root == tmp_path / "here"
    assert read(root=kind("~/there")).root == Path("/of/somebody/there")
    assert read(root=None).root is None


def test_text_from_python_stays_text_and_typed_text_is_read():
    low = {"most": 1}
    assert overlaid(Read, low, [Assignment("", "most", "3", is_text=False)]) == {"most": "3"}
    assert overlaid(Read, low, [Assignment("", "most", "3")]) == {"most": 3}


def test_a_name_with_its_table_is_split_at_the_last_point():
    (one,) = name_settings({"loss.temperature": 0.1})
    assert (one.table, one.name, one.value, one.path) == ("loss", "temperature", 0.1, "loss.temperature")
    (typed,) = as_assignments([" loss.temperature = 0.1 "])
    assert typed == Assignment("loss", "temperature", "0.1")
