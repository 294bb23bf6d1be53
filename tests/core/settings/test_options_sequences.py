"""Options that are enums, lists and tuples of fixed length: typed, given in Python, written and read again."""

from __future__ import annotations

import json
import re
import tomllib
from enum import Enum, StrEnum, auto
from pathlib import Path

import attrs
import numpy as np
import pytest
import tomli_w

from clocs_core.errors import SettingsError
from clocs_core.settings.options import field_types, from_text, from_value, metavar_of, option, plain, structure


class Side(StrEnum):
    LEFT = "left"
    RIGHT = "right"


class Level(Enum):
    LOW = auto()
    HIGH = auto()


@attrs.frozen
class More:
    side: Side = option(Side.LEFT, "an enum whose values are text")
    level: Level | None = option(None, "an enum whose values are numbers, or none")
    levels: tuple[Level, ...] = option((), "several of them")
    band: tuple[float, float] = option((0.5, 40.0), "two numbers")
    named: tuple[int, str] | None = option(None, "a number and a word, or none")
    lengths: list[int] = option(attrs.Factory(list), "a list")  # type: ignore[arg-type]  # attrs makes the list
    files: tuple[Path, ...] = option((), "paths")


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("side", "right", Side.RIGHT),
        ("level", "HIGH", Level.HIGH),
        ("level", "none", None),
        ("levels", "LOW,HIGH", (Level.LOW, Level.HIGH)),
        ("band", "1, 30", (1.0, 30.0)),
        ("named", "3,x", (3, "x")),
        ("lengths", "1,2", [1, 2]),
        ("lengths", "7", [7]),
        ("lengths", "", []),
        ("files", "/a,/b", (Path("/a"), Path("/b"))),
    ],
)
def test_a_typed_word_list_or_pair_becomes_what_its_field_says(field: str, text: str, value: object) -> None:
    """And is written to the settings of a run, and read from there, as the same value."""
    made = structure(More, {field: from_text(field_types(More)[field], text)}, "part")
    assert getattr(made, field) == value
    assert type(getattr(made, field)) is type(value)
    document = tomli_w.dumps({"part": plain(made)})
    assert structure(More, tomllib.loads(document)["part"], "part") == made
    assert json.loads(json.dumps(plain(made))) == plain(made)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("side", "up", "expected one of left, right, got 'up'."),
        ("level", "2", "expected one of LOW, HIGH, got '2'."),
        ("levels", ["LOW", "MID"], "expected one of LOW, HIGH, got 'MID'."),
        ("band", [1.0], "expected 2 values, got 1: [1.0]."),
        ("band", [1.0, 2.0, 3.0], "expected 2 values, got 3: [1.0, 2.0, 3.0]."),
        ("band", [], "expected 2 values, got 0: []."),
        ("band", [1.0, "x"], "expected a number, got 'x'."),
        ("named", ["x", 3], "expected a whole number, got 'x'."),
        ("lengths", "12", "expected a list, got '12'."),
        ("lengths", [1, 2.5], "expected a whole number, got 2.5."),
    ],
)
def test_a_word_list_or_pair_that_does_not_fit_is_refused(field: str, value: object, message: str) -> None:
    """One number was accepted where two were asked for, and text became a list of its letters."""
    with pytest.raises(SettingsError, match=rf"^`part\.{field}=\.\.\.`: {re.escape(message)}$"):
        structure(More, {field: value}, "part")


def test_python_may_give_members_and_values_of_an_enum() -> None:
    kinds = field_types(More)
    given = {
        "side": Side.RIGHT,
        "level": Level.HIGH,
        "levels": [Level.LOW, 2],
        "files": ["a"],
        "band": np.array([1, 2]),
    }
    made = structure(More, {name: from_value(kinds[name], value) for name, value in given.items()}, "part")
    assert made == More(Side.RIGHT, Level.HIGH, (Level.LOW, Level.HIGH), (1.0, 2.0), files=(Path("a").absolute(),))


def test_help_lists_the_members_of_an_enum_and_the_places_of_a_pair() -> None:
    words = {field.name: metavar_of(field, field_types(More)[field.name]) for field in attrs.fields(More)}
    assert words == {
        "side": "left|right", "level": "LOW|HIGH", "levels": "A,B,…", "band": "A,B", "named": "A,B",
        "lengths": "A,B,…", "files": "A,B,…",
    }  # fmt: skip
