"""Sampling rates from columns of times."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clocs_core.data.time_column import is_time, rate_of, rate_of_times_of_day, seconds_in


@pytest.mark.parametrize(
    "name", ["", "t", "Time", "time_s", "time (s)", "Time [ms]", "timestamp", "seconds", "Zeit", "sec"]
)
def test_columns_of_times_are_known_by_their_names(name: str):
    assert is_time(name)


@pytest.mark.parametrize("name", ["II", "S", "ms", "times two", "time to peak", "T1", "ECG (s)"])
def test_others_are_channels(name: str):
    assert not is_time(name)


@pytest.mark.parametrize(
    ("name", "unit", "seconds"),
    [
        ("time_ms", "", 1e-3),
        ("Time", "ms", 1e-3),
        ("t (µs)", "", 1e-6),
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


def test_a_night_over_midnight_has_a_rate_where_the_date_is_there():
    dated = [f"2024-01-{day} {clock}" for day, clock in (("01", "23:59:58"), ("01", "23:59:59"), ("02", "00:00:00"))]
    assert rate_of_times_of_day(dated) == 1
    assert rate_of_times_of_day([one[11:] for one in dated]) is None
    assert rate_of_times_of_day(["10:00:00", "no time", "10:00:02"]) is None
