"""The card of a network: every field comes back from the file, and a damaged description is one sentence."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path

import attrs
import pytest
from damaged_files import with_value
from fake_encoders import fake_card

from clocs_core.artifacts.card import ClassifierCard, EncoderCard, classifier_card, encoder_card
from clocs_core.contracts.records import Framing, Task
from clocs_core.contracts.scores import Score
from clocs_core.errors import RunFolderError

FILE = Path("some.file")

OTHER_THAN_DEFAULT = {
    "options": {"widths": [4, 2], "bias": True, "rate": None},
    "input_channels": 2,
    "average": 4,
    "normalise": "constant",
    "constant": 0.21,
    "framing": Framing(
        frame_samples=100, sampling_rate=250.0, resampler="polyphase", keep_flat=True, band_pass=(0.5, 40.0), notch=50.0
    ),
    "frame_rate": 250.0,
    "task": Task("rhythm", ("a", "b", "c"), kind="any_of", per="frame"),
    "split_hash": "abc",
    "settings": {"run": {"seed": 3}},
    "versions": {"clocs": "1.0", "plugin net": "nets 2.0"},
    "licence": "CC BY 4.0",
    "command": "clocs run --plugin m",
    "date": "2026-11-16 13:00 UTC",
}


def an_encoder():
    return fake_card(
        EncoderCard,
        **OTHER_THAN_DEFAULT,
        method="m",
        count=2,
        run_channels=("II", "V2", "aVR"),
        pretrain_framing=Framing(frame_samples=100, frames_per_record=4),
        scores=(Score("linear", "m", "set", 0.5, "auroc", "record", 1 / 3, 0.1, 0.9),),
    )


def a_classifier():
    return fake_card(
        ClassifierCard,
        **OTHER_THAN_DEFAULT,
        init="m",
        fraction=0.25,
        protocol="other",
        run_channels=("II", "V2"),  # a classifier file has its own channels only
        recorded=("I", "II", "V2"),
        encoder_sha256="f" * 64,
    )


def kinds():
    return [(an_encoder, encoder_card), (a_classifier, classifier_card)]


def described(card):
    """The description as a file holds it."""
    return json.loads(json.dumps(card.describe(), allow_nan=False))


@pytest.mark.parametrize(("make", "read"), kinds())
def test_every_field_comes_back_from_the_description(make, read):
    assert read(described(make()), FILE) == make()


@pytest.mark.parametrize(("make", "read"), kinds())
def test_every_field_with_a_default_is_tried_with_another_value(make, read):
    """A new field that is not written would come back as its default, and the test above would pass."""
    card = make()
    same = {
        field.name
        for field in attrs.fields(type(card))
        if field.default is not attrs.NOTHING and getattr(card, field.name) == field.default
    }
    assert same == {"says_rate"}  # the next test but one


def test_a_score_that_is_not_a_number_comes_back_as_one():
    nan = Score("linear", "m", "set", 1.0, "auroc", "frame", math.nan, math.nan, 0.5)
    (found,) = encoder_card(described(attrs.evolve(an_encoder(), scores=(nan,))), FILE).scores
    assert math.isnan(found.value)
    assert math.isnan(found.low)
    assert found.high == 0.5


def test_a_constant_is_in_the_file_of_a_network_that_divides_by_it_and_in_no_other():
    """A file of before there were constants reads as it was written."""
    about = described(an_encoder())
    del about["signal"]["constant"]
    with pytest.raises(RunFolderError, match="it has no 'constant'"):
        encoder_card(about, FILE)
    about["signal"]["normalise"] = "min-max"
    for framing in ("pretrain_framing", "evaluate_framing"):
        for name in ("band_pass", "notch"):
            del about["signal"][framing][name]
    old = encoder_card(about, FILE)
    assert (old.constant, old.framing.filters) == (None, {})
    assert "constant" not in old.describe()["signal"]


def test_a_file_of_before_the_frame_rate_says_so():
    """`frame_rate: null` is an answer: recordings were cut at rates of their own. No answer is another thing."""
    about = described(an_encoder())
    assert encoder_card(about, FILE).says_rate
    del about["signal"]["frame_rate"]
    found = encoder_card(about, FILE)
    assert (found.frame_rate, found.says_rate) == (None, False)
    again = encoder_card(described(attrs.evolve(found, scores=())), FILE)  # as when scores are added to an older file
    assert (again.frame_rate, again.says_rate) == (None, False)


def test_older_files_lack_what_has_a_meaning_when_it_is_missing():
    about = described(an_encoder())
    del about["signal"]["first_channels"]
    del about["scores"]
    found = encoder_card(about, FILE)
    assert found.channels == found.run_channels == ("II", "V2", "aVR")
    assert found.scores == ()
    del about["encoder"]["average"]
    assert encoder_card(about, FILE).average == 1
    about = described(a_classifier())
    del about["protocol"], about["signal"]["recorded"], about["encoder_sha256"]
    older = classifier_card(about, FILE)
    assert (older.protocol, older.recorded, older.encoder_sha256) == ("finetune", (), "")


def test_other_encoders_of_the_run_read_the_other_channels():
    assert an_encoder().others == ("aVR",)
    assert a_classifier().others == ()


def test_distributions_that_made_a_network_are_named_once():
    versions = {"clocs": "1.0", "torch": "2", "plugin a": "nets 2.0", "plugin b": "nets 2.0", "plugin c": "clocs 1.0"}
    assert attrs.evolve(an_encoder(), versions=versions).written_with == "clocs 1.0, nets 2.0"


def test_each_kind_of_file_is_refused_as_the_other():
    with pytest.raises(RunFolderError, match=r"^some.file is no encoder: it holds a classifier\."):
        encoder_card(described(a_classifier()), FILE)
    with pytest.raises(RunFolderError, match=r"^some.file is no classifier: it holds an encoder\."):
        classifier_card(described(an_encoder()), FILE)
    for read in (encoder_card, classifier_card):
        with pytest.raises(RunFolderError, match="it holds something else"):
            read({"schema": 1}, FILE)


def faults(about):
    """Every way to leave out one key, or to put something else in the place of a table."""
    optional = {"schema", "scores", "protocol", "encoder_sha256", "head", "command", "date"}
    inner_optional = {"first_channels", "frame_rate", "recorded", "average"}
    for key in about.keys() - optional - {"encoder"}:
        yield (key,), None
    for table in ("encoder", "signal", "task"):
        yield (table,), 7
        yield (table,), []
        for key in about[table].keys() - inner_optional - {"kind", "per"}:
            yield (table, key), None


def damaged(about, path, value):
    about = copy.deepcopy(about)
    place = about[path[0]] if len(path) > 1 else about
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return about


@pytest.mark.parametrize(("make", "read"), kinds())
def test_a_damaged_description_is_one_sentence(make, read):
    whole = described(make())
    for path, value in faults(whole):
        with pytest.raises(RunFolderError) as caught:
            read(damaged(whole, path, value), FILE)
        message = str(caught.value)
        assert message.startswith("The description in some.file is damaged: "), (path, value)
        assert message.endswith(".")
        assert "\n" not in message
        if len(path) > 1:
            assert path[-1] in message, (path, message)


OTHER_TYPES = [None, True, -1, 0, 2.5, 1e300, 10**30, "", "text", [], [7], ["II", 7], {}, {"a": 1}, {"a": "b"}]
FREE = ("settings", "options")  # the tables of settings and options hold what a plugin declared


def values_in(about, path=()):
    """The place of every value of a description, but for the content of free tables."""
    for key, value in about.items():
        yield (*path, key)
        if isinstance(value, dict) and key not in FREE:
            yield from values_in(value, (*path, key))


@pytest.mark.parametrize(("make", "read"), kinds())
def test_a_value_of_another_type_is_refused_or_is_of_the_type(make, read):
    """Never a traceback, and never a card with text where a number belongs."""
    whole, card = described(make()), make()
    refused = []
    for path in values_in(whole):
        for other in OTHER_TYPES:
            damaged = with_value(whole, path, lambda _, other=other: other)
            try:
                found = read(damaged, FILE)
            except RunFolderError as problem:
                refused.append(str(problem))
                continue
            for field in attrs.fields(type(card)):
                both = {type(getattr(one, field.name)) for one in (card, found)}
                assert len(both - {type(None), int, float}) <= 1, (path, other, field.name)
    assert len(refused) > 200
    assert not any("\n" in message for message in refused)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("encoder", "count"), "2", "count is '2', expected a positive whole number"),
        (("encoder", "embedding_dim"), 8.0, "embedding_dim is 8.0, expected a positive whole number"),
        (("encoder", "options"), [], "options is [], expected a table"),
        (("signal", "channels"), "II", "channels is 'II', expected a list"),
        (("signal", "first_channels"), [1], "channels is (1,), expected a list of names"),
        (("signal", "frame_rate"), "500", "frame_rate is '500', expected a positive number, or null"),
        (("signal", "normalise"), "max", "normalise is 'max', expected one of min-max, none, z-score, constant"),
        (("signal", "constant"), None, "constant is None, expected a positive number"),
        (("signal", "constant"), -1.0, "constant is -1.0, expected a positive number"),
        (("settings",), {"run": 3}, "settings is {'run': 3}, expected a table of tables"),
        (("versions",), {"clocs": 1}, "versions is {'clocs': 1}, expected a table of texts"),
        (("task", "classes"), "ab", "task.classes: expected a list, got 'ab'"),
        (("scores",), {}, "scores is {}, expected a list"),
        (("encoder", "layers"), 3, "it has a field 'encoder.layers' that this version of clocs does not know"),
        (("colour",), 3, "it has a field 'colour' that this version of clocs does not know"),
    ],
)
def test_the_message_names_the_field_what_was_found_and_what_was_expected(path, value, message):
    about = copy.deepcopy(described(an_encoder()))
    place = about[path[0]] if len(path) > 1 else about
    place[path[-1]] = value
    with pytest.raises(RunFolderError) as caught:
        encoder_card(about, FILE)
    assert str(caught.value) == f"The description in some.file is damaged: {message}."


def test_a_score_of_another_type_is_refused():
    about = described(an_encoder())
    about["scores"][0]["value"] = "0.5"
    with pytest.raises(RunFolderError, match=r"expected a number, got '0\.5'"):
        encoder_card(about, FILE)
