"""The hash of the labels of a run's recordings."""

from __future__ import annotations

import json
from hashlib import sha256
from types import SimpleNamespace

import pytest

from clocs_core.contracts.records import Entry, Episode
from clocs_core.workflows.summary import summarise_recordings


def hash_of(label):
    prepared = SimpleNamespace(fingerprint="f", checksums={})
    listing = SimpleNamespace(entries=(Entry("r", "p", label),))
    split = SimpleNamespace(parts={"p": "train"}, hash="s")
    return summarise_recordings(
        SimpleNamespace(listing=listing, split=split, pretrain=prepared, evaluate=prepared)
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
