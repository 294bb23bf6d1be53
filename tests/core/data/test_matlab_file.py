"""MATLAB files of versions 5 to 7.3: the same arrays in the shape they have in MATLAB."""

from __future__ import annotations

import struct
import sys
import zlib

import numpy as np
import pytest
from made_files import wave, write_matlab, write_matlab73
from mutated_files import at_most
from scipy.io import savemat

from clocs_core.data.signal_file import open_recording
from clocs_core.errors import DataError


def test_version_5_and_version_7_3_hold_the_same(tmp_path):
    samples = wave(250)
    for name, write in (("five.mat", write_matlab), ("seven.mat", write_matlab73)):
        held = open_recording(write(tmp_path / name, samples, 250))
        assert (held.channels, held.sampling_rate, held.unit, held.length) == (None, 250.0, "mV", 2500)
        assert np.array_equal(held.read(0, 2500).samples, samples)
        assert np.array_equal(held.read(20, 30).samples, samples[:, 20:30])


@pytest.mark.parametrize("kind", [np.float32, np.int16, np.uint8, np.int32])
def test_arrays_of_every_type_without_a_structure(tmp_path, kind):
    values = (wave(100) * 50 + 100).astype(kind)
    savemat(tmp_path / "a.mat", {"val": values, "note": "text", "empty": np.zeros((0, 0))})
    held = open_recording(tmp_path / "a.mat")
    assert np.array_equal(held.read(0, held.length).samples, values)


def test_a_patient_in_the_structure_is_read(tmp_path):
    assert open_recording(write_matlab(tmp_path / "a.mat", wave(50), 50, "anna")).patient == "anna"


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited by RLIMIT_AS and /proc")
def test_a_small_file_that_unpacks_to_gigabytes_costs_little_memory(tmp_path):
    body = bytes(1 << 26)
    packed = zlib.compress(struct.pack("<II", 14, len(body)) + body, 1)
    one = struct.pack("<II", 15, len(packed)) + packed
    (tmp_path / "a.mat").write_bytes(b" " * 126 + b"IM" + 8 * one)
    with at_most(1 << 29), pytest.raises(DataError, match="cannot be read as a MATLAB file"):
        open_recording(tmp_path / "a.mat")


def test_another_file_is_one_sentence(tmp_path):
    (tmp_path / "a.mat").write_bytes(b"no MATLAB")
    with pytest.raises(DataError, match="does not begin as a MATLAB 5 file"):
        open_recording(tmp_path / "a.mat")
