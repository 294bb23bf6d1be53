"""The hash of the labels of a run's recordings."""

from __future__ import annotations

import json
from hashlib import sha256
from types import SimpleNamespace

import pytest

from clocs_core.contracts.records import Column, Entry, Episode
from clocs_core.workflows.summary import summarise_recordings


def hash_of(label, columns=(), **about):
    prepared = SimpleNamespace(fingerprint="f", checksums={})
    listing = SimpleNamespace(entries=(Entry("r", "p", label, about=about),))
    split = SimpleNamespace(parts={"p": "train"}, hash="s")
    return summarise_recordings(
        SimpleNamespace(listing=listing, split=split, pretrain=prepared, evaluate=prepared, columns=columns)
    ).labels


@pytest.mark.parametrize(
    ("label", "plain"),
    [
        (None, None),
        (2, 2),
        (frozenset({2, 0}), [[0], [2]]),
        ((Episode(9, 12, 1), Episode(0, 12, 10), Episode(0, 12, 9)), [[0, 12, 9], [0, 12, 10], [9, 12, 1]]),
        ((Episode(0, 5, frozenset({1, 0})), Episode(0, 5, 2)), [[0, 5, [0, 1]], [0, 5, 2]]),
        ((Episode(0, 5, frozenset()),), [[0, 5, []]]),
    ],
)
def test_labels_are_hashed_as_plain_values_in_order(label, plain):
    """The hash of a run from before sets in episodes stays, so that it can be resumed."""
    assert hash_of(label) == sha256(json.dumps([["r", "p", plain]]).encode()).hexdigest()


def test_columns_that_a_run_uses_are_hashed_with_the_labels():
    """Another age is another run; a column that no method reads changes nothing."""
    age = (Column("age"),)
    assert hash_of(1, age, age=50.0) != hash_of(1, age, age=51.0)
    assert hash_of(1, age, age=50.0, site="a") == hash_of(1, age, age=50.0, site="b")
    assert hash_of(1, age=50.0) == hash_of(1)
