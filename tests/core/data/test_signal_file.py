"""One recording in a file of one's own: every kind is read to the same samples, and what is no recording is refused."""

from __future__ import annotations

import numpy as np
import pytest

from clocs_core.data.signal_file import read_signal_file
from clocs_core.errors import DataError, DataNotFound

SAMPLES = np.array([[0.5, -1.0, 2.25, 3.0], [1.0, 0.0, -0.125, 7.0]])  # (channel, sample)


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("0.5,1\n-1,0\n2.25,-0.125\n3,7\n", None),
        ("I,II\n0.5,1\n-1,0\n2.25,-0.125\n3,7", ("I", "II")),
        ('"I";"II"\n0.5;1\n-1;0\n\n2.25;-0.125\n3;7\n', ("I", "II")),
        ("time\tI\tII\n0\t0.5\t1\n1\t-1\t0\n2\t2.25\t-0.125\n3\t3\t7\n", ("I", "II")),
        ("0.5 1\n-1 0\n2.25 -0.125\n3 7\n", None),
        ("\ufeff,I,II\n0,0.5,1\n1,-1,0\n2,2.25,-0.125\n3,3,7\n", ("I", "II")),
    ],
)
def test_text_has_a_line_per_sample_with_or_without_a_heading(tmp_path, text, names):
    found = read_signal_file(write(tmp_path / "ecg.csv", text))
    assert found.channels == names
    assert np.array_equal(found.samples, SAMPLES)
    assert (found.sampling_rate, found.unit, found.gain, found.notes) == (None, "", 1.0, ())


def test_an_empty_cell_is_a_missing_sample(tmp_path):
    found = read_signal_file(write(tmp_path / "ecg.txt", "I,II\n1,2\n,4\n5,6\n"))
    assert np.array_equal(found.samples, [[1, np.nan, 5], [2, 4, 6]], equal_nan=True)


@pytest.mark.parametrize("mark", ["\t", ";", ","])
def test_blank_cells_at_the_ends_of_a_line_are_missing_samples_too(tmp_path, mark):
    """Tabs are white space: a line that is stripped loses its last sample, or moves into the column before."""
    lines = ["I,II,III", "1,2,3", ",5,6", "7,8,", ",11,"]
    found = read_signal_file(write(tmp_path / "ecg.txt", "\n".join(lines).replace(",", mark)))
    assert found.channels == ("I", "II", "III")
    expected = [[1, np.nan, 7, np.nan], [2, 5, 8, 11], [3, 6, np.nan, np.nan]]
    assert np.array_equal(found.samples, expected, equal_nan=True)
    bare = read_signal_file(write(tmp_path / "bare.txt", "\n".join(lines[1:]).replace(",", mark)))
    assert np.array_equal(bare.samples, expected, equal_nan=True)


def test_spaces_around_a_line_of_spaces_are_nothing(tmp_path):
    found = read_signal_file(write(tmp_path / "ecg.txt", "  1 2 \n 3   4\n"))
    assert np.array_equal(found.samples, [[1, 3], [2, 4]])


@pytest.mark.parametrize("text", ["1,2,\n3,4,\n", "\n \n1;2;\n3;4;\n", "1\t2\t\r\n\r\n3\t4\t\r\n"])
def test_a_mark_behind_the_last_cell_of_every_line_is_no_channel(tmp_path, text):
    found = read_signal_file(write(tmp_path / "ecg.txt", text))
    assert np.array_equal(found.samples, [[1, 3], [2, 4]])


def test_a_long_file_with_gaps_is_read_to_the_last_bit(tmp_path):
    """Long files are read by pandas, short ones cell by cell."""
    values = np.random.default_rng(0).normal(size=(5000, 3))
    values[7, 0] = values[4999, 2] = np.nan
    lines = (",".join("" if np.isnan(one) else repr(float(one)) for one in row) for row in values)
    found = read_signal_file(write(tmp_path / "ecg.csv", "\n".join(["I,II,III", *lines])))
    assert np.array_equal(found.samples, values.T, equal_nan=True)


def test_a_heading_in_another_encoding_is_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes("µV,II\n1,2\n".encode("latin-1"))
    with pytest.raises(DataError, match="cannot be read: 'utf-8' codec"):
        read_signal_file(tmp_path / "a.csv")


def test_an_array_of_times_beside_the_signal_is_not_the_signal(tmp_path):
    """It comes first in many files, and has a trace of its own: a straight line."""
    for names in ({"time": SAMPLES[0], "ecg": SAMPLES}, {"Time": SAMPLES[0], "signal": SAMPLES, "other": SAMPLES}):
        np.savez(tmp_path / "a.npz", fs=100, **names)
        assert np.array_equal(read_signal_file(tmp_path / "a.npz").samples, SAMPLES)


def test_arrays_are_read_as_channels_of_samples(tmp_path):
    np.save(tmp_path / "a.npy", SAMPLES.astype(">f4"))
    found = read_signal_file(tmp_path / "a.npy")
    assert found.samples.dtype == np.float32
    assert np.array_equal(found.samples, SAMPLES)
    np.save(tmp_path / "b.npy", SAMPLES[0])
    assert np.array_equal(read_signal_file(tmp_path / "b.npy").samples, SAMPLES[:1])
    np.save(tmp_path / "c.npy", SAMPLES.T)
    turned = read_signal_file(tmp_path / "c.npy")
    assert np.array_equal(turned.samples, SAMPLES)
    assert turned.notes == ("c.npy is read as 4 samples of 2 channels.",)


@pytest.mark.parametrize(
    ("kind", "kept"), [("int16", "int16"), ("int32", "int32"), ("uint16", "float64"), ("int8", "float64")]
)
def test_the_lowest_value_of_a_type_that_is_no_recorders_is_no_missing_sample(tmp_path, kind, kept):
    """Records take it for one: 0 of unsigned counts would be a hole."""
    np.save(tmp_path / "a.npy", np.arange(20, dtype=kind))
    found = read_signal_file(tmp_path / "a.npy").samples
    assert found.dtype == kept
    assert found.tolist() == [list(range(20))]


def test_an_npz_says_rate_unit_and_names(tmp_path):
    np.savez(tmp_path / "a.npz", signal=SAMPLES, fs=250, leads=["I", "II"], units=["mV", "mV"])
    found = read_signal_file(tmp_path / "a.npz")
    assert (found.channels, found.sampling_rate, found.unit) == (("I", "II"), 250.0, "mV")
    assert np.array_equal(found.samples, SAMPLES)
    np.savez_compressed(tmp_path / "b.npz", ecg=SAMPLES)
    assert np.array_equal(read_signal_file(tmp_path / "b.npz").samples, SAMPLES)


def test_a_wfdb_recording_says_everything(tmp_path):
    counts = np.array([[1, 2, 3], [10, 20, 30]], dtype="<i2")
    (tmp_path / "r.dat").write_bytes(counts.T.tobytes())
    write(tmp_path / "r.hea", "r 2 360 3\nr.dat 16 200/mV 16 0 1 6 0 I\nr.dat 16 200/mV 16 0 10 60 0 V5\n")
    found = read_signal_file(tmp_path / "r.hea")
    assert (found.channels, found.sampling_rate, found.unit, found.gain) == (("I", "V5"), 360.0, "mV", 200.0)
    assert np.array_equal(found.samples, counts)


@pytest.mark.parametrize(
    ("name", "held", "message"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", "I,II\n", "has a heading, but no samples below it"),
        ("a.csv", "I,II\n1,2,3\n", "has 3 columns below the heading I, II"),
        ("a.csv", "time\n1\n", "has no column of a signal: time are times, numbers of rows or words"),
        ("a.csv", "I,I\n1,2\n", "is named twice: I, I"),
        ("a.csv", "1,2\n3,x\n", "cannot be read: could not convert string 'x'"),
        ("a.csv", "1,2\n3\n", "cannot be read: "),
        ("a.rec", "x", r"is none of \.csv, \.txt, \.npy, \.npz, \.hea"),
        ("a.npy", "not an array", "cannot be read: "),
        ("a.npz", "not an archive", "cannot be read: "),
        ("a.npy", np.zeros((2, 3, 4)), r"has the shape \(2, 3, 4\), expected one recording: .* `dataset=NAME"),
        ("a.npy", np.zeros((0, 3)), "has the shape"),
        ("a.npy", np.array(["x"]), "has values of type <U1, expected numbers"),
        ("a.npy", np.array([[1], [None]], dtype=object), "cannot be read: .*pickle"),
        ("a.npz", {"fs": 3}, "has no array of samples, it has fs; call it x"),
        ("a.npz", {"time": SAMPLES[0]}, "has no array of samples, it has time; call it x"),
        ("a.npz", {"ecg": SAMPLES, "ppg": SAMPLES}, "several arrays that may be the signal: ecg, ppg. Keep one"),
        ("a.npz", {"x": SAMPLES, "signal": SAMPLES}, "several arrays that may be the signal: x, signal"),
        ("a.npz", {"x": SAMPLES, "fs": [1, 2]}, "has 2 sampling rates"),
        ("a.npz", {"x": SAMPLES, "units": ["mV", "V"]}, "have the units V, mV, expected one for all"),
        ("a.npz", {"x": SAMPLES, "channels": ["I"]}, r"has 1 names \(I\) for 2 channels"),
    ],
)
def test_what_is_no_recording_is_refused_in_one_sentence(tmp_path, name, held, message):
    path = tmp_path / name
    if isinstance(held, str):
        write(path, held)
    elif isinstance(held, dict):
        np.savez(path, **held)
    else:
        np.save(path, held)
    with pytest.raises(DataError, match=message) as raised:
        read_signal_file(path)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataNotFound, match=r"There is no file .*gone\.csv\."):
        read_signal_file(tmp_path / "gone.csv")
