"""Headers as they are found in the wild."""

from __future__ import annotations

import re

import numpy as np
import pytest
from challenge_files import checksum, counts, edit, write

from clocs_core import DataError, Signal, read_header, read_wfdb


def test_a_header_says_what_its_lines_say(tmp_path):
    samples = counts(2)
    header = read_header(write(tmp_path, samples, comments=("#Age: 74", "#Dx: AF,RBBB")))
    assert (header.record, header.sampling_rate, header.samples, header.channels) == ("A0001", 500, 50, ("I", "II"))
    first = Signal("A0001.mat", "I", 1000, 0, "mV", 16, 24, int(samples[0, 0]), checksum(samples[0]))
    assert header.signals[0] == first
    assert header.comments == ("Age: 74", "Dx: AF,RBBB")
    assert header.tolerated == ()


@pytest.mark.parametrize("ending", [".hea", ".mat", ""])
def test_a_recording_is_named_by_any_of_its_files_or_none(tmp_path, ending):
    write(tmp_path, counts())
    assert read_header(tmp_path / f"A0001{ending}").record == "A0001"
    assert read_wfdb(str(tmp_path / f"A0001{ending}")).samples.shape == (12, 50)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("A0001.mat 2 500 50", "The record's name has the ending of a file."),
        ("A0001 2 500 50 2014-05-08 05:05:15", "The date is written before the time."),
        ("A0001 2 500 50 05-Feb-2020 11:39:16", "The date is written before the time."),
        ("A0001 2 500 50 05:05:15 1/05/2000", None),
        ("A0001 2 500 50 05:05:15", None),
        ("A0001 2 500/500(0) 50", None),
        ("A0001 2 500", None),
        ("A0001 2 500 0", None),
    ],
)
def test_record_lines_of_all_kinds_are_read(tmp_path, line, said):
    samples = counts(2)
    path = write(tmp_path, samples, record_line=line)
    header = read_header(path)
    assert (header.record, header.sampling_rate) == ("A0001", 500)
    assert header.samples == (None if len(line.split()) < 4 or line.endswith(" 0") else 50)
    assert header.tolerated == ((said,) if said else ())
    np.testing.assert_array_equal(read_wfdb(path).samples, samples)


@pytest.mark.parametrize(
    ("word", "gain", "baseline", "unit"),
    [
        ("1000/mV", 1000, 0, "mV"),
        ("1000.0(0)/mV", 1000, 0, "mV"),
        ("1000/mv", 1000, 0, "mV"),
        ("4880/mV", 4880, 0, "mV"),
        ("1e3/uV", 1000, 0, "uV"),
        ("200(-12)/mmHg", 200, -12, "mmHg"),
        ("0", 200, 0, "mV"),
        ("12.5", 12.5, 0, "mV"),
    ],
)
def test_gains_of_all_kinds_are_read(tmp_path, word, gain, baseline, unit):
    header = read_header(write(tmp_path, counts(1), gain=word))
    (signal,) = header.signals
    assert (signal.gain, signal.baseline, signal.unit) == (gain, baseline, unit)
    assert header.tolerated == (("The unit mV is written mv.",) if word.endswith("mv") else ())


def test_formats_of_all_kinds_are_read(tmp_path):
    path = write(tmp_path, counts(1))
    said = read_header(edit(path, "16+24", "212x3:4+24")).signals[0]
    assert (said.format, said.samples_per_frame, said.skew, said.offset) == (212, 3, 4, 24)
    assert read_header(edit(path, "212x3:4+24", "16x1+24")).signals[0].offset == 24


def test_a_short_signal_line_takes_the_defaults_of_the_format(tmp_path):
    (tmp_path / "a.hea").write_text("a 2\na.dat 16\na.dat 16 100 12 7\n")
    header = read_header(tmp_path / "a.hea")
    assert (header.sampling_rate, header.samples) == (250, None)
    assert header.signals[0] == Signal("a.dat", "signal 0", 200, 0)
    assert header.signals[1] == Signal("a.dat", "signal 1", 100, 7), "the baseline is the ADC's zero"


def test_the_name_of_a_signal_may_have_spaces(tmp_path):
    path = edit(write(tmp_path, counts(1)), "0 I\n", "0 ECG lead I, left arm  \n")
    assert read_header(path).channels == ("ECG lead I, left arm",)


@pytest.mark.parametrize("line", ["#Dx: AF,RBBB", "# Dx: AF , RBBB,", "#dx:AF,,RBBB,", "#  DX : ,AF,RBBB"])
def test_comments_are_found_by_name_and_lists_have_no_empty_items(tmp_path, line):
    """Some headers have "# Dx" and some "#Dx", lists end with a comma, and positions differ between data sets."""
    header = read_header(write(tmp_path, counts(1), comments=("#Age: 1", "# Dxx: no", line, "#Dx: second")))
    assert header.listed("Dx") == ("AF", "RBBB")
    assert header.comment("age") == "1"
    assert header.comment("Sex") is None
    assert header.listed("Sex") == ()


def test_line_ends_of_any_system_and_bytes_of_any_alphabet_are_read(tmp_path):
    path = write(tmp_path, counts(2), comments=("#Dx: AF",))
    plain = read_header(path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_header(path) == plain
    path.write_bytes(b"\xef\xbb\xbf\r\n" + path.read_bytes() + b"\r\n")
    assert read_header(path) == plain
    path.write_bytes(path.read_bytes()[3:] + b"#Hx: caf\xe9\x85\n")
    latin = read_header(path)
    assert latin.signals == plain.signals
    assert latin.tolerated == ("The header is not UTF-8; it was read as Latin-1.",)


def merge(path):
    """Break a header as two published ones are: rate, length and the first signal's line have run together."""
    lines = path.read_text().splitlines()
    name, rest = lines[0].split()[0], lines[1].split(maxsplit=3)[3]
    path.write_text("\n".join([f"{name} 12 500 500000/mV {rest}", *lines[2:]]))
    return path


def test_a_record_line_that_has_run_into_the_next_is_taken_apart(tmp_path):
    """`JS01052 12 500 500000/mV 16 0 15 31255 0 I`: wfdb refuses it, but nothing of the signal is lost."""
    samples = counts(12)
    path = write(tmp_path, samples)
    whole = read_header(path)
    broken = read_header(merge(path))
    assert broken.signals == whole.signals
    assert (broken.sampling_rate, broken.samples) == (500, None)
    assert len(broken.tolerated) == 1
    record = read_wfdb(path)
    np.testing.assert_array_equal(record.samples, samples)
    assert record.tolerated == broken.tolerated, "the checksum of the first lead fits, so it was read right"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("A0001 3 500 50", "A0001 4 500 50"), "declares 4 signals, but 3 lines describe one"),
        (("A0001 3 500 50", "A0001 0 500 50"), "declares 0 signals"),
        (("A0001 3 500 50", "A0001 -1 500 50"), "declares -1 signals"),
        (("A0001 3 500 50", "A0001 3 zero 50"), "the sampling rate is 'zero'"),
        (("A0001 3 500 50", "A0001 3 0 50"), "the sampling rate is '0'"),
        (("A0001 3 500 50", "A0001 3 1e999 50"), "the sampling rate is"),
        (("A0001 3 500 50", "A0001 3 500 -50"), "declares -50 samples"),
        (("A0001 3 500 50", "A0001 3 500 many"), "the number of samples, found 'many'"),
        (("A0001 3 500 50", "A0001 two 500 50"), "the number of signals, found 'two'"),
        (("A0001 3 500 50", "A0001/7 3 500 50"), "made of several segments"),
        (("A0001 3 500 50", "A0001 3 500 500/mV"), "run into another"),
        (("1000/mV", "much/mV"), "the gain of a signal is 'much/mV'"),
        (("16+24", "sixteen"), "the format of a signal is 'sixteen'"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_file_and_reason(tmp_path, change, says):
    path = edit(write(tmp_path, counts(3)), *change)
    with pytest.raises(DataError, match=re.escape(says)) as told:
        read_header(path)
    assert "A0001.hea" in str(told.value)


def test_more_signal_lines_than_declared_are_told_of(tmp_path):
    path = edit(write(tmp_path, counts(3)), "A0001 3", "A0001 2")
    assert read_header(path).channels == ("I", "II")
    assert "the first 2 count" in read_header(path).tolerated[0]


def test_a_giant_file_is_no_header(tmp_path):
    (tmp_path / "a.hea").write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(DataError, match=r"has 1,048,577 bytes, expected at most 1,048,576"):
        read_header(tmp_path / "a.hea")
