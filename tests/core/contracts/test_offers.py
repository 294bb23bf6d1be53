"""Offers refuse what cannot be meant, when they are made."""

from __future__ import annotations

import pytest

from clocs_core.contracts.offers import Encoder, Needs, Reader, Variant


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


@pytest.mark.parametrize(
    ("readers", "problem"),
    [
        ([{"name": "a"}, {"name": "a"}], "a name of their own for each of 2 encoders, got"),
        ([{"name": "a", "channels": (1, 1)}], r"channels must be a number from 0 on and a larger one or None"),
        ([{"name": "a", "average": 0}], "average"),
        ([{"name": "A b"}], "Reader has the name 'A b'"),
        ([{"name": "a", "options": {"widths": (1,)}}], "must name the encoder that has them"),
    ],
)
def test_readers_that_cannot_be_meant_are_refused(readers, problem):
    with pytest.raises(ValueError, match=problem):
        Needs(channels="all", encoder_channels="all", readers=tuple(Reader(**one) for one in readers))


def test_readers_need_views_of_all_channels_and_count_the_encoders():
    readers = (Reader(name="a", channels=(1, 3)), Reader(name="b", channels=(3, None)))
    needs = Needs(channels="all", encoder_channels="all", readers=readers)
    assert (needs.encoders, needs.channels_at_least) == (2, 4)
    assert needs.of_first(("w", "x", "y", "z")) == ("x", "y")
    with pytest.raises(ValueError, match='encoder_channels must be "all"'):
        Needs(channels="all", readers=readers)
    with pytest.raises(ValueError, match="for each of 3 encoders"):
        Needs(channels="all", encoder_channels="all", encoders=3, readers=readers)
