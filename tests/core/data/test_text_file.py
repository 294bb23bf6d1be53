"""Text as devices and apps write it: lines above the samples, units, decimal commas, times of day."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clocs_core.data.recording import ANYTHING
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


@pytest.mark.parametrize(("said", "notes"), [(250, 0), (251, 0), (500, 1)])
def test_a_rate_that_the_times_contradict_is_told(tmp_path: Path, said: int, notes: int):
    held, _ = read(tmp_path, f"Sampling rate: {said} Hz\ntime_s,II,V1\n" + rows(VALUES, rate=250))
    assert (held.sampling_rate, len(held.notes)) == (said, notes)
    assert all(f"says {said} Hz, which is used, and its times are those of 250 Hz" in note for note in held.notes)


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
