"""Sampling rates from columns of times."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clocs_core.data.time_column import are_row_numbers, is_time, rate_of, say_gaps, seconds_in, seconds_of_times_of_day


@pytest.mark.parametrize(
    "name",
    ["", "t", "Time", "time_s", "time (s)", "Time [ms]", "timestamp", "seconds", "Zeit", "sec", "time (ns)", "t_min"],
)
def test_columns_of_times_are_known_by_their_names(name: str):
    assert is_time(name)


@pytest.mark.parametrize("name", ["II", "S", "ms", "min", "h", "times two", "time to peak", "T1", "ECG (s)"])
def test_others_are_channels(name: str):
    assert not is_time(name)


def test_a_column_numbers_the_samples_by_its_name_and_its_values():
    """One named `samples` may as well be the signal."""
    counted = np.arange(5.0)
    assert are_row_numbers("'sample #'".strip("'"), counted)
    assert are_row_numbers("Index", counted + 7)
    assert not are_row_numbers("II", counted)
    assert not are_row_numbers("samples", np.array([0.1, 0.2, 0.1]))
    assert not are_row_numbers("index", np.array([0.0]))


@pytest.mark.parametrize(
    ("name", "unit", "seconds"),
    [
        ("time_ms", "", 1e-3),
        ("Time", "ms", 1e-3),
        ("t (µs)", "", 1e-6),
        ("time (ns)", "", 1e-9),
        ("time_min", "", 60.0),
        ("seconds", "", 1.0),
        ("time", "", None),
        ("time", "samples", None),
        ("II", "s", None),
    ],
)
def test_a_unit_of_time_is_in_the_name_or_below_it(name: str, unit: str, seconds: float | None):
    assert seconds_in(name, unit) == seconds


@given(st.sampled_from([50, 100, 125, 128, 200, 250, 256, 360, 500, 1000]), st.integers(3, 5), st.integers(200, 900))
def test_a_whole_rate_is_found_whatever_digits_times_have(rate: int, digits: int, length: int):
    times = np.array([round(7.5 + n / rate, digits) for n in range(length)])
    assert rate_of(times) == rate


def test_a_rate_need_not_be_whole():
    assert rate_of(np.arange(3000) / 512.2) == pytest.approx(512.2)
    assert rate_of(np.arange(300) / 0.5) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "times", [[0, 1], [0, 0, 0], [3, 2, 1], [0, 1, np.nan], [0, 0.004, 0.008, 2.0, 2.004], [0, 1, 2, 3, 10]]
)
def test_times_that_are_not_evenly_spaced_say_no_rate(times: list[float]):
    assert rate_of(np.array(times)) is None


def test_a_night_over_midnight_is_in_order_with_and_without_dates():
    dated = [f"2024-01-{day} {clock}" for day, clock in (("01", "23:59:58"), ("01", "23:59:59"), ("02", "00:00:00"))]
    assert list(seconds_of_times_of_day(dated)) == [0, 1, 2]
    clocks = seconds_of_times_of_day([one[11:] for one in dated])
    assert list(clocks) == [0, 1, 2]
    assert (rate_of(clocks), say_gaps(clocks)) == (1.0, "")
    days = seconds_of_times_of_day(["12:00:00", "23:59:00", "11:58:00", "23:57:00", "00:00:00"])
    assert list(days) == [0, 43_140, 86_280, 129_420, 129_600]
    assert seconds_of_times_of_day(["10:00:00", "no time", "10:00:02"]) is None


def test_a_step_back_of_less_than_half_a_day_is_told():
    """Such as two recordings in one file, or an hour in autumn."""
    for again in ("10:00:01", "00:00:01", "09:00:01"):
        clocks = seconds_of_times_of_day(["10:00:01", "10:00:02", again, "10:00:04"])
        expected = "its times go back 1 time, first after row 2"
        assert say_gaps(clocks) == expected


@given(
    st.sampled_from([100, 125, 250, 360, 500, 600, 800, 1000]),
    st.integers(3, 6),
    st.lists(st.integers(5, 5000), max_size=3),
    st.sampled_from([1.0, 1e3]),
)
def test_gaps_are_counted_whatever_the_rate_and_the_digits(rate: int, digits: int, missing: list[int], unit: float):
    """With times rounded to some digits, in seconds or milliseconds: no step that rounding makes longer is a gap."""
    places, at = [], 0
    for lost in (*missing, 0):
        places += range(at, at + 400)
        at += 400 + lost
    said = say_gaps(np.array([round(place / rate, digits) * unit for place in places]))
    if not missing:
        assert said == ""
    else:
        gaps, samples = re.fullmatch(r"its times have (\d) gaps?, of about ([\d,]+) samples in all", said).groups()
        assert int(gaps) == len(missing)
        assert int(samples.replace(",", "")) == pytest.approx(sum(missing), rel=0.25)


@pytest.mark.parametrize("times", [[], [0, 9], [0, np.nan, 9], [3, 3, 3, 3, 9], list(range(50))])
def test_times_that_show_no_gap_are_not_judged(times: list[float]):
    """Too few, missing, of whole seconds where a second has many samples, or even."""
    assert say_gaps(np.array(times, float)) == ""
