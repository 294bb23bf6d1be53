"""A recording of one's own as frames: what it says of itself must make sense, and what it does not say is asked for."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from fake_encoders import fake_card

from clocs_core.artifacts.card import NetworkCard
from clocs_core.contracts.records import Framing
from clocs_core.data.signal_file import SignalFile
from clocs_core.errors import DataError
from clocs_core.inference.signals import Unsaid, cut_own_frames

CARD = fake_card(NetworkCard, normalise="min-max", frame_rate=100.0)


def cut(held, card=CARD, **unsaid):
    told = []
    return cut_own_frames(card, held, "mine", Unsaid(**unsaid), told.append), told


def noise(channels=1, samples=400):
    return np.random.default_rng(0).normal(size=(channels, samples))


# ------------------------------------------------------------------------------------------------------------- channels


def test_of_a_file_that_names_its_channels_those_of_training_are_read_and_more_is_no_mistake():
    """Twelve leads are there for an encoder of two; nobody asked for the others."""
    rows, told = cut(SignalFile(noise(3), ("PLETH", "v2", "Lead II"), 100.0))
    assert (rows.channels, told) == (("II", "V2"), [])


@pytest.mark.parametrize("named", [True, False])
def test_a_channel_that_was_asked_for_and_never_seen_needs_a_word(named):
    held = SignalFile(noise(), ("PLETH",) if named else None, 100.0)
    with pytest.raises(DataError, match=r"mine: the network was trained on II, V2, not on 'PLETH'\."):
        cut(held, channels=("PLETH",))
    rows, told = cut(held, channels=("PLETH",), unseen_channels=True)
    assert (rows.channels, told) == (("PLETH",), ["The network was trained on II, V2; PLETH is new to it."])


def test_a_name_is_suggested_as_an_argument_only_where_it_alone_is_to_be_given():
    """`channels='II'` for a file of two columns would be refused in its turn."""
    with pytest.raises(DataError, match="give it that name: `channels='II'`"):
        cut(SignalFile(noise(), None, 100.0), channels=("MLII",))
    for held in (SignalFile(noise(2), None, 100.0), SignalFile(noise(2), ("MLII", "V2"), 100.0)):
        with pytest.raises(DataError, match=r"\(nearest in name: II\)\. If .* give it that name\. Without it"):
            cut(held, channels=("MLII", "V2"))


def test_the_only_channel_of_a_file_is_called_as_the_user_does():
    """The file calls it ECG, or MLII; somebody who knows says which lead it is."""
    held = SignalFile(noise(), ("MLII",), 100.0)
    rows, told = cut(held, channels=("II",))
    assert (rows.channels, told) == (("II",), ["mine: the channel 'MLII' is read as II."])
    with pytest.raises(DataError, match="has no channel 'II'"):  # the file says that it is another one
        cut(SignalFile(noise(), ("V2",), 100.0), channels=("II",))
    with pytest.raises(DataError, match="has no channel 'II'"):
        cut(SignalFile(noise(2), ("ECG", "V5"), 100.0), channels=("II",))


def test_rows_of_another_encoder_of_the_run_are_left_out_until_they_are_meant():
    card = attrs.evolve(CARD, channels=("II",), run_channels=("II", "PPG"))
    held = SignalFile(noise(2), None, 100.0)
    assert cut(held, card, channels=("PPG", "II"))[0].channels == ("II",)
    assert cut(held, card, channels=("PPG", "II"), unseen_channels=True)[0].channels == ("PPG", "II")
    with pytest.raises(DataError, match="not on 'ABP'"):
        cut(held, card, channels=("PPG", "ABP"))


# ----------------------------------------------------------------------------------------------------------------- rate


@pytest.mark.parametrize("rate", [0.0, -100.0, float("nan"), float("inf")])
def test_a_rate_that_makes_no_sense_is_asked_for(rate):
    held = SignalFile(noise(), ("II",), rate)
    with pytest.raises(DataError, match=f"mine says a sampling rate of {rate:g}, .*; give it: `sampling_rate=HZ`"):
        cut(held, channels=("II",))
    rows, told = cut(held, channels=("II",), sampling_rate=100.0)
    assert (len(rows.signal), told) == (4, [f"mine says {rate:g} Hz; 100 Hz was given, and is used."])


@pytest.mark.parametrize("rate", [4.9, 0.1, 1e-9])
def test_frames_are_not_made_up_of_a_few_samples(rate):
    """0.1 kHz typed as Hz: ten samples would become 1000 s; at the last, more of them than there is memory for."""
    with pytest.raises(DataError, match=r"mine has .* samples for a frame .* reads 100: .* `sampling_rate=HZ`: it is"):
        cut(SignalFile(noise(), ("II",), rate), channels=("II",))


def test_a_slow_recording_is_stretched_as_long_as_it_makes_sense():
    """Five samples a second, of an encoder that was trained on a hundred: the last that is taken."""
    rows, _ = cut(SignalFile(noise(samples=20), ("II",), 5.0), channels=("II",))
    assert rows.signal.shape == (4, 1, 100)
    windows = attrs.evolve(CARD, framing=Framing(100, source_samples=4), frame_rate=100.0)  # as coarse in training
    assert len(cut(SignalFile(noise(samples=20), ("II",), 4.0), windows, channels=("II",))[0].signal) == 5


def test_a_recording_that_is_stretched_as_a_whole_needs_samples_for_it():
    halves = attrs.evolve(CARD, framing=Framing(100, frames_per_record=2), frame_rate=None)
    with pytest.raises(DataError, match=r"mine has 4 samples for a frame .* Give it a longer recording\."):
        cut(SignalFile(noise(samples=8), ("II",), 100.0), halves, channels=("II",))
    assert len(cut(SignalFile(noise(samples=10), ("II",), 100.0), halves, channels=("II",))[0].signal) == 2


# ---------------------------------------------------------------------------------------------------------------- units


def test_integers_of_a_recorder_are_divided_by_their_gain_and_volts_stay_volts():
    """A network without normalisation reads millivolts; counts of a recorder would look 200 times as large."""
    card = attrs.evolve(CARD, normalise="none")
    counts = np.round(1000 * noise(2)).astype(np.int16)
    rows, _ = cut(SignalFile(counts, ("V2", "II"), 100.0, "V", gain=200.0), card)
    np.testing.assert_allclose(rows.signal[:, 0].reshape(4, 2, 100)[1], counts[::-1, 100:200] / 200.0, rtol=1e-6)
    assert rows.factor == 1000.0
