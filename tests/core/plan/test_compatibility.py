"""What of a signal fits a classifier: channels by name, units of voltage, frames that last as long as in training."""

from __future__ import annotations

import attrs
import pytest
from fake_encoders import fake_card
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_core.artifacts.card import ClassifierCard
from clocs_core.contracts.records import Framing
from clocs_core.errors import DataError, SettingsError
from clocs_core.plan.compatibility import (
    fit_channels,
    fit_framing,
    fit_names,
    fit_unit,
    refuse_unseen,
    warn_of_length,
)

CARD = fake_card(ClassifierCard, init="method", fraction=1.0)
TOGETHER = attrs.evolve(CARD, input_channels=2)


# ------------------------------------------------------------------------------------------------------------- channels


def test_channels_are_found_by_name_wherever_they_lie():
    found = ("V1", "V2", "I", "II")
    assert fit_channels(CARD, found, (), "x") == fit_channels(TOGETHER, found, (), "x") == ("II", "V2")
    assert fit_channels(CARD, found, ("I",), "x") == ("I",)


def test_a_classifier_of_several_channels_gets_them_in_its_own_order():
    """It knows them by their place; whoever types them in another order means the same ones."""
    assert fit_channels(TOGETHER, ("V2", "II"), ("V2", "II"), "x") == ("II", "V2")
    with pytest.raises(SettingsError, match="The classifier reads II, V2 at once, got II; leave out `channels`"):
        fit_channels(TOGETHER, ("V2", "II"), ("II",), "x")


def test_a_missing_channel_is_refused_with_what_is_there():
    with pytest.raises(DataError) as raised:
        fit_channels(CARD, ("II", "v2"), (), "ecg.csv")
    assert str(raised.value) == (
        "ecg.csv has no channel 'V2'. There is: II, v2. The classifier was trained on II, V2, each by itself; to read "
        "those that are there, add `channels=['II']`."
    )
    with pytest.raises(DataError, match=r"There is: II\. The classifier was trained on II, V2, at once\.$"):
        fit_channels(TOGETHER, ("II",), (), "ecg.csv")
    with pytest.raises(
        DataError, match=r"no channel 'II'\. Did you mean 'MLII'\?.* another, name it with `channels=NAME`"
    ):
        fit_channels(CARD, ("MLII", "V5"), (), "ecg.csv")
    with pytest.raises(SettingsError, match="A channel is named twice in II, II"):
        fit_channels(CARD, ("II",), ("II", "II"), "x")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("ii", "V2"), ("II", "V2")),
        (("Lead II", "LEAD_V2"), ("II", "V2")),
        ((" v2 ", "lead"), ("V2", "lead")),
        (("MLII", "I"), ("MLII", "I")),  # near, and another place on the body
        (("ii", "II"), ("ii", "II")),  # one of them is another channel; nobody here knows which
    ],
)
def test_names_that_differ_in_spelling_alone_are_the_same(names, expected):
    assert fit_names(CARD, names) == expected


def test_a_name_that_two_channels_fit_is_nobodys():
    """A device may tell x and X apart."""
    assert fit_names(attrs.evolve(CARD, channels=("x", "X")), ("lead x", "X")) == ("lead x", "X")


@pytest.mark.parametrize(
    ("channels", "names", "message"),
    [
        (
            ("II", "V2"),
            ("MLII",),
            "The signal: the classifier was trained on II, V2, not on 'MLII' (nearest in name: II). If it is one of "
            "these under another name, give it that name: `channels='II'`. To read it all the same, add "
            "`unseen_channels=True`.",
        ),
        (("II", "V2"), ("PLETH",), "If it is one of these under another name, give it that name. To read"),
        (("II", "V2"), ("ECG_V2",), "not on 'ECG_V2' (nearest in name: V2)."),
        (("ECG",), ("II",), "If it is the same under another name, give it that name: `channels='ECG'`. To read"),
        (("II", "V2"), ("V2", "III"), "not on 'III' (nearest in name: II). If it is"),
        (("II", "V2"), ("II", "V2", "III"), "not on 'III'. Without it, the others can be read. To read it all"),
        (("II",), ("I", "III"), "not on 'I' (nearest in name: II), 'III' (nearest in name: II). If any is the same"),
        (
            ("II", "V2"),
            ("I", "V2", "V9"),
            "'V9'. If any is one of these under another name, give it that name. Without ",
        ),
    ],
)
def test_a_channel_that_it_never_saw_is_refused_with_the_nearest(channels, names, message):
    """Numbers come out of any signal; a lead that is already there is no suggestion for another."""
    card = attrs.evolve(CARD, channels=channels)
    with pytest.raises(DataError) as raised:
        refuse_unseen(card, names, "The signal", len(names) == 1)
    assert message in str(raised.value)


def test_channels_of_training_are_not_refused_and_a_files_own_names_not_made_up():
    """Where a file names its channel, a user cannot: `channels='II'` would find no such channel."""
    refuse_unseen(CARD, ("V2", "II"), "x", True)
    with pytest.raises(DataError, match=r"give it that name\. To read it all the same, add `unseen_channels=True`\.$"):
        refuse_unseen(CARD, ("MLII",), "x", False)


# ---------------------------------------------------------------------------------------------------------------- units


@pytest.mark.parametrize(
    ("unit", "expected"), [("mV", 1.0), ("V", 1000.0), ("uV", 0.001), ("µV", 0.001), ("μV", 0.001)]
)
def test_voltages_of_all_sizes_convert(unit, expected):
    assert fit_unit(CARD, unit, "x") == expected


def test_other_units_are_refused_and_none_is_only_where_it_matters():
    """Between 0 and 1 nothing is left of a scale; without, a factor of 1000 is another signal."""
    with pytest.raises(
        DataError, match=r"x is in mmHg, .* signals in mV: these cannot be converted .* `normalise='min-max'`"
    ):
        fit_unit(CARD, "mmHg", "x")
    with pytest.raises(DataError, match="x is in counts, "):
        fit_unit(CARD, "counts", "x")
    with pytest.raises(DataError, match=r"x does not say its unit, .* add `unit='mV'`"):
        fit_unit(CARD, "", "x")
    normalised = attrs.evolve(CARD, normalise="min-max")
    assert fit_unit(normalised, "", "x") == fit_unit(normalised, "counts", "x") == 1.0
    assert fit_unit(attrs.evolve(normalised, unit="counts"), "mV", "x") == 1.0
    assert fit_unit(attrs.evolve(normalised, normalise="z-score"), "", "x") == 1.0
    with pytest.raises(DataError, match="does not say its unit"):
        fit_unit(attrs.evolve(normalised, normalise="constant", constant=0.2), "", "x")
    with pytest.raises(DataError, match=r"cannot be converted .* another word, add `unit='mV'`"):
        fit_unit(normalised, "mmHg", "x")
    assert fit_unit(attrs.evolve(CARD, unit=""), "mmHg", "x") == 1.0  # nobody knows what it was trained on


@pytest.mark.parametrize(
    ("reads", "unit", "add"),
    [
        ("mV", "mv", "mV"),
        ("mV", "millivolts", "mV"),
        ("mV", "Volt", "V"),
        ("mV", "\u00b5v", "uV"),
        ("mV", "bpm", "mV"),
        ("mmHg", "mv", "mmHg"),
    ],
)
def test_another_word_for_a_unit_is_answered_with_the_right_one(reads, unit, add):
    """It is not taken: MV are megavolts, and a factor of a billion is nothing to guess."""
    with pytest.raises(DataError, match=f"is only another word, add `unit='{add}'`"):
        fit_unit(attrs.evolve(CARD, unit=reads), unit, "x")


# ----------------------------------------------------------------------------------------------------------- time scale


def test_a_framing_that_sets_its_own_time_scale_stays_what_it_is():
    for framing in (Framing(100, sampling_rate=50.0), Framing(100, frames_per_record=2)):
        card = attrs.evolve(CARD, framing=framing, says_rate=False, frame_rate=None)
        assert fit_framing(card, 400.0, None) == framing


def test_frames_of_whole_recordings_last_as_long_as_in_training():
    """Ten minutes were squeezed into a frame of ten seconds: another heart rate, without a word."""
    stretched = attrs.evolve(CARD, framing=Framing(100, frames_per_record=2), frame_rate=20.0)  # frames of 5 s
    either = Framing(100, sampling_rate=20.0, frames_per_record=2)
    assert fit_framing(stretched, 500.0, None) == either
    assert fit_framing(stretched, None, None) == either  # of a data set, whose recordings may differ
    for seconds, alike in ((10.0, True), (9.99, True), (9.0, False), (600.0, False)):
        assert either.stretches(round(500 * seconds), 500.0) == alike
    assert warn_of_length(stretched) == warn_of_length(CARD) == ""
    unknown = attrs.evolve(stretched, frame_rate=None)
    assert fit_framing(unknown, 500.0, None) == unknown.framing
    assert "stretched to 2 frames each, and its file does not say how long they lasted" in warn_of_length(unknown)


def test_recordings_of_the_rate_of_training_are_cut_as_in_training():
    windows = attrs.evolve(CARD, framing=Framing(100, source_samples=50), frame_rate=400.0)  # recorded at 200 Hz
    assert fit_framing(windows, 200.0, None) == windows.framing
    plain = attrs.evolve(CARD, frame_rate=200.0)
    assert fit_framing(plain, 200.0, None) == plain.framing
    assert fit_framing(CARD, 123.0, None) == CARD.framing  # trained on several rates, each at its own


def test_windows_of_another_rate_are_longer_by_as_much():
    windows = attrs.evolve(CARD, framing=Framing(100, source_samples=50, keep_flat=True), frame_rate=400.0)
    assert fit_framing(windows, 400.0, None) == Framing(100, source_samples=100, keep_flat=True)
    assert fit_framing(windows, 250.5, None) == Framing(100, sampling_rate=400.0, keep_flat=True)
    assert fit_framing(windows, None, None) == Framing(100, sampling_rate=400.0, keep_flat=True)


@settings(max_examples=30)
@given(
    trained=st.integers(50, 1000),
    rate=st.integers(50, 1000),
    samples=st.integers(20, 3000),
    window=st.one_of(st.none(), st.integers(20, 3000)),
)
def test_a_frame_lasts_as_long_as_in_training(trained, rate, samples, window):
    """Whatever the rates: a heart beats no faster for being sampled more often."""
    card = attrs.evolve(CARD, framing=Framing(samples, source_samples=window), says_rate=False)
    framing = fit_framing(card, float(rate), float(trained))
    if framing.source_samples is not None:
        seconds = framing.source_samples / rate
    else:
        seconds = samples / (framing.sampling_rate or rate)
    assert seconds == pytest.approx((window or samples) / trained)


def test_a_file_that_does_not_say_its_rate_is_asked_about():
    silent = attrs.evolve(CARD, says_rate=False)
    with pytest.raises(SettingsError, match="its file does not say which that was; say it with `trained_at=HZ`"):
        fit_framing(silent, 400.0, None)
