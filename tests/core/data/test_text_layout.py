"""What the lines above the numbers of a text say."""

from __future__ import annotations

import pytest

from clocs_core.data.text_layout import find_layout

ROWS = b"1,2\n3,4\n5,6\n"


@pytest.mark.parametrize(
    ("above", "rate"),
    [
        ("Sample Rate,512.2 hertz", 512.2),
        ("Sampling rate: 250 Hz", 250),
        ("# sampling frequency (Hz) = 360", 360),
        ("Sampling Rate [kHz]: 2", 2000),
        ("sample_rate=1 kHz", 1000),
        ("fs;128", 128),
        ('{"sampling rate": 1000, "device": 7}', 1000),
        ("Samplerate 100,5 Hz", 100.5),
        ("Sampling rate: 1,000 Hz", None),  # a thousand, or one
        ("Sampling rate: 0,250 kHz", 250),
        ("Heart rate: 80", None),
        ("bits per sample: 16", None),
        ("fs=100\nSampling rate: 250 Hz", None),  # which?
        ("weight of 80 kg, fs=100\nfs: 100", 100),
    ],
)
def test_a_sampling_rate_is_read_where_it_is_said_once(above: str, rate: float | None):
    assert find_layout(f"{above}\nx\n".encode() + ROWS).sampling_rate() == rate


def test_a_fact_is_found_by_its_word():
    layout = find_layout(b"# Unit: mV\nLead = II, of a patient\nname\n" + ROWS)
    assert (layout.fact("unit"), layout.fact("lead", "channel"), layout.fact("device")) == (
        "mV",
        "II, of a patient",
        "",
    )


@pytest.mark.parametrize(
    ("text", "names", "units"),
    [
        (b"a,b\n", ("a", "b"), ("", "")),
        (b"a (mV),b [%]\n", ("a", "b"), ("mV", "%")),
        (b"a,b\nmV,%\n", ("a", "b"), ("mV", "%")),
        (b"a,b\n[x],[y]\n", ("a", "b"), ("x", "y")),
        (b"some words\na,b\n\n", ("a", "b"), ("", "")),
        (b"some words\nand a title\n", None, ("", "")),
        (b"mV,%\n", ("mV", "%"), ("", "")),  # the only line is the heading
    ],
)
def test_names_and_units_stand_above_their_columns(text: bytes, names, units):
    layout = find_layout(text + ROWS)
    assert (layout.names, layout.units, layout.rows) == (names, units, ROWS)


@pytest.mark.parametrize(
    ("rows", "mark", "comma"),
    [
        (b"1,5;2\n3;4\n5;6\n", b";", True),
        (b"1.5;2\n3;4\n5;6\n", b";", False),
        (b"1;2\n3;4\n5;6\n7,5;8\n", b";", True),  # the first rows are whole numbers
        (b"1,5 2,5\n3,0 4,5\n5,5 6,0\n", None, True),
        (b"1,50\n2,25\n3,05\n", None, True),
        (b"1,50\n2,25\n3,75\n", b",", False),  # two columns, as far as anyone can tell
    ],
)
def test_marks_and_decimal_commas_are_told_apart(rows: bytes, mark: bytes | None, comma: bool):
    layout = find_layout(rows)
    assert (layout.mark, layout.decimal_comma) == (mark, comma)
