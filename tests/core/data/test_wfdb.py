"""Signals equal to what the packages wfdb and scipy read; faults that are tolerated, and told of."""

from __future__ import annotations

import struct
import time
import warnings
from pathlib import Path

import made_files
import numpy as np
import pytest
from challenge_files import checksum, counts, edit, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import loadmat

from clocs_core import DataError, Header, Signal, Wish, read_header, read_wfdb
from clocs_core.data.wfdb import open_wfdb


def physical(record):
    """What a user gets: counts divided by the gain, NaN where a sample is missing."""
    values = record.samples.astype(np.float64) / record.gain
    if record.samples.dtype == np.int16:
        values[record.samples == -32768] = np.nan
    return values


def by_package(path):
    """What the package wfdb reads, (channel, sample)."""
    with warnings.catch_warnings(action="ignore"):  # importing wfdb warns of pandas 3's plans; nothing of ours
        import wfdb

    return wfdb.rdrecord(str(path.with_suffix(""))).p_signal.T


@pytest.mark.parametrize("ending", [".mat", ".dat"])
@pytest.mark.parametrize("channels", [1, 2, 12])
def test_counts_are_read_as_they_are(tmp_path, ending, channels):
    samples = counts(channels)
    samples[0, 3], samples[-1, 4] = -32768, 32767
    record = read_wfdb(write(tmp_path, samples, ending=ending))
    assert (record.gain, record.unit, record.tolerated) == (1000, "mV", ())
    assert record.samples.dtype == np.int16
    assert record.samples.flags.c_contiguous
    np.testing.assert_array_equal(record.samples, samples)


@pytest.mark.parametrize("gains", [["1000/mV", "1/uV"], ["1000/mV", "1000/uV"], ["200/uV", "200(7)/mV"]])
def test_voltages_are_in_the_unit_of_the_first_channel(tmp_path, gains):
    """A channel that is a thousand times smaller would be silence beside the others."""
    path = write(tmp_path, counts(2), gain=gains)
    first = gains[0].partition("/")[2]
    factors = np.array([[1.0], [0.001 if first == "mV" else 1000.0]])
    whole, opened = read_wfdb(path), open_wfdb(path, Wish())
    np.testing.assert_allclose(physical(whole), by_package(path) * factors, rtol=1e-12)
    assert (whole.unit, opened.unit, opened.units) == (first, first, (first, first))
    part = opened.read(10, 20).samples / opened.gain
    np.testing.assert_allclose(part, (by_package(path) * factors)[:, 10:20], rtol=1e-12)


def test_other_formats_are_in_one_unit_too_and_other_units_stay(tmp_path):
    path = made_files.write_wfdb(tmp_path / "a", np.arange(20.0).reshape(2, 10) / 10, 250, "212")
    header, expected = path.with_suffix(".hea"), by_package(path)
    text = header.read_text()
    assert text.count("/mV") == 2
    header.write_text("/uV".join(text.rsplit("/mV", 1)))
    np.testing.assert_allclose(read_wfdb(path).samples, expected * [[1], [0.001]], rtol=1e-12)
    header.write_text("/mmHg".join(text.rsplit("/mV", 1)))
    held = read_wfdb(path)
    assert held.unit == "mV, mmHg"
    np.testing.assert_array_equal(held.samples, expected)


@pytest.mark.parametrize("gain", [["1000/mV", "500/mV"], ["1000(5)/mV", "1000/mV"], ["-1000/mV", "-1000/mV"]])
def test_unequal_gains_and_baselines_give_physical_values(tmp_path, gain):
    samples = counts(2)
    samples[1, 7] = -32768
    path = write(tmp_path, samples, gain=gain)
    record = read_wfdb(path)
    assert (record.gain, record.samples.dtype) == (1.0, np.float64)
    assert np.isnan(record.samples[1, 7])
    np.testing.assert_array_equal(record.samples, by_package(path))


def test_units_that_differ_are_all_named(tmp_path):
    assert read_wfdb(write(tmp_path, counts(2), gain=["200/mV", "10/mmHg"])).unit == "mV, mmHg"


@pytest.mark.parametrize(("declared", "read"), [(1000, 50), (10**15, 50), (40, 40)])
def test_where_the_file_has_fewer_samples_than_declared_the_file_is_right(tmp_path, declared, read):
    """A truncated download is still a recording, and no number in a header costs memory."""
    samples = counts()
    record = read_wfdb(write(tmp_path, samples, record_line=f"A0001 12 500 {declared}"))
    np.testing.assert_array_equal(record.samples, samples[:, :read])
    expected = f"The header declares {declared:,} samples, the file has 50; {read} were read."
    assert record.tolerated[0] == expected


def test_half_a_sample_at_the_end_is_left_out(tmp_path):
    path = write(tmp_path, counts(), record_line="A0001 12 500")
    signal = path.with_suffix(".mat")
    signal.write_bytes(signal.read_bytes()[:-3])
    record = read_wfdb(path)
    assert record.samples.shape == (12, 49)
    assert record.tolerated[0] == "The file ends with 21 bytes that are not a sample of every channel."


@pytest.mark.parametrize("byte", [0, 1])
def test_a_changed_sample_is_found_by_its_checksum(tmp_path, byte):
    path = write(tmp_path, counts(3))
    signal = path.with_suffix(".mat")
    raw = bytearray(signal.read_bytes())
    raw[24 + 2 + byte] ^= 1  # of the first sample of the second channel
    signal.write_bytes(raw)
    assert read_wfdb(path).tolerated == ("Checksums do not fit: II.", "First values do not fit: II.")


def test_checksums_of_zero_are_no_checksums(tmp_path):
    samples = counts(1)
    path = edit(write(tmp_path, samples), f" {checksum(samples[0])} 0 I", " 0 0 I")
    assert read_wfdb(path).tolerated == ("The header has no checksums, only zeros.",)


def test_a_matlab_file_says_itself_where_its_samples_begin(tmp_path):
    samples = counts(2)
    path = edit(write(tmp_path, samples), "16+24", "16")
    record = read_wfdb(path)
    np.testing.assert_array_equal(record.samples, samples)
    assert record.tolerated == ("The header has samples begin at byte 0, the file at 24.",)


def test_a_recording_that_was_renamed_is_read_under_its_new_name(tmp_path):
    samples = counts(2)
    for file in write(tmp_path, samples), tmp_path / "A0001.mat":
        file.rename(tmp_path / f"x{file.suffix}")
    record = read_wfdb(tmp_path / "x.hea")
    np.testing.assert_array_equal(record.samples, samples)
    assert record.tolerated == ("The header names A0001.mat, which is not there; x.mat was read.",)


def test_a_header_leads_to_no_other_folder(tmp_path):
    (tmp_path / "secret.dat").write_bytes(bytes(100))
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.hea"
    path.write_text("a 1 500 10\n../secret.dat 16 1000/mV 16 0 0 0 0 I\n")
    with pytest.raises(DataError, match="not beside it"):
        read_wfdb(path)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "should be a MATLAB 4 matrix of 16-bit integers, but is none"),
        (b"MATLAB 5.0 MAT-file, Platform: GLNXA64", "but is a MATLAB 5 file"),
        (struct.pack("<5i", 0, 2, 50, 0, 4) + b"val\0" + bytes(800), "should be a MATLAB 4 matrix"),
        (struct.pack("<5i", 30, 12, 50, 0, 4) + b"val\0" + bytes(800), "has 12 channels, but its header describes 2"),
        (struct.pack("<5i", 30, 2, 50, 0, 4) + b"val\0", "hold no sample of 2 channels after byte 24"),
    ],
)
def test_a_signal_file_that_does_not_go_with_its_header_is_refused(tmp_path, raw, says):
    path = write(tmp_path, counts(2))
    path.with_suffix(".mat").write_bytes(raw)
    with pytest.raises(DataError, match=says):
        read_wfdb(path)


def test_missing_files_are_told_of_as_such(tmp_path):
    path = write(tmp_path, counts(2))
    path.with_suffix(".mat").unlink()
    with pytest.raises(FileNotFoundError, match=r"describes 'A0001\.mat', which is not beside it"):
        read_wfdb(path)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        read_wfdb(path)


def test_a_recording_without_a_header_is_read_by_one_that_is_given(tmp_path):
    samples = counts(1)
    write(tmp_path, samples).unlink()
    header = Header("A0001", 300.0, None, (Signal("A0001.mat", "ECG", gain=1000.0, offset=24),))
    record = read_wfdb(tmp_path / "A0001.mat", header)
    np.testing.assert_array_equal(record.samples, samples)
    assert (record.gain, record.header, record.tolerated) == (1000, header, ())
    other = Header("A0001", 300.0, None, (Signal("A0001.mat", "ECG", format=212),))
    with pytest.raises(DataError, match="only signals of format 16"):
        read_wfdb(tmp_path / "A0001.mat", other)


def test_other_formats_are_left_to_the_package(tmp_path):
    """Format 80 has a byte for a sample, 128 above its value."""
    (tmp_path / "a.dat").write_bytes(bytes(range(100, 140)))
    (tmp_path / "a.hea").write_text("a 2 500 20\na.dat 80 10/mV 8 0 0 0 0 I\na.dat 80 20/mV 8 0 0 0 0 II\n")
    record = read_wfdb(tmp_path / "a.hea")
    expected = [[(byte - 128) / 10 for byte in range(100, 140, 2)], [(byte - 128) / 20 for byte in range(101, 140, 2)]]
    np.testing.assert_array_equal(record.samples, expected)
    assert (record.gain, record.unit, record.header.channels) == (1.0, "mV", ("I", "II"))


@pytest.mark.parametrize("form", [None, "16", "24", "32"])
@pytest.mark.parametrize("offset", [1000, -5])
def test_a_signal_far_from_zero_is_read_as_the_package_wrote_it(tmp_path, form, offset):
    """`wfdb.wrsamp` then writes a baseline of ten digits, and format 24 or 32 where it is not told another."""
    values = np.random.default_rng(0).normal(offset, 1e-3, (200, 1))
    how = {} if form is None else {"fmt": [form]}
    with warnings.catch_warnings(action="ignore"):  # wfdb uses deprecated functions of pandas
        import wfdb

        wfdb.wrsamp("a", fs=250, units=["mV"], sig_name=["I"], p_signal=values, write_dir=str(tmp_path), **how)
    np.testing.assert_array_equal(physical(read_wfdb(tmp_path / "a")), by_package(tmp_path / "a.hea"))


@pytest.mark.parametrize("line", ["a 2 500 {}", "a 2 500 20\n#"])
def test_the_package_is_not_asked_for_more_than_a_file_can_hold(tmp_path, line):
    (tmp_path / "a.dat").write_bytes(bytes(40))
    (tmp_path / "a.hea").write_text(line.format(10**12) + "\na.dat 80x9999:99999999 10/mV\na.dat 80 20/mV\n")
    with pytest.raises(DataError, match="more than there can be in 40 bytes"):
        read_wfdb(tmp_path / "a.hea")


def test_what_the_package_cannot_read_is_a_data_error(tmp_path):
    (tmp_path / "a.dat").write_bytes(bytes(40))
    (tmp_path / "a.hea").write_text("a 1 500 20\na.dat 77 10/mV 8 0 0 0 0 I\n")
    with pytest.raises(DataError, match=r"a\.hea cannot be read"):
        read_wfdb(tmp_path / "a.hea")


# ----------------------------------------------------------------------------------------------------- real recordings


def every(folder, pattern, step=1):
    found = sorted(folder.glob(pattern))[::step]
    if not found:
        pytest.skip(f"no {pattern} in {folder.name}")
    return found


@pytest.mark.parametrize(
    ("pattern", "step", "refused"),
    [
        ("physionet2020/Training_WFDB/*.hea", 1, 0),
        ("cinc2021_snomed/*.hea", 1, 11),
        ("ptbxl/records100/*/*.hea", 60, 0),
    ],
)
def test_real_recordings_are_what_the_package_reads_to_the_last_bit(test_data: Path, pattern, step, refused):
    """And what scipy reads, where the package refuses the header."""
    refusals = 0
    for path in every(test_data, pattern, step):
        record = read_wfdb(path)
        try:
            expected = by_package(path)
        except ValueError:
            refusals += 1
            expected = loadmat(path.with_suffix(".mat"))["val"] / 1000.0
        np.testing.assert_array_equal(physical(record), expected, err_msg=str(path))
        assert not [said for said in record.tolerated if "Checksum" in said or "First" in said], path
    assert refusals == refused


def test_headers_with_the_date_first_are_read_and_their_signals_are_what_scipy_reads(test_data: Path):
    """The package refuses all 300 of them. In 16, the first value is not that of the signal: nothing to be done."""
    odd = 0
    for path in every(test_data, "physionet2017/sample2017/validation/*.hea"):
        record = read_wfdb(path)
        np.testing.assert_array_equal(record.samples, loadmat(path.with_suffix(".mat"))["val"])
        odd += any(said.startswith("First values") for said in record.tolerated)
    assert odd == 16


def test_reading_is_much_faster_than_by_the_package(test_data: Path):
    """A data set of 10,000 recordings is read in seconds. Ten times is asked for; forty were measured."""
    paths = every(test_data, "physionet2020/Training_WFDB/*.hea", 10)

    def best(read):
        times = []
        for _ in range(3):
            before = time.process_time()
            for path in paths:
                read(path)
            times.append(time.process_time() - before)
        return min(times)

    by_package(paths[0])  # imports it
    assert 10 * best(read_wfdb) < best(by_package)


# ---------------------------------------------------------------------------------------------------------------- fuzz

TEXT = (
    b"JS00001 2 500 20 05-Feb-2020 11:39:16\nA.mat 16+24 1000.0(0)/mV 16 0 28 -17 0 I\n"
    b"A.mat 16x1+24 1000/mv 16 0 7 2029 0 II\n#Age: 74\n# Dx: 59118001,,164889003,\n"
)
WORDS = [b"", b"\n", b" ", b"0", b"-1", b"9" * 20, b"9" * 5000, b"1e308", b"nan", b"/", b"(", b"x", b"+", b":", b"\x00"]
FUZZ = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def mutations(raw, limit=4):
    """Pieces cut out, doubled or replaced by words that parsers stumble over."""
    edits = st.tuples(st.integers(0, len(raw)), st.integers(0, 12), st.sampled_from(WORDS) | st.binary(max_size=6))

    def apply(changes):
        mutated = raw
        for at, length, word in changes:
            mutated = mutated[:at] + word + mutated[at + length :]
        return mutated

    return st.lists(edits, min_size=1, max_size=limit).map(apply)


@FUZZ
@given(raw=mutations(TEXT) | st.binary(max_size=80))
def test_any_header_is_read_or_refused(tmp_path, raw):
    """Whatever is in a folder, a scan goes on: DataError or OSError, never a crash, a hang or a huge allocation."""
    (tmp_path / "A.hea").write_bytes(raw)
    (tmp_path / "A.mat").write_bytes(struct.pack("<5i", 30, 2, 20, 0, 4) + b"val\0" + bytes(range(80)))
    try:
        header = read_header(tmp_path / "A.hea")
        assert header.sampling_rate > 0
        assert header.signals
        record = read_wfdb(tmp_path / "A.hea")
    except (DataError, OSError):
        return
    assert record.samples.shape[0] == len(header.signals)
    assert 0 < record.samples.size <= 80 * len(header.signals)


@FUZZ
@given(raw=mutations(struct.pack("<5i", 30, 2, 20, 0, 4) + b"val\0" + bytes(range(80))) | st.binary(max_size=120))
def test_any_signal_file_is_read_or_refused(tmp_path, raw):
    (tmp_path / "A.hea").write_bytes(TEXT)
    (tmp_path / "A.mat").write_bytes(raw)
    try:
        record = read_wfdb(tmp_path / "A.hea")
    except (DataError, OSError):
        return
    assert record.samples.nbytes <= len(raw)


@pytest.mark.parametrize("format_", ["16", "80", "212", "24", "32", "508", "516", "524"])
def test_a_window_of_any_format_is_the_same_part_of_the_whole(tmp_path: Path, format_: str):
    samples = made_files.wave(100)
    path = made_files.write_wfdb(tmp_path / "r.hea", samples, 100, format_)
    held = open_wfdb(path, Wish())
    assert (held.channels, held.unit, held.sampling_rate, held.length) == (("I", "II"), "mV", 100.0, 1000)
    whole = held.read(0, 1000).samples
    np.testing.assert_allclose(whole / held.gain, samples, atol=0.02 if format_ in ("80", "508") else 2e-3)
    np.testing.assert_array_equal(held.read(123, 456).samples, whole[:, 123:456])


@pytest.mark.parametrize("format_", [310, 311])
def test_ten_bits_in_four_bytes_are_read(tmp_path: Path, format_: int):
    """The package reads these formats and does not write them, so they are packed here."""
    values = np.random.default_rng(0).integers(-500, 500, 300)
    low = values.reshape(-1, 3) & 0x3FF
    if format_ == 310:
        words = [(low[:, 0] << 1) | ((low[:, 2] & 0x1F) << 11), (low[:, 1] << 1) | ((low[:, 2] >> 5) << 11)]
        raw = np.stack(words, axis=1).astype("<u2").tobytes()
    else:
        raw = (low[:, 0] | (low[:, 1] << 10) | (low[:, 2] << 20)).astype("<u4").tobytes()
    (tmp_path / "r.dat").write_bytes(raw)
    (tmp_path / "r.hea").write_text(f"r 1 100 300\nr.dat {format_} 100(0)/mV 10 0 {values[0]} 0 0 I\n")
    held = open_wfdb(tmp_path / "r.hea", Wish())
    np.testing.assert_allclose(held.read(0, 300).samples[0], values / 100)


def write_several_rates(folder: Path):
    """Frames of 4, 2 and 1 samples, as of a bedside monitor; the first two channels in V and mV."""
    rates = (4, 2, 1)
    rows = [np.random.default_rng(n).normal(size=60 * rate) for n, rate in enumerate(rates)]
    with warnings.catch_warnings(action="ignore"):  # wfdb uses deprecated functions of pandas
        import wfdb

        wfdb.wrsamp(
            "m",
            fs=62,
            units=["mV", "V", "Ohm"],
            sig_name=["II", "III", "Resp"],
            e_p_signal=rows,
            samps_per_frame=list(rates),
            fmt=["16"] * 3,
            adc_gain=[1000.0] * 3,
            baseline=[0] * 3,
            write_dir=str(folder),
        )
    return folder / "m.hea", rows


@pytest.mark.parametrize(("name", "place", "rate"), [("II", 0, 248.0), ("III", 1, 124.0), ("Resp", 2, 62.0)])
def test_channels_of_several_rates_keep_their_own(tmp_path: Path, name, place, rate):
    path, rows = write_several_rates(tmp_path)
    held = open_wfdb(path, Wish((name,)))
    assert (held.channels, held.sampling_rate, held.length) == ((name,), rate, len(rows[place]))
    np.testing.assert_allclose(held.read(0, held.length).samples[0], rows[place], atol=5e-4 + 1e-12)
    np.testing.assert_array_equal(held.read(7, 41).samples, held.read(0, held.length).samples[:, 7:41])
    assert held.files == (tmp_path / "m.dat",)


def test_a_name_that_no_file_can_have_is_that_of_a_missing_signal(tmp_path: Path):
    (tmp_path / "a.hea").write_text(f"a 1 100 8\na.{'9' * 300} 212 200 12 0 0 0 0 I\n")
    with pytest.raises(DataError):
        open_wfdb(tmp_path / "a.hea", Wish())


def test_of_several_rates_the_fastest_is_read_and_the_others_are_named(tmp_path: Path):
    path, _ = write_several_rates(tmp_path)
    held = open_wfdb(path, Wish())
    assert held.channels == ("II",)
    assert held.notes == ("Only channels at 248 Hz are read, not III (124 Hz), Resp (62 Hz).",)
    assert open_wfdb(path, Wish(sampling_rate=62.0)).channels == ("Resp",)


def test_a_reader_of_whole_recordings_is_told_that_samples_of_a_frame_are_averaged(tmp_path: Path):
    path, rows = write_several_rates(tmp_path)
    found = read_wfdb(path)
    assert found.tolerated == ("Averaged to 62 Hz: II, III.",)
    np.testing.assert_allclose(found.samples[0], rows[0].reshape(-1, 4).mean(axis=1), atol=1e-3)
