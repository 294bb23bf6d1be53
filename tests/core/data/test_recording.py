"""What every format shares: names, units and rates of channels, and windows."""

from __future__ import annotations

import numpy as np
import pytest

from clocs_core.data.recording import Wish, choose, in_memory, need, one_unit, tidy_names
from clocs_core.errors import DataError, Unavailable

NAMES, RATES = ("ECG", "EMG", "EEG 1", "EEG 2", "SpO2"), (256.0, 64.0, 128.0, 128.0, 1.0)


@pytest.mark.parametrize(
    ("wish", "places"),
    [
        (Wish(), [2, 3]),  # the rate of most channels
        (Wish(sampling_rate=64), [1]),
        (Wish(("ECG",)), [0]),
        (Wish(("EEG 1", "EEG 2")), [2, 3]),
        (Wish(("I", "ECG")), [2, 3]),  # a name that is not there asks for nothing
        (Wish(("ECG", "EMG"), 64), [1]),
    ],
)
def test_channels_of_one_rate_are_chosen(wish, places):
    assert choose(NAMES, RATES, wish, "a.edf")[0] == places


def test_channels_that_are_left_out_are_named():
    assert choose(("A", "B"), (100, 1), Wish(), "a")[1] == ("Only channels at 100 Hz are read, not B (1 Hz).",)
    with pytest.raises(DataError, match=r"a has channels at 1, 100 Hz, and none at `sampling_rate=50`"):
        choose(("A", "B"), (100, 1), Wish(sampling_rate=50), "a")


def test_names_are_made_unique_and_without_commas():
    assert tidy_names(["EEG ", "EEG", "", "a,b", "EEG"]) == ("EEG", "EEG #2", "channel 2", "a b", "EEG #3")


@pytest.mark.parametrize(
    ("units", "unit", "factors"),
    [
        (["mV", "uV"], "mV", [1, 0.001]),
        (["MICROVOLTS", "Millivolt"], "uV", [1, 1000]),
        (["µV", "V"], "uV", [1, 1e6]),
        (["mV", "mmHg"], "mV, mmHg", [1, 1]),
        (["", ""], "", [1, 1]),
        (["%", "%"], "%", [1, 1]),
    ],
)
def test_voltages_become_one_unit_and_others_stay(units, unit, factors):
    found, scale = one_unit(units)
    assert found == unit
    assert scale.ravel().tolist() == factors


def test_a_window_and_some_channels_are_read():
    samples = np.arange(12.0).reshape(3, 4)
    held = in_memory(samples, channels=("I", "II", "P"), unit="mV, mmHg", units=("mV", "mV", "mmHg"))
    part = held.only(("II",))
    assert (part.channels, part.unit, part.length) == (("II",), "mV", 4)
    assert np.array_equal(part.read(1, 3).samples, samples[1:2, 1:3])
    assert held.only(("II", "V9")) is held
    assert held.only(()) is held


def test_a_missing_library_is_one_sentence_with_the_command():
    with pytest.raises(
        Unavailable, match=r"^Reading X files needs nowhere: install it with `pip install 'clocs\[x\]'`\.$"
    ):
        need("nowhere.at.all", "x", "X files")
