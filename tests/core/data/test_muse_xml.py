"""MUSE stores eight leads; the other four follow from I and II."""

from __future__ import annotations

import numpy as np
import pytest
from made_files import wave, write_muse

from clocs_core.data.signal_file import open_recording
from clocs_core.errors import DataError

TWELVE = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")


def test_eight_leads_become_twelve_in_the_usual_order(tmp_path):
    samples = wave(500, channels=8)
    held = open_recording(write_muse(tmp_path / "a.xml", samples, 500, "anna"))
    assert (held.channels, held.unit, held.sampling_rate, held.patient) == (TWELVE, "uV", 500.0, "anna")
    leads = dict(zip(TWELVE, held.read(0, 5000).samples, strict=True))
    for name, row in zip(("I", "II", "V1", "V2", "V3", "V4", "V5", "V6"), samples, strict=True):
        np.testing.assert_allclose(leads[name], row * 1000, atol=2.45)
    np.testing.assert_allclose(leads["I"] + leads["III"], leads["II"], atol=1e-9)  # Einthoven
    np.testing.assert_allclose(leads["aVR"] + leads["aVL"] + leads["aVF"], 0, atol=1e-9)
    np.testing.assert_allclose(leads["aVF"], (leads["II"] + leads["III"]) / 2, atol=1e-9)
    assert held.notes[-1] == "III, aVR, aVL, aVF are derived from I and II."


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("<WaveformType>Rhythm", "<WaveformType>Other", "has no waveform of the type Rhythm"),
        ("LeadData>", "Nothing>", "its rhythm has no leads"),
        ("<SampleBase>100<", "<SampleBase>0<", "sampling rate of 0"),
        ("<SampleBase>100<", "<SampleBase><", "sampling rate of 0"),
        ("<SampleExponent>0<", "<SampleExponent>999999999<", "sampling rate of inf"),
        ("<WaveFormData>\n", "<WaveFormData>!!", "cannot be read"),
        ("<WaveFormData>\n", "<WaveFormData>AAAA", "bytes, which is no number of 16-bit integers"),
    ],
)
def test_damage_is_one_sentence(tmp_path, old, new, says):
    path = write_muse(tmp_path / "a.xml", wave(100), 100)
    text = path.read_text(encoding="latin-1")
    assert old in text
    path.write_text(text.replace(old, new, -1 if "LeadData" in old else 1), encoding="latin-1")
    with pytest.raises(DataError, match=says):
        open_recording(path)
