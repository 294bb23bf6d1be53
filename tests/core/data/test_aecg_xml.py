"""HL7 aECG: every lead is origin + scale x digits, at the rate of the sequence of times."""

from __future__ import annotations

import numpy as np
import pytest
from made_files import wave, write_aecg

from clocs_core.data.signal_file import open_recording
from clocs_core.errors import DataError


def test_leads_unit_rate_and_subject_are_read(tmp_path):
    samples = wave(500)
    held = open_recording(write_aecg(tmp_path / "a.xml", samples, 500, "anna"))
    assert (held.channels, held.unit, held.sampling_rate, held.patient) == (("I", "II"), "uV", 500.0, "anna")
    np.testing.assert_allclose(held.read(0, 5000).samples, samples * 1000, atol=2.5 + 1e-9)


def test_an_origin_is_added_and_milliseconds_are_a_rate(tmp_path):
    path = write_aecg(tmp_path / "a.xml", wave(250), 250)
    plain = open_recording(path).read(0, 10).samples
    text = (
        path.read_text()
        .replace('<origin value="0"', '<origin value="12"')
        .replace('value="0.004" unit="s"', 'value="4" unit="ms"')
    )
    path.write_text(text)
    held = open_recording(path)
    assert held.sampling_rate == 250.0
    assert np.array_equal(held.read(0, 10).samples, plain + 12)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("TIME_ABSOLUTE", "OTHER", "does not say the time between two samples"),
        ('unit="s"', 'unit="h"', "a time is given in 'h', expected s, ms, us"),
        ("<digits>", "<digits>x ", "could not convert"),
        ("<digits>", "<digits>7 ", "expected as many|its leads have 1001, 1000 samples"),
        ("<series>", "<serial>", "cannot be read as XML"),
        ('<origin value="0" unit="uV"', '<origin value="3" unit="mV"', "origin in 'mV' and its scale in 'uV'"),
    ],
)
def test_damage_is_one_sentence(tmp_path, old, new, says):
    path = write_aecg(tmp_path / "a.xml", wave(100), 100)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(DataError, match=says):
        open_recording(path)
