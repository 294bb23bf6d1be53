"""Offers refuse what cannot be meant, when they are made."""

from __future__ import annotations

import pytest

from clocs_core.contracts.offers import Encoder, Needs, Variant


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"encoder_channels": "all"}, "an instance of each channel has one channel"),
        ({"first_channels": (-1, None)}, "first_channels must be a number from 0 on"),
        ({"first_channels": (2, 2)}, r"a larger one or None, got \(2, 2\)"),
        ({"channels": "all", "encoder_channels": "all", "first_channels": (0, 1)}, "cannot be evaluated on some"),
    ],
)
def test_needs_that_contradict_each_other_are_refused(fields, problem):
    with pytest.raises(ValueError, match=problem):
        Needs(**fields)


def test_the_first_encoder_reads_a_stretch_of_the_channels():
    assert Needs(first_channels=(1, 3)).of_first(("a", "b", "c", "d")) == ("b", "c")
    assert Needs(first_channels=(1, None)).of_first(("a", "b", "c")) == ("b", "c")
    assert Needs().of_first(("a", "b")) == ("a", "b")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"name": "One Layer"}, "One Layer"),
        ({"summary": "two\nlines"}, "needs a summary of one line"),
        ({"options": dict}, "encoder 'one': options must be an attrs class"),
    ],
)
def test_an_offer_has_a_plain_name_a_line_and_attrs_options(changes, problem):
    with pytest.raises(ValueError, match=problem):
        Encoder(**{"name": "one", "summary": "One layer.", "build": print} | changes)


def test_a_variant_has_a_line():
    with pytest.raises(ValueError, match="Variant needs a summary of one line"):
        Variant(summary="", presets={})
