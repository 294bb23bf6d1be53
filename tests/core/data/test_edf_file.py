"""EDF and BDF as pyEDFlib writes them: names, units and rates come from the header, samples by window."""

from __future__ import annotations

import numpy as np
import pytest
from made_files import wave, write_edf

from clocs_core.data.edf_file import open_edf
from clocs_core.data.recording import Wish
from clocs_core.data.signal_file import read_signal_file
from clocs_core.errors import DataError


@pytest.mark.parametrize(("name", "step"), [("a.edf", 2 / 32768), ("a.bdf", 2 / 8388608)])
def test_samples_names_unit_rate_and_patient_are_read(tmp_path, name, step):
    samples = wave(250)
    path = write_edf(tmp_path / name, samples, 250, "p7", ("ECG I", "EEG,x"), ("mV", "uV"))
    held = open_edf(path, Wish())
    assert (held.channels, held.unit, held.sampling_rate, held.length) == (("ECG I", "EEG x"), "mV", 250.0, 2500)
    assert held.patient == "p7"
    np.testing.assert_allclose(held.read(0, 2500).samples, samples, atol=2 * step)
    np.testing.assert_allclose(held.read(700, 900).samples, samples[:, 700:900], atol=2 * step)


def test_only_the_window_is_read(tmp_path, monkeypatch):
    path = write_edf(tmp_path / "a.edf", wave(100), 100)
    import pyedflib

    asked = []
    whole = pyedflib.EdfReader.readSignal
    monkeypatch.setattr(pyedflib.EdfReader, "readSignal", lambda *a: asked.append(a[1:]) or whole(*a))
    read_signal_file(path, Wish(("II",)), 200, 250)
    assert asked == [(1, 200, 50)]


def test_a_patient_who_is_not_named_is_nobody(tmp_path):
    assert open_edf(write_edf(tmp_path / "a.edf", wave(100), 100, "X"), Wish()).patient == ""


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda raw: raw[:-10], "may have been cut short"),
        (lambda raw: raw + b"more", "may have been cut short"),
        (lambda raw: raw[:100], "does not begin as EDF"),
        (lambda raw: b"\x89HDF" + raw[4:], "does not begin as EDF"),
        (lambda raw: raw[:236] + b"many    " + raw[244:], "has no number where one belongs"),
        (lambda raw: raw[:236] + b"-1      " + raw[244:], "describes -1 records"),
    ],
)
def test_damage_is_one_sentence_and_nothing_is_printed(tmp_path, capfd, change, says):
    path = write_edf(tmp_path / "a.edf", wave(100), 100)
    path.write_bytes(change(path.read_bytes()))
    capfd.readouterr()
    with pytest.raises(DataError, match=says):
        open_edf(path, Wish())
    assert capfd.readouterr() == ("", "")
