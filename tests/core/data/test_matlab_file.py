"""MATLAB files of versions 5 to 7.3: all their arrays, and one field against scipy; files that make scipy crash."""

from __future__ import annotations

import struct
import sys
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_files import wave, write_matlab, write_matlab73
from mutated_files import at_most
from scipy.io import loadmat, savemat

from clocs_core.data.array_file import open_array_file
from clocs_core.data.matlab_file import read_matlab_field
from clocs_core.data.signal_file import open_recording
from clocs_core.errors import DataError

DATA = np.random.default_rng(0).normal(0, 0.3, (12, 40))


def element(kind, raw):
    """An element as MATLAB writes it: short ones in their own tag, long ones padded."""
    if 0 < len(raw) <= 4:
        return struct.pack("<HH", kind, len(raw)) + raw.ljust(4, b"\0")
    return struct.pack("<II", kind, len(raw)) + raw + bytes(-len(raw) % 8)


def matrix(which, dimensions, name, *content):
    flags, shape = struct.pack("<II", which, 0), struct.pack(f"<{len(dimensions)}i", *dimensions)
    return element(14, element(6, flags) + element(5, shape) + element(1, name) + b"".join(content))


def structure(data, names=b"sex\0\0\0\0\0data\0\0\0\0", name=b"ECG"):
    sex = matrix(4, (1, 1), b"", element(4, b"M\0"))
    return matrix(2, (1, 1), name, element(5, struct.pack("<i", 8)), element(1, names), sex, data)


def write(file, *variables):
    file.write_bytes(b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM" + b"".join(variables))
    return file


def packed(variable):
    raw = zlib.compress(variable, 1)
    return struct.pack("<II", 15, len(raw)) + raw  # not padded


LIMITED = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited by RLIMIT_AS and /proc")


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


@LIMITED
def test_a_small_file_that_unpacks_to_gigabytes_costs_little_memory(tmp_path):
    file = write(tmp_path / "a.mat", 8 * packed(element(14, bytes(1 << 26))))
    with at_most(1 << 29), pytest.raises(DataError, match="cannot be read as a MATLAB file"):
        open_recording(file)


LONG = 1 << 25  # letters, which a file of 150 KB can hold


def long_text():
    return matrix(4, (1, LONG), b"note", element(16, b"a" * LONG))


def long_names():
    return matrix(2, (1, 1), b"s", element(5, struct.pack("<i", 1)), element(1, b"a" * LONG))


@LIMITED
def test_names_may_be_the_rows_of_a_matrix_of_letters(tmp_path):
    """As MATLAB writes ['II '; 'aVR']; read column by column, they would be one name of all letters."""
    savemat(tmp_path / "a.mat", {"val": np.eye(2, 5), "channels": np.array(["II", "aVR"])})
    assert open_array_file(tmp_path / "a.mat").channels == ("II", "aVR")


def test_complex_numbers_are_no_signal(tmp_path):
    """Their imaginary part was left out, in silence."""
    savemat(tmp_path / "a.mat", {"val": np.ones((1, 5)) * (1 + 2j), "ecg": np.eye(1, 5)})
    assert list(open_array_file(tmp_path / "a.mat").arrays) == ["ecg"]


@pytest.mark.parametrize("large", [long_text, long_names])
def test_a_small_file_with_millions_of_letters_costs_little_memory(tmp_path, large):
    """A Python string for each letter took 20 times the memory that the text takes unpacked."""
    file = write(tmp_path / "a.mat", packed(large()), matrix(6, (1, 9), b"val", element(1, bytes(range(9)))))
    assert file.stat().st_size < 1 << 18
    with at_most(8 * LONG):
        assert list(open_array_file(file).arrays) == ["val"]


def test_letters_that_are_stored_as_fractions_are_no_text(tmp_path):
    """`chr` raised a TypeError."""
    text = matrix(4, (1, 2), b"note", element(9, np.array([65.0, np.inf]).tobytes()))
    assert not open_array_file(write(tmp_path / "a.mat", text)).arrays


def test_another_file_is_one_sentence(tmp_path):
    (tmp_path / "a.mat").write_bytes(b"no MATLAB")
    with pytest.raises(DataError, match="does not begin as a MATLAB 5 file"):
        open_recording(tmp_path / "a.mat")


def read_field(file, structure="ECG", field="data"):
    return read_matlab_field(file, structure, field, 1 << 24)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int16, np.uint8, np.int32])
def test_numbers_of_every_kind_are_what_scipy_reads(tmp_path, compressed, kind):
    values = (DATA * 100).astype(kind)
    held = {"before": np.eye(3), "ECG": {"sex": "Male", "age": 74, "data": values}, "after": "text"}
    savemat(tmp_path / "a.mat", held, do_compression=compressed)
    read = read_field(tmp_path / "a.mat")
    np.testing.assert_array_equal(read, values)
    np.testing.assert_array_equal(read, loadmat(tmp_path / "a.mat")["ECG"]["data"][0, 0])
    assert read.dtype == np.float64
    np.testing.assert_array_equal(read_field(tmp_path / "a.mat", "ECG", "age"), [[74]])


@pytest.mark.parametrize(("kind", "code"), [(1, "<i1"), (3, "<i2"), (9, "<f8")])
def test_whole_numbers_that_matlab_stores_in_few_bytes_are_read(tmp_path, kind, code):
    """MATLAB writes doubles as small integers where nothing is lost; the element says so, not the class."""
    values = np.arange(24).reshape(12, 2)
    raw = values.ravel(order="F").astype(code).tobytes()
    file = write(tmp_path / "a.mat", structure(matrix(6, (12, 2), b"", element(kind, raw))))
    np.testing.assert_array_equal(loadmat(file)["ECG"]["data"][0, 0], values)
    np.testing.assert_array_equal(read_field(file), values)


NUMBERS = matrix(6, (1, 2), b"", element(1, b"\x01\x02"))


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ([], "none of this name"),
        ([structure(NUMBERS, name=b"EEG")], "none of this name"),
        ([structure(NUMBERS, names=b"sex\0\0\0\0\0age\0\0\0\0\0")], "no such field"),
        ([structure(element(14, b""))], "no such field"),
        ([structure(element(14, bytes(8)))], "a matrix has no name"),
        ([structure(matrix(4, (1, 2), b"", element(4, b"ab")))], "does not hold numbers"),
        ([structure(matrix(6, (1, 2), b"", element(77, b"ab")))], "does not hold numbers"),
        ([structure(matrix(6, (1, -2), b"", element(1, b"ab")))], "does not hold numbers"),
        ([structure(matrix(6, (2**30, 2**30), b"", element(1, b"ab")))], "1073741824 x 1073741824 has 2 values"),
        ([structure(matrix(6, (1, 2), b"", element(1, b"abc")))], "1 x 2 has 3 values"),
        ([structure(NUMBERS)[:-9]], "ends in the middle"),
        ([struct.pack("<II", 14, 2**32 - 1)], "ends in the middle"),
        ([element(15, b"no zlib at all")], "incorrect header check"),
    ],
)
def test_what_is_not_there_is_a_data_error(tmp_path, variables, says):
    with pytest.raises(DataError, match=rf"a\.mat has no structure ECG with a field data: .*{says}"):
        read_field(write(tmp_path / "a.mat", *variables))


def test_other_files_are_refused(tmp_path):
    for raw in (b"", b"A0001", bytes(1000), b"MATLAB 5.0".ljust(126) + b"MI"):
        (tmp_path / "a.mat").write_bytes(raw)
        with pytest.raises(DataError, match="does not begin as a MATLAB 5 file"):
            read_field(tmp_path / "a.mat")
    with pytest.raises(FileNotFoundError):
        read_field(tmp_path / "b.mat")


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    edits=st.lists(st.tuples(st.integers(126, 700), st.binary(max_size=6), st.integers(0, 6)), min_size=1, max_size=4),
    compressed=st.booleans(),
)
def test_a_damaged_file_is_read_or_refused(tmp_path, edits, compressed):
    """scipy ends the process on some of these, and with it everything that a worker had to do."""
    file = tmp_path / f"{compressed}.mat"
    if not file.exists():
        savemat(file, {"ECG": {"sex": "Male", "age": 74, "data": DATA}}, do_compression=compressed)
    raw = file.read_bytes()
    for at, new, length in edits:
        raw = raw[:at] + new + raw[at + length :]
    (tmp_path / "a.mat").write_bytes(raw)
    try:
        read = read_field(tmp_path / "a.mat")
    except DataError:
        return
    assert read.size <= max(8 * len(raw), DATA.size)


@LIMITED
@pytest.mark.parametrize("content", [bytes(8), element(1, bytes(1 << 20))])
def test_a_field_of_a_small_file_that_unpacks_to_gigabytes_costs_little_memory(tmp_path, content):
    """Empty elements of eight bytes became ten million tuples."""
    body = content * ((1 << 26) // len(content))
    file = write(tmp_path / "a.mat", packed(struct.pack("<II", 14, len(body)) + body))
    with at_most(1 << 28), pytest.raises(DataError, match="no structure ECG with a field data: it unpacks to far more"):
        read_field(file)


def test_what_several_variables_unpack_to_is_counted_together(tmp_path):
    """Each alone is within the limit."""
    numbers = matrix(6, (1, 1 << 23), b"x", element(1, bytes(1 << 23)))
    file = write(tmp_path / "a.mat", packed(numbers), packed(numbers), packed(structure(NUMBERS)))
    with pytest.raises(DataError, match="it unpacks to far more"):
        read_field(file)
    assert read_matlab_field(file, "ECG", "data", 1 << 25).tolist() == [[1.0, 2.0]]


def test_a_file_larger_than_its_reader_expects_is_not_read(tmp_path):
    with open(tmp_path / "a.mat", "wb") as file:
        file.truncate((1 << 24) + 1)
    with pytest.raises(DataError, match="expected at most 16,777,216"):
        read_field(tmp_path / "a.mat")


@pytest.mark.parametrize(
    ("cells", "channels"), [(["I", "aVR"], ("I", "aVR")), (["I", 2.0], None), (["I", ["a", "b"]], None)]
)
def test_names_of_channels_may_be_cells(tmp_path, cells, channels):
    """Cells that hold anything but texts say nothing, and hide nothing."""
    held = {"ecg": DATA[:2], "fs": 250.0, "channels": np.array([*cells, None], dtype=object)[:-1]}
    savemat(tmp_path / "a.mat", held)
    found = open_recording(tmp_path / "a.mat")
    assert (found.channels, found.sampling_rate) == (channels, 250.0)
