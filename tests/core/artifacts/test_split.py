"""split.json: any split reads back, and one that was changed by hand is refused."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clocs_core.artifacts.split import PARTS, Split, from_json, to_json
from clocs_core.errors import DataError

EIGHT = Split({name: PARTS[n % 3] for n, name in enumerate("abcdefgh")}, 0, "60/20/20")


def test_the_hash_is_of_parts_and_patients_alone():
    """Written down by hand, so that other programs can compute it."""
    split = Split({"b": "train", "a": "test", "c": "train"}, 0, "60/20/20")
    assert split.hash == sha256(b"test\ta\ntrain\tb\ntrain\tc").hexdigest()
    assert split.hash == Split({"c": "train", "a": "test", "b": "train"}, 5, "64/16/20").hash
    assert split.hash != Split({"c": "train", "a": "train", "b": "test"}, 0, "60/20/20").hash


@given(
    st.dictionaries(st.text(max_size=6), st.sampled_from(PARTS), min_size=3, max_size=60),
    st.integers(0, 2**40),
    st.sampled_from(("60/20/20", "64/16/20")),
)
def test_text_and_back_is_the_same_split(parts, seed, rule):
    """Any patient name survives, surrogate-free Unicode and line breaks included."""
    split = Split(parts, seed, rule)
    assert from_json(to_json(split)) == split


def test_an_edited_split_is_refused():
    """Moving a patient by hand between parts of a finished run must not go unnoticed."""
    held = json.loads(to_json(EIGHT))
    held["patients"]["train"].append(held["patients"]["test"].pop())
    with pytest.raises(DataError, match="do not match its hash"):
        from_json(json.dumps(held))


def test_a_patient_listed_in_two_parts_is_refused():
    """The later part would win in silence and the hash might still agree."""
    held = json.loads(to_json(EIGHT))
    held["patients"]["train"].append(held["patients"]["test"][0])
    with pytest.raises(DataError, match="was changed after it was written"):
        from_json(json.dumps(held))


@pytest.mark.parametrize("text", ["", "{}", "[]", "7", '{"schema": 1}', '{"schema": 1, "patients": {"train": 3}}'])
def test_what_is_no_split_says_so(text):
    with pytest.raises(DataError, match="not a split of patients"):
        from_json(text)


def test_a_split_of_another_schema_says_so():
    with pytest.raises(DataError, match="has schema 9, expected 1"):
        from_json('{"schema": 9}')


@pytest.mark.parametrize(
    ("key", "value"),
    [("seed", "x"), ("seed", True), ("seed", -1), ("patients", []), ("rule", 3), ("schema", True), ("hash", None)],
)
def test_a_value_of_another_type_is_refused(key, value):
    held = json.loads(to_json(Split({"a": "train", "b": "test"}, 0, "60/20/20")))
    with pytest.raises(DataError):
        from_json(json.dumps({**held, key: value}))


@pytest.mark.parametrize("patients", ["ab", [1], None])
def test_patients_that_are_no_names_are_refused(patients):
    held = json.loads(to_json(Split({"a": "train", "b": "test"}, 0, "60/20/20")))
    held["patients"]["train"] = patients
    with pytest.raises(DataError, match="the patients of 'train' are no list of names"):
        from_json(json.dumps(held))


def test_a_split_nested_too_deeply_is_refused():
    with pytest.raises(DataError, match="not a split of patients"):
        from_json("[" * 100_000)
