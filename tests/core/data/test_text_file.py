"""Text as devices and apps write it: lines above the samples, units, decimal commas, times of day."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clocs_core.data.recording import ANYTHING
from clocs_core.data.signal_file import read_signal_file
from clocs_core.data.text_file import open_text
from clocs_core.errors import DataError

VALUES = np.array([[0.123, -1.5], [2.0, 0.04], [-0.75, 3.5], [1.0, 0.0], [7.25, -0.003]])  # (sample, channel)


def rows(values: np.ndarray, mark: str = ",", comma: bool = False, rate: float | None = None) -> str:
    """A row for each sample; rate: with a first column of seconds."""
    lines = []
    for number, row in enumerate(values):
        cells = [f"{one:.3f}" for one in row]
        cells = [f"{number / rate:.4f}", *cells] if rate else cells
        lines.append(mark.join(cell.replace(".", ",") if comma else cell for cell in cells))
    return "\n".join(lines) + "\n"


def read(folder: Path, text: str | bytes):
    (folder / "r.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    held = open_text(folder / "r.txt", ANYTHING)
    return held, held.read(0, held.length).samples


SMARTWATCH = (
    'Name,Jane Doe\nDate of Birth,"Jan 1, 1980"\nRecorded Date,2024-01-01 10:00:00 +0100\nClassification,Sinus Rhythm\n'
    'Symptoms,\nDevice,"Watch6,1"\nSample Rate,512.2 hertz\n\n\nLead,Lead I\nUnit,µV\n\n\n'
)
LOGGER = "# OpenSignals Text File Format\n# " + json.dumps({"dev": {"sampling rate": 1000}}) + "\n# EndOfHeader\n"


def test_the_file_of_a_smartwatch_says_lead_unit_and_rate(tmp_path: Path):
    held, samples = read(tmp_path, SMARTWATCH + rows(VALUES[:, :1]))
    assert (held.channels, held.unit, held.sampling_rate) == (("Lead I",), "uV", 512.2)
    assert samples.tolist() == [VALUES[:, 0].tolist()]


@pytest.mark.parametrize("quote", ["", '"'])
def test_one_column_of_decimal_commas_is_not_two_columns(tmp_path: Path, quote: str):
    """The same app in another language. No whole number begins with a zero: 0,040 is one number."""
    lines = "".join(f"{quote}{value:.3f}{quote}\n".replace(".", ",") for value in VALUES[:, 1])
    for above in ("", SMARTWATCH):
        _, samples = read(tmp_path, above + lines)
        assert samples.tolist() == [VALUES[:, 1].tolist()]


def test_two_columns_of_whole_numbers_stay_two(tmp_path: Path):
    assert read(tmp_path, "500,12\n501,340\n499,7\n")[1].tolist() == [[500, 501, 499], [12, 340, 7]]


def test_lines_of_json_above_the_samples_say_the_rate(tmp_path: Path):
    text = LOGGER + "".join(f"{n}\t0\t{500 + n}\t\n" for n in range(5))
    held, samples = read(tmp_path, text)
    assert held.sampling_rate == 1000
    assert samples.tolist() == [[0, 1, 2, 3, 4], [0] * 5, [500, 501, 502, 503, 504]]


@pytest.mark.parametrize(
    ("heading", "mark", "channels", "unit"),
    [
        ("time(s),ECG(mV),PPG (a.u.)\n", ",", ("ECG", "PPG"), "mV, a.u."),
        ("Time\tII\tV1\n[s]\t[mV]\t[mV]\n", "\t", ("II", "V1"), "mV"),
        ("time;II;V1\ns;uV;uV\n", ";", ("II", "V1"), "uV"),
        ("Time [s],II,Resp (abd)\n", ",", ("II", "Resp (abd)"), ""),
        ("# a device\n#time_s,II,V1\n", ",", ("II", "V1"), ""),
        ("# a device\n# seconds II V1\n", " ", ("II", "V1"), ""),
        ('"sec","II [mV]","V1 [mV]"\n', ",", ("II", "V1"), "mV"),
        ("Unit: mV\ntime_s,II,V1\n", ",", ("II", "V1"), "mV"),
        ("Unit: millivolts, filtered\ntime_s,II,V1\n", ",", ("II", "V1"), "mV"),
    ],
)
def test_a_heading_says_names_and_units_and_times_say_the_rate(tmp_path: Path, heading, mark, channels, unit):
    held, samples = read(tmp_path, heading + rows(VALUES, mark, rate=250))
    assert (held.channels, held.unit, held.sampling_rate) == (channels, unit, 250)
    assert samples.tolist() == VALUES.T.tolist()


def test_voltages_of_a_file_become_one_unit(tmp_path: Path):
    held, samples = read(tmp_path, "II (mV),V1 (uV)\n" + rows(VALUES))
    assert held.unit == "mV"
    assert samples == pytest.approx((VALUES * [1, 0.001]).T)


@pytest.mark.parametrize(
    ("write", "rate"),
    [
        (lambda ms: f"2024-01-01 10:00:{ms / 1000:06.3f}", 250),
        (lambda ms: f"2024-01-01T10:00:{ms / 1000:06.3f}Z", 250),
        (lambda ms: f"10:00:{ms / 1000:06.3f}", 250),
        (lambda ms: f"10:00:{ms / 1000:06.3f}".replace(".", ","), 250),
        (lambda ms: f"01.02.2024 10:00:{ms / 1000:06.3f}", None),  # a day or a month first: who knows
        (lambda ms: "10:00", None),
        (lambda ms: f"10:00:{ms**2 / 1000:06.3f}", None),  # not evenly spaced
    ],
)
def test_times_of_day_are_no_channel_and_say_the_rate(tmp_path: Path, write, rate):
    lines = [f"{write(4 * n)};{a:.3f};{b:.3f}" for n, (a, b) in enumerate(VALUES)]
    for heading in ("", "when;II;V1\n"):
        held, samples = read(tmp_path, heading + "\n".join(lines))
        assert samples.tolist() == VALUES.T.tolist()
        assert (held.sampling_rate, held.channels) == (rate, ("II", "V1") if heading else None)


@pytest.mark.parametrize("heading", ["'sample #','II','V1'\n", "index,II,V1\n", "sample,II,V1\n"])
def test_numbers_of_samples_are_no_channel(tmp_path: Path, heading: str):
    """As programs of PhysioNet and tables of pandas write them."""
    held, samples = read(tmp_path, heading + rows(VALUES, rate=1.0).replace(".0000", ""))
    assert held.channels == ("II", "V1")
    assert samples.tolist() == VALUES.T.tolist()


def test_names_and_units_in_single_quotes_are_read(tmp_path: Path):
    """As PhysioNet's rdsamp writes them."""
    text = "'Elapsed time','II','V1'\n'seconds','mV','mV'\n" + rows(VALUES, rate=250)
    held, samples = read(tmp_path, text)
    assert (held.channels, held.unit, held.sampling_rate) == (("II", "V1"), "mV", 250)
    assert samples.tolist() == VALUES.T.tolist()


@pytest.mark.parametrize(
    "text",
    [
        'II\n0.5\n""\n0.25\n-1\n',
        "II\n0.5\n\n0.25\n-1\n",
        "when,II\n10:00:00,0.5\n10:00:01,\n10:00:02,0.25\n10:00:03,-1\n",
    ],
)
def test_empty_cells_of_a_single_column_are_missing_samples(tmp_path: Path, text: str):
    """Left out, they would move all later samples, in silence."""
    held, samples = read(tmp_path, text)
    assert held.channels == ("II",)
    np.testing.assert_array_equal(samples, [[0.5, np.nan, 0.25, -1]])
    _, doubled = read(tmp_path, "II\n\n0.5\n\n0.25\n\n-1\n\n")  # each line ends twice
    np.testing.assert_array_equal(doubled, [[0.5, 0.25, -1]])


def test_a_rate_that_may_be_a_thousand_or_one_is_that_of_the_times_or_told(tmp_path: Path):
    """1 Hz would be used by every filter, in silence."""
    above = "Sampling rate: 1,000 Hz\n"
    timed, _ = read(tmp_path, f"{above}time_s,II,V1\n" + rows(VALUES, rate=1000))
    assert (timed.sampling_rate, timed.notes) == (1000, ())
    for heading in ("", "II,V1\n"):
        held, _ = read(tmp_path, above + heading + "\n".join(f"{a},{b}" for a, b in VALUES))
        assert held.sampling_rate is None
        assert len(held.notes) == 1
        assert "its sampling rate is written 1,000, which can be 1000 or 1; give `sampling_rate`" in held.notes[0]


@pytest.mark.parametrize(("said", "notes"), [(250, 0), (251, 0), (500, 1)])
def test_a_rate_that_the_times_contradict_is_told(tmp_path: Path, said: int, notes: int):
    held, _ = read(tmp_path, f"Sampling rate: {said} Hz\ntime_s,II,V1\n" + rows(VALUES, rate=250))
    assert (held.sampling_rate, len(held.notes)) == (said, notes)
    assert all(f"says {said} Hz, which is used, and its times are those of 250 Hz" in note for note in held.notes)


@pytest.mark.parametrize("heading", ["Sampling rate: 250 Hz\ntime_s,II,V1\n", "time,II,V1\n", "time_s,II,V1\n"])
def test_gaps_between_the_times_are_told(tmp_path: Path, heading: str):
    """Whatever says the rate: nothing else shows that samples are missing."""
    step = 4 if heading.startswith("time,") else 0.004
    apart = [n + (500 if n >= 3 else 0) for n in range(len(VALUES))]
    lines = "".join(f"{step * n:g},{a:.3f},{b:.3f}\n" for n, (a, b) in zip(apart, VALUES, strict=True))
    held, samples = read(tmp_path, heading + lines)
    assert samples.tolist() == VALUES.T.tolist()
    assert held.notes == ("r.txt: its times have 1 gap, of about 500 samples in all.",)
    (found,) = held.read(0, 2).notes
    assert found.startswith("Recording whose times have gaps or go back")


def test_a_gap_between_times_of_day_is_told_without_a_heading(tmp_path: Path):
    clocks = [f"10:{minute:02d}:{n % 60:02d}" for n, minute in ((n, 0 if n < 3 else 7) for n in range(len(VALUES)))]
    held, _ = read(
        tmp_path, "\n".join(f"{clock};{a:.3f};{b:.3f}" for clock, (a, b) in zip(clocks, VALUES, strict=True))
    )
    assert held.notes == ("r.txt: its times have 1 gap, of about 420 samples in all.",)
    assert len(held.read(0, 2).notes) == 1


def test_columns_of_words_are_left_out_and_told(tmp_path: Path):
    lines = "".join(f"{a:.3f},N,{b:.3f},walks\n" for a, b in VALUES)
    held, samples = read(tmp_path, "II,beat,V1,activity\n" + lines)
    assert (held.channels, held.notes) == (("II", "V1"), ("r.txt: columns of words are not read: beat, activity.",))
    assert samples.tolist() == VALUES.T.tolist()


@pytest.mark.parametrize("after", [0, 4, 5000])
def test_marks_of_events_are_words_though_most_cells_are_empty(tmp_path: Path, after: int):
    values = np.tile(VALUES, (1200, 1))
    lines = [f"{a:.3f},{'start' if n in (after, 5999) else ''},{b:.3f}" for n, (a, b) in enumerate(values)]
    held, samples = read(tmp_path, "II,event,V1\n" + "\n".join(lines))
    assert (held.channels, held.notes) == (("II", "V1"), ("r.txt: columns of words are not read: event.",))
    assert samples.tolist() == values.T.tolist()


def test_text_of_a_spreadsheet_in_two_bytes_a_letter_is_read(tmp_path: Path):
    for encoding in ("utf-16-le", "utf-16-be"):
        held, samples = read(tmp_path, ("\ufeffII\tV1\r\n" + rows(VALUES, "\t")).encode(encoding))
        assert held.channels == ("II", "V1")
        assert samples.tolist() == VALUES.T.tolist()


@given(
    st.integers(1, 4),
    st.sampled_from([",", ";", "\t", " "]),
    st.booleans(),
    st.booleans(),
    st.lists(
        st.sampled_from(["Device: X", "# made by us", "Heart rate,80", "Age;54", "", "Filter=0.5 - 40 Hz"]), max_size=6
    ),
    st.lists(st.integers(-(10**6), 10**6), min_size=16, max_size=40),
)
def test_any_lines_above_and_any_marks_give_the_same_samples(
    tmp_path_factory, width, mark, comma, named, above, numbers
):
    comma = comma and mark != "," and width > 1  # 0,1 alone may be two columns
    values = np.array(numbers[: len(numbers) // width * width]).reshape(-1, width) / 1000
    names = [f"lead{n}" for n in range(width)]
    heading = mark.join(names) + "\n" if named else ""
    text = "\n".join([*above, ""]) + heading + rows(values, mark, comma)
    held, samples = read(tmp_path_factory.mktemp("text"), text)
    assert samples.tolist() == values.T.tolist()
    assert held.sampling_rate is None
    assert not named or held.channels == tuple(names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("II,V1\n1,2\n3,4\n5,x\n", "row 3, column 2 is 'x'"),
        ("II,V1\n1,\n3,\n5,x\n7,1\n", "row 3, column 2 is 'x'"),  # one number makes it a channel
        ("1,2\n3,x\n5,6\n7,8\n9,1\n", "row 2, column 2 is 'x'"),  # the rows below it are not the beginning
        ("Device: X\nII,V1\n1,2\n3,x\n5,6\n7,8\n9,1\n", "row 2, column 2 is 'x'"),
        ("1,2\n3\n5,6\n7,8\n9,1\n", "row 2 has 1 columns"),
        ("II,V1\n1,2,3\n4,5,6\n7,8,9\n", "has 3 columns below the heading II, V1"),
        ("only words\nand more of them\n", "'and'|'only'"),
        ("when,what\n10:00:00,walks\n10:00:01,runs\n10:00:02,sits\n", "could not convert string"),
    ],
)
def test_a_mistake_among_the_samples_is_named_and_no_row_is_skipped(tmp_path: Path, text: str, message: str):
    with pytest.raises(DataError, match=message) as raised:
        read(tmp_path, text)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "time,ecg\n10:00:00,1\n10:00:01,2\n\n10:00:02,3\n10:00:03,4\n",
        "10:00:00,1\n10:00:01,2\n\n10:00:02,3\n10:00:03,4\n",
        "ecg,event\n1,a\n2,b\n\n3,c\n4,d\n",
    ],
)
def test_an_empty_line_is_no_sample_where_one_column_of_several_is_left(tmp_path: Path, text: str):
    """It became a missing one, so that all later samples moved."""
    _, samples = read(tmp_path, text)
    assert samples.tolist() == [[1, 2, 3, 4]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1\n2\n\n\n3\n", [1, 2, None, None, 3]),
        ("1\n\n2\n\n\n\n3\n\n4\n", [1, 2, None, 3, 4]),  # lines end twice, and a sample is missing
        ("1\n\n2\n\n3\n", [1, 2, 3]),
    ],
)
def test_missing_samples_of_a_single_column_keep_their_places(tmp_path: Path, text: str, expected: list[float | None]):
    _, samples = read(tmp_path, f"ecg\n{text}")
    assert [None if np.isnan(one) else one for one in samples[0]] == expected


@pytest.mark.parametrize(("step", "gap"), [(1, False), (1, True), (4, False), (4, True)])
def test_numbers_of_rows_are_no_channel_whatever_is_missing_between_them(tmp_path: Path, step: int, gap: bool):
    """A lost sample made a ramp of them, beside or in place of the signal."""
    numbers = [step * (n + 3 * (gap and n > 2)) for n in range(len(VALUES))]
    lines = "".join(f"{n},{a:.3f}\n" for n, a in zip(numbers, VALUES[:, 0], strict=True))
    held, samples = read(tmp_path, f"sample,ecg\n{lines}")
    assert held.channels == ("ecg",)
    assert samples.tolist() == [VALUES[:, 0].tolist()]
    assert held.notes == (("r.txt: its row numbers have 1 gap, of about 3 samples in all.",) if gap else ())


def test_a_file_of_row_numbers_alone_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match=r"has no column of a signal: index are times, numbers of rows or words\."):
        read(tmp_path, "index\n0\n1\n2\n")


@pytest.mark.parametrize(
    ("above", "rate"),
    [
        ("Sampling rate: 1 000 Hz", 1000.0),
        ("Sampling rate: 1.000 Hz", None),
        ("Sampling rate: 250.000 Hz", 250.0),
        ("Sampling rate: 1.500 kHz", None),
    ],
)
def test_thousands_are_read_where_they_are_clear(tmp_path: Path, above: str, rate: float | None):
    held, _ = read(tmp_path, f"{above}\necg\n1\n2\n4\n3\n")
    assert held.sampling_rate == rate
    assert len(held.notes) == (rate is None)


def test_a_force_sensor_is_no_sampling_rate(tmp_path: Path):
    held, _ = read(tmp_path, "FS 1\n1\n2\n4\n3\n")
    assert (held.channels, held.sampling_rate) == (("FS 1",), None)


@pytest.mark.parametrize("text", ["II,index\n1\n2\n3\n", "time,index,II\n0,1\n1,2\n2,3\n"])
def test_a_heading_with_more_names_than_columns_is_refused(tmp_path: Path, text: str):
    with pytest.raises((DataError, ValueError), match="columns"):
        read(tmp_path, text)


def test_an_export_of_labchart_says_names_units_and_times(tmp_path: Path):
    """Its lines above the numbers are facts with an equals sign, and no heading."""
    above = "Interval=\t0.002 s\nTimeFormat=\tStartOfBlock\nChannelTitle=\tECG\tResp\nRange=\t5.000 mV\t10.000 mV\n"
    rows = "".join(f"{n / 500:g}\t{n % 7 / 8}\t{n % 5 / 8}\n" for n in range(50))
    (tmp_path / "l.txt").write_text(above + rows)
    found = read_signal_file(tmp_path / "l.txt")
    assert (found.channels, found.unit, found.sampling_rate) == (("ECG", "Resp"), "mV", 500.0)
    np.testing.assert_array_equal(found.samples[0], [n % 7 / 8 for n in range(50)])
    (tmp_path / "l.txt").write_text(above.replace("ChannelTitle", "Channels") + rows)
    assert read_signal_file(tmp_path / "l.txt").channels is None


def acqknowledge(mark: str, times: bool, end: str, above: str = "C:\\p1.acq\n0.5 msec/sample\n2 channels\n") -> str:
    """Write 20 minutes as AcqKnowledge does: six digits for times, and the number of samples of each channel."""
    head = (["min"] if times else []) + ["CH1", "CH2"]
    counts = ([""] if times else []) + ["400"] * 2
    rows = [([f"{20 + n / 120_000:.6g}"] if times else []) + [f"{n % 7 / 8}", f"{n % 5 / 8}"] for n in range(400)]
    names = "ECG, lead II\nmV\nPPG\nVolts\n"
    return above + names + "".join(mark.join(row) + end + "\n" for row in (head, counts, *rows))


@pytest.mark.parametrize("mark", ["\t", ","])
@pytest.mark.parametrize("times", [False, True])
@pytest.mark.parametrize("ends_with_mark", [False, True])
def test_an_export_of_acqknowledge_says_names_units_and_the_interval(
    tmp_path: Path, mark: str, times: bool, ends_with_mark: bool
):
    """Its row of counts is no sample, and gaps in its rounded times are none."""
    (tmp_path / "a.txt").write_text(acqknowledge(mark, times, mark * ends_with_mark))
    found = read_signal_file(tmp_path / "a.txt")
    assert (found.channels, found.unit, found.sampling_rate) == (("ECG lead II", "PPG"), "mV", 2000.0)
    np.testing.assert_array_equal(found.samples[0], [n % 7 / 8 for n in range(400)])
    np.testing.assert_array_equal(found.samples[1], [n % 5 * 125 for n in range(400)])
    assert found.notes == ()


@pytest.mark.parametrize(
    ("change", "channels", "rate"),
    [
        (("\nmV\n", "\n"), ("CH1", "CH2"), 2000.0),  # one unit is missing, and nobody knows which
        (("0.5 msec", "500 usec"), ("ECG lead II", "PPG"), 2000.0),
        (("0.5 msec", "3.90625 msec"), ("ECG lead II", "PPG"), 256.0),
        (("0.5 msec", "2 sec"), ("ECG lead II", "PPG"), 0.5),
    ],
)
def test_other_lines_of_acqknowledge(tmp_path: Path, change: tuple[str, str], channels: tuple[str, ...], rate: float):
    (tmp_path / "a.txt").write_text(acqknowledge("\t", True, "").replace(*change))
    found = read_signal_file(tmp_path / "a.txt")
    assert (found.channels, found.sampling_rate, found.samples.shape) == (channels, rate, (2, 400))


@pytest.mark.parametrize(
    "change",
    [
        ("2 channels", "3 channels"),
        ("2 channels", "0 channels"),
        ("0.5 msec/sample", "0.5 turns/sample"),
        ("0.5 msec", "0 msec"),
    ],
)
def test_lines_that_are_almost_those_of_acqknowledge_are_not_trusted(tmp_path: Path, change: tuple[str, str]):
    (tmp_path / "a.txt").write_text(acqknowledge("\t", False, "").replace(*change))
    assert read_signal_file(tmp_path / "a.txt").sampling_rate is None


def test_a_first_sample_is_no_count_of_samples(tmp_path: Path):
    """A part of an export that somebody cut out by hand may begin with whole numbers."""
    whole = acqknowledge("\t", False, "")
    (tmp_path / "a.txt").write_text(whole.replace("400\t400\n", "3\t4\n"))
    np.testing.assert_array_equal(read_signal_file(tmp_path / "a.txt").samples[:, 0], [3, 4000])


@pytest.mark.parametrize("columns", [1, 3])
def test_the_start_and_the_rate_above_the_samples_of_a_wristband_are_no_samples(tmp_path: Path, columns: int):
    cells = [[1544027337.0] * columns, [64.0] * columns, *[[float(n % 7)] * columns for n in range(20)]]
    (tmp_path / "BVP.csv").write_text("".join(",".join(f"{one:.6f}" for one in row) + "\n" for row in cells))
    found = read_signal_file(tmp_path / "BVP.csv")
    assert found.sampling_rate == 64.0
    np.testing.assert_array_equal(found.samples, [[n % 7 for n in range(20)]] * columns)
    assert "BVP.csv: its first two rows are the start and the sampling rate" in found.notes[0]


@pytest.mark.parametrize("first", ["900.0\n64.0\n", "1544027337.0\n0.25\n", "1544027337.0\n5000.0\n"])
def test_other_first_rows_are_samples(tmp_path: Path, first: str):
    (tmp_path / "x.csv").write_text(first + "".join(f"{n % 7}\n" for n in range(20)))
    found = read_signal_file(tmp_path / "x.csv")
    assert (found.samples.shape, found.sampling_rate) == ((1, 22), None)


def test_minutes_and_seconds_since_the_start_are_times(tmp_path: Path):
    """As the PhysioBank ATM writes them, in single quotes and with a row of units; an hour later come hours."""
    seconds = [3599 + n / 4 for n in range(12)]
    clock = [f"{int(one) // 60}:{one % 60:06.3f}" if one < 3600 else f"1:00:{one % 60:06.3f}" for one in seconds]
    rows = "".join(f"'{one}',{n % 7},{n % 5}\n" for n, one in enumerate(clock))
    (tmp_path / "s.csv").write_text(f"'Elapsed time','MLII','V5'\n'hh:mm:ss.mmm','mV','mV'\n{rows}")
    found = read_signal_file(tmp_path / "s.csv")
    assert (found.channels, found.unit, found.sampling_rate) == (("MLII", "V5"), "mV", 4.0)


def test_names_of_several_words_stand_two_spaces_apart(tmp_path: Path):
    rows = "".join(f"   {n / 360:.3f}   {n % 7}.5   {n % 5}\n" for n in range(720))
    (tmp_path / "r.txt").write_text(f"   Elapsed time     MLII      V5\n   (seconds)       (mV)     (mV)\n{rows}")
    found = read_signal_file(tmp_path / "r.txt")
    assert (found.channels, found.unit, found.sampling_rate) == (("MLII", "V5"), "mV", 360.0)


def test_a_rising_column_in_a_unit_of_time_is_no_channel_and_intervals_are_one(tmp_path: Path):
    """Chest straps write two clocks, one in nanoseconds; intervals between beats are in milliseconds too."""
    rows = "".join(f"{599616 * 10**12 + n * 4 * 10**6};{800 + 50 * (n % 3)};{n % 7}\n" for n in range(50))
    (tmp_path / "p.txt").write_text(f"sensor clock [ns];RR [ms];ecg [uV]\n{rows}")
    found = read_signal_file(tmp_path / "p.txt")
    assert (found.channels, found.sampling_rate) == (("RR", "ecg"), 250.0)
