"""Options are read strictly: what a user wrote is used as written, or refused with a sentence."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Literal

import attrs
import numpy as np
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from clocs_core.errors import SettingsError
from clocs_core.settings.options import (
    field_types,
    from_text,
    from_value,
    help_of,
    metavar_of,
    option,
    plain,
    structure,
)


@attrs.frozen
class Everything:
    """One field of every type that an option may have."""

    whole: int = option(1, "a whole number")
    share: float = option(0.5, "a number", check=(lambda x: not x < 0, "not be negative"))
    switch: bool = option(False, "true or false")
    word: str = option("", "text")
    mode: Literal["fast", "slow", 3] = option("fast", "one of three")
    maybe: float | None = option(None, "a number, or none")
    maybe_words: tuple[str, ...] | None = option(None, "words, or none")
    numbers: tuple[int, ...] = option((), "whole numbers")
    grid: tuple[tuple[int, ...], ...] = option((), "rows of whole numbers")
    size: int = option(8, "a power of two", choices=(8, 16))


def refused(**values: object) -> str:
    with pytest.raises(SettingsError) as caught:
        structure(Everything, values, "part")
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("whole", 2.7, "`part.whole=...`: expected a whole number, got 2.7."),
        ("whole", 2.0, "`part.whole=...`: expected a whole number, got 2.0."),
        ("whole", True, "`part.whole=...`: expected a whole number, got True."),
        ("whole", "3", "`part.whole=...`: expected a whole number, got '3'."),
        ("whole", "none", "`part.whole=...`: expected a whole number, got 'none'."),
        ("share", True, "`part.share=...`: expected a number, got True."),
        ("share", "0.5", "`part.share=...`: expected a number, got '0.5'."),
        ("switch", "false", "`part.switch=...`: expected true or false, got 'false'."),
        ("switch", 0, "`part.switch=...`: expected true or false, got 0."),
        ("word", 3, "`part.word=...`: expected text, got 3."),
        ("word", ["a"], "`part.word=...`: expected text, got ['a']."),
        ("mode", "fsat", "`part.mode=...`: expected one of fast, slow, 3, got 'fsat'."),
        ("mode", "3", "`part.mode=...`: expected one of fast, slow, 3, got '3'."),
        ("maybe", "nothing", "`part.maybe=...`: expected a number, got 'nothing'."),
        ("maybe_words", "ab", "`part.maybe_words=...`: expected a list, got 'ab'."),
        ("numbers", "12", "`part.numbers=...`: expected a list, got '12'."),
        ("numbers", 12, "`part.numbers=...`: expected a list, got 12."),
        ("numbers", [1, 2.5], "`part.numbers=...`: expected a whole number, got 2.5."),
        ("numbers", {"a": 1}, "`part.numbers=...`: expected a list, got {'a': 1}."),
        ("grid", [[1], 2], "`part.grid=...`: expected a list, got 2."),
        ("grid", [[1], ["2"]], "`part.grid=...`: expected a whole number, got '2'."),
    ],
)
def test_a_value_of_another_type_is_refused_and_named(key: str, value: object, message: str) -> None:
    """cattrs alone would turn 2.7 into 2, "false" into True and "12" into ('1', '2'): silent, and wrong."""
    assert refused(**{key: value}) == message


def test_a_whole_number_is_a_number() -> None:
    """`gain = 1` in TOML is an integer; nobody should have to write 1.0."""
    made = structure(Everything, {"share": 1, "maybe": 2}, "part")
    assert (made.share, made.maybe) == (1.0, 2.0)
    assert type(made.share) is float
    assert type(made.maybe) is float


def test_none_is_written_as_a_word() -> None:
    """TOML has no null, and a user must be able to undo a default."""
    made = structure(Everything, {"maybe": "none", "maybe_words": "none"}, "part")
    assert made.maybe is None
    assert made.maybe_words is None
    assert plain(made)["maybe"] == "none"


def test_lists_become_tuples_all_the_way_down() -> None:
    """A record that is frozen must not hold a list that is not."""
    made = structure(Everything, {"grid": [[1, 2], []], "maybe_words": ["a"]}, "part")
    assert made.grid == ((1, 2), ())
    assert made.maybe_words == ("a",)


def test_an_unknown_key_answers_with_its_neighbour() -> None:
    assert refused(shre=1.0) == "[part] has no option 'shre'. Did you mean 'share'?"


def test_an_unknown_key_far_from_all_others_answers_with_all_of_them() -> None:
    message = refused(zzz=1)
    assert message.startswith("[part] has no option 'zzz'. There is: grid, maybe, ")
    assert message.endswith("word.")


def test_an_unknown_key_of_a_part_without_options_says_so() -> None:
    @attrs.frozen
    class Nothing:
        pass

    with pytest.raises(SettingsError, match=r"^\[part\] has no option 'a'\. It has none\.$"):
        structure(Nothing, {"a": 1}, "part")


def test_a_rule_says_what_was_broken_and_by_what() -> None:
    assert refused(share=-1.0) == "`part.share=...`: must not be negative, got -1.0."


def test_a_value_in_a_file_of_ours_is_named_without_an_argument() -> None:
    with pytest.raises(SettingsError, match=r"^part\.share: must not be negative, got -1\.0\.$"):
        structure(Everything, {"share": -1.0}, "part", arguments=False)


def test_a_choice_lists_the_choices() -> None:
    assert refused(size=9) == "`part.size=...`: must be one of 8, 16, got 9."


def test_a_rule_over_several_fields_names_the_table() -> None:
    """A class may forbid a combination; no single field is to blame."""

    @attrs.frozen
    class Either:
        """At most one."""

        a: int = option(0, "one way")
        b: int = option(0, "another way")

        def __attrs_post_init__(self) -> None:
            if self.a and self.b:
                raise ValueError("give a or b.")

    with pytest.raises(SettingsError, match=r"^\[part\] give a or b\.$"):
        structure(Either, {"a": 1, "b": 1}, "part")


def test_a_value_with_an_at_sign_is_quoted_whole() -> None:
    """The message is cut out of a longer one at ' @ '; an address must not end up as the name of a key."""
    assert refused(whole="me @ home") == "`part.whole=...`: expected a whole number, got 'me @ home'."


def test_a_field_without_a_default_must_be_given() -> None:
    @attrs.frozen
    class Needy:
        must: int
        may: int = 2

    with pytest.raises(SettingsError, match=r"^`part\.must=\.\.\.`: it has no default, and must be given\.$"):
        structure(Needy, {}, "part")
    assert structure(Needy, {"must": 1}, "part") == Needy(1)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("whole", "12", 12),
        ("whole", "-3", -3),
        ("whole", "2.7", "2.7"),
        ("whole", "", ""),
        ("share", "1e-4", 1e-4),
        ("share", "3", 3.0),
        ("share", "a tenth", "a tenth"),
        ("switch", "true", True),
        ("switch", "False", False),
        ("switch", "yes", "yes"),
        ("switch", "1", "1"),
        ("word", "none", "none"),
        ("word", "12", "12"),
        ("mode", "slow", "slow"),
        ("mode", "3", 3),
        ("mode", "4", "4"),
        ("maybe", "none", "none"),
        ("maybe", "None", "none"),
        ("maybe", "0.2", 0.2),
        ("maybe", "x", "x"),
        ("maybe_words", "none", "none"),
        ("maybe_words", "a, b", ["a", "b"]),
        ("numbers", "1,2,", [1, 2]),
        ("numbers", "1", [1]),
        ("numbers", "", []),
        ("numbers", "1,x", [1, "x"]),
    ],
)
def test_text_is_read_as_the_type_of_its_field(field: str, text: str, value: object) -> None:
    """What follows `-o name=` is text; text that does not fit stays text, so that it is refused and quoted."""
    read = from_text(field_types(Everything)[field], text)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(("field", "text"), [("whole", "2.7"), ("switch", "yes"), ("mode", "4"), ("numbers", "1,x")])
def test_text_that_does_not_fit_is_refused_with_the_text(field: str, text: str) -> None:
    assert repr(text.split(",")[-1]) in refused(**{field: from_text(field_types(Everything)[field], text)})


# "none" is the one word that text cannot say where nothing is allowed.
words = st.text(max_size=6).filter(lambda text: text != "none")
whole = st.integers(-(2**62), 2**62)
anything = st.builds(
    Everything,
    whole=whole,
    share=st.floats(min_value=0, allow_nan=False),
    switch=st.booleans(),
    word=words,
    mode=st.sampled_from(["fast", "slow", 3]),
    maybe=st.none() | st.floats(allow_nan=False),
    maybe_words=st.none() | st.lists(words, max_size=3).map(tuple),
    numbers=st.lists(whole, max_size=3).map(tuple),
    grid=st.lists(st.lists(whole, max_size=2).map(tuple), max_size=2).map(tuple),
    size=st.sampled_from([8, 16]),
)


@given(anything)
def test_plain_values_make_the_same_options_again(made: Everything) -> None:
    """A run is repeated from the file that it wrote; nothing may change on the way."""
    assert structure(Everything, plain(made), "part") == made


@given(anything)
def test_toml_and_json_hold_plain_values(made: Everything) -> None:
    """settings.toml holds them, and so does report.json."""
    document = tomli_w.dumps({"part": plain(made)})
    assert structure(Everything, tomllib.loads(document)["part"], "part") == made
    finite = attrs.evolve(made, share=1.0, maybe=None if made.maybe is None or math.isinf(made.maybe) else made.maybe)
    assert structure(Everything, json.loads(json.dumps(plain(finite))), "part") == finite


@given(st.floats(min_value=0, allow_nan=False), whole)
def test_what_python_prints_can_be_typed(share: float, number: int) -> None:
    """Copying a number from a report into `-o` gives the same number, to the last bit."""
    kinds = field_types(Everything)
    assert from_text(kinds["share"], repr(share)) == share
    assert from_text(kinds["whole"], repr(number)) == number


def test_help_stands_beside_the_field() -> None:
    """`clocs plugins --json` prints it."""
    fields = attrs.fields_dict(Everything)
    assert help_of(fields["maybe"]) == "a number, or none"


# -------------------------------------------------------------------------------------------- words for help, and paths


@attrs.frozen
class Places:
    """Fields with a path, and one with a word of its own."""

    folder: Path = option(Path(), "a path")
    maybe_folder: Path | None = option(None, "a path, or none")
    rate: float = option(1.0, "a number", metavar="HZ")


@pytest.mark.parametrize(
    ("cls", "field", "word"),
    [
        (Everything, "whole", "N"),
        (Everything, "share", "X"),
        (Everything, "maybe", "X"),
        (Everything, "switch", "true|false"),
        (Everything, "word", "TEXT"),
        (Everything, "mode", "fast|slow|3"),
        (Everything, "maybe_words", "A,B,…"),
        (Places, "folder", "PATH"),
        (Places, "maybe_folder", "PATH"),
        (Places, "rate", "HZ"),
    ],
)
def test_the_word_for_a_value_is_its_own_or_follows_from_its_type(cls: type, field: str, word: str) -> None:
    assert metavar_of(attrs.fields_dict(cls)[field], field_types(cls)[field]) == word


@pytest.mark.parametrize("field", ["folder", "maybe_folder"])
def test_a_typed_path_is_the_same_from_another_folder(
    field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert from_text(field_types(Places)[field], "a/b") == tmp_path / "a" / "b"


def test_a_path_is_written_as_text_and_read_as_a_path() -> None:
    made = Places(folder=Path("/a"), maybe_folder=Path("/b"))
    assert plain(made) == {"folder": "/a", "maybe_folder": "/b", "rate": 1.0}
    assert structure(Places, plain(made), "part") == made
    assert structure(Places, plain(Places()), "part").maybe_folder is None


def test_a_set_is_refused_because_its_order_changes_from_process_to_process() -> None:
    with pytest.raises(SettingsError, match="is a set, which has no order; give a list"):
        from_value(tuple[str, ...], {"II", "V1"})


def test_a_number_is_no_path() -> None:
    with pytest.raises(SettingsError, match=r"^`part\.folder=\.\.\.`: expected a path, got 3\.$"):
        structure(Places, {"folder": 3}, "part")


@pytest.mark.parametrize(
    ("field", "value", "read"),
    [
        ("numbers", np.array([1, 2]), [1, 2]),
        ("grid", np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        ("grid", [(1,), np.array([2])], [[1], [2]]),
        ("switch", np.True_, True),
        ("maybe_words", "none", "none"),
        ("maybe_words", "a,b", ["a", "b"]),
        ("word", "a,b", "a,b"),
        ("numbers", None, "none"),
    ],
)
def test_a_value_from_python_becomes_one_that_a_file_can_hold(field: str, value: object, read: object) -> None:
    found = from_value(field_types(Everything)[field], value)
    assert found == read
    assert type(found) is type(read)
    assert tomllib.loads(tomli_w.dumps({"x": found})) == {"x": read}
