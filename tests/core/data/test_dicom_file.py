"""DICOM waveforms as pydicom writes them: the rhythm is read, in the unit of its sensitivity."""

from __future__ import annotations

import numpy as np
import pydicom
import pytest
from made_files import wave, write_dicom

from clocs_core.data.recording import Wish
from clocs_core.data.signal_file import open_recording, read_signal_file
from clocs_core.errors import DataError


def changed(path, change):
    held = pydicom.dcmread(path)
    change(held)
    held.save_as(path, enforce_file_format=True)
    return path


def test_the_rhythm_is_read_in_its_unit(tmp_path):
    samples = wave(500)
    held = open_recording(write_dicom(tmp_path / "a.dcm", samples, 500, "anna"))
    assert (held.channels, held.unit, held.sampling_rate, held.patient) == (("I", "II"), "uV", 500.0, "anna")
    np.testing.assert_allclose(held.read(0, 5000).samples, samples * 1000, atol=1.25 + 1e-9)
    assert held.notes == ("Of 2 groups RHYTHM is read, not MEDIAN BEAT.",)


def test_a_file_without_an_ending_is_known_by_its_first_bytes(tmp_path):
    write_dicom(tmp_path / "IM000001", wave(100), 100)
    assert read_signal_file(tmp_path / "IM000001").samples.shape == (2, 1000)


def test_padding_is_a_missing_sample(tmp_path):
    samples = wave(100)
    samples[1, 40] = -32768 * 2.5 / 1000
    found = read_signal_file(write_dicom(tmp_path / "a.dcm", samples, 100))
    assert np.argwhere(np.isnan(found.samples)).tolist() == [[1, 40]]


def test_without_a_sensitivity_samples_are_counts_and_have_no_unit(tmp_path):
    def change(held):
        for one in held.WaveformSequence[1].ChannelDefinitionSequence:
            del one.ChannelSensitivity, one.ChannelSensitivityUnitsSequence, one.ChannelSensitivityCorrectionFactor

    path = changed(write_dicom(tmp_path / "a.dcm", wave(100), 100), change)
    found = read_signal_file(path)
    assert found.unit == ""
    assert np.array_equal(found.samples, np.round(found.samples))


def test_a_rate_chooses_a_group(tmp_path):
    def change(held):
        held.WaveformSequence[0].SamplingFrequency = 1000

    path = changed(write_dicom(tmp_path / "a.dcm", wave(100), 100), change)
    assert open_recording(path, Wish(sampling_rate=1000)).length == 50
    with pytest.raises(DataError, match=r"channels at 100, 1000 Hz, and none at `sampling_rate=9`"):
        open_recording(path, Wish(sampling_rate=9))


def test_what_is_no_waveform_is_one_sentence(tmp_path):
    path = changed(write_dicom(tmp_path / "a.dcm", wave(100), 100), lambda held: delattr(held, "WaveformSequence"))
    with pytest.raises(DataError, match="holds no waveform; it is ECG"):
        open_recording(path)
    path.write_bytes(b"nothing")
    with pytest.raises(DataError, match="cannot be read as a DICOM waveform"):
        open_recording(path)
    path.write_bytes(bytes(128) + b"DICM....1.2.840.10008.1.2.1.99")
    with pytest.raises(DataError, match="is compressed as a whole"):
        open_recording(path)


@pytest.mark.parametrize("meaning", ["Lead I (Einthoven)", "Lead I", "I, augmented voltage, right"])
def test_leads_have_their_short_names(tmp_path, meaning):
    """The standard's own words for the first lead are those with Einthoven."""

    def call(held):
        for group in held.WaveformSequence:
            group.ChannelDefinitionSequence[0].ChannelSourceSequence[0].CodeMeaning = meaning

    path = changed(write_dicom(tmp_path / "a.dcm", wave(500), 500), call)
    assert open_recording(path).channels == ("I", "II")
