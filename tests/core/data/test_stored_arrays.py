"""Signals are found among the arrays of a file, with their channels, sampling rate and unit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from clocs_core.data.array_file import open_array_file
from clocs_core.data.stored_arrays import Fact, file_of
from clocs_core.errors import DataError

SIGNAL = np.arange(24, dtype=">i2").reshape(2, 3, 4)


def fact(name: str, value: object) -> Fact:
    array = np.asarray(value)
    return Fact(Path("a.mat"), name, array.shape, array.dtype, array)


def test_names_beside_the_signals_are_no_signals(tmp_path: Path):
    np.savez(tmp_path / "a.npz", age=[40, 50], fs=100, Time=[0.0, 1.0], ecg=SIGNAL, ppg=SIGNAL, name=["x"])
    assert open_array_file(tmp_path / "a.npz").signals == ("age", "ecg", "ppg")
    assert open_array_file(tmp_path / "a.npz", beside=("age",)).signals == ("ecg", "ppg")


def test_facts_stand_under_any_of_their_names():
    found = [fact("ecg", SIGNAL), fact("fs", 250), fact("leads", [b"I", b" II "]), fact("units", ["mV", "mV"])]
    file = file_of(Path("a.mat"), found, (), ("ecg",))
    assert (file.signals, file.channels, file.sampling_rate, file.unit) == (("ecg",), ("I", "II"), 250.0, "mV")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("fs", [250, 500], "has 2 sampling rates"),
        ("fs", "fast", "must be one positive number, in Hz"),
        ("units", ["mV", "uV"], "have the units mV, uV, expected one for all"),
    ],
)
def test_facts_that_cannot_be_are_refused(name: str, value: object, message: str):
    with pytest.raises(DataError, match=message):
        file_of(Path("a.mat"), [fact("x", SIGNAL), fact(name, value)], ())


@pytest.mark.parametrize("name", ["b", "pb"])  # of the longer one numpy makes a string, which raises when it is used
@pytest.mark.parametrize("letter", [0x110000, ord("b") | 1 << 21, ord("b") | 1 << 31, 2**32 - 1])
def test_text_with_letters_that_do_not_exist_is_damaged(tmp_path: Path, name: str, letter: int):
    np.savez(tmp_path / "a.npz", x=np.zeros((2, 20)), patient=np.array(["a", name]), channels=np.array(["I"]))
    raw = (tmp_path / "a.npz").read_bytes().replace("b".encode("utf-32-le"), letter.to_bytes(4, "little"))
    (tmp_path / "a.npz").write_bytes(raw)
    with pytest.raises(DataError, match=r"'patient' in a.npz is damaged"):
        open_array_file(tmp_path / "a.npz").arrays["patient"].values()
