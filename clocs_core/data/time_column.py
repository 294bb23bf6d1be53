"""Find the sampling rate of a recording from its column of times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "μs", "microsecond", "microseconds"), 1e-6),
}
_ELSEWHERE = ("zeit", "temps", "tiempo", "tempo", "tijd")  # as programs in other languages write it
_NAMES = frozenset(
    ("", "t", "time", "times", "timestamp", "time stamp", "elapsed time", "date", "datetime", "date time", *_ELSEWHERE)
)


def is_time(name: str) -> bool:
    """Whether a column of this name holds the time of each sample, or the number of its row."""
    plain = _words(name)
    return plain in _NAMES or (len(plain) > 2 and seconds_in(name) is not None)  # a channel may be called S


def seconds_in(name: str, unit: str = "") -> float | None:
    """Return the seconds in the unit of a column of times; None where neither the name nor `unit` says it."""
    plain = _words(name)
    if plain in _SECONDS:
        return _SECONDS[plain]
    base, _, behind = plain.rpartition(" ")
    if base in _NAMES and base and behind in _SECONDS:
        return _SECONDS[behind]
    return _SECONDS.get(unit.strip().lower()) if plain in _NAMES else None


def rate_of(seconds: NDArray[np.float64]) -> float | None:
    """Return the sampling rate in Hz of evenly spaced times; None where they are not.

    A rate is a whole number where the digits of the times allow it: 0.003, 0.006 and 0.008 s are of 360 Hz.
    """
    if len(seconds) < 3 or not np.isfinite(seconds).all():
        return None
    took = float(seconds[-1] - seconds[0])
    if took <= 0:
        return None
    rate = (len(seconds) - 1) / took
    even = seconds[0] + np.arange(len(seconds)) / rate
    if np.abs(seconds - even).max() > 0.5 / rate:
        return None
    whole = round(rate)
    return float(whole) if whole and abs(rate - whole) <= rate * _last_digit(seconds) / took else rate


def rate_of_times_of_day(cells: Sequence[str]) -> float | None:
    """Return the sampling rate of dates or times of day; None where they cannot be read or are not evenly spaced."""
    import pandas as pd  # takes 0.3 s, and few files need it

    plain = pd.Series([cell.replace(",", ".") for cell in cells])
    try:
        if plain.str.match(r"\d\d?:\d\d:").all():
            ticks = pd.to_timedelta(plain)
        else:
            ticks = pd.to_datetime(plain, utc=True, format="ISO8601")
    except ValueError:
        return None
    return rate_of((ticks - ticks.iloc[0]).dt.total_seconds().to_numpy())


def _words(name: str) -> str:
    return " ".join(name.lower().replace("_", " ").replace("(", " ").replace("[", " ").strip("()[] ").split())


def _last_digit(seconds: NDArray[np.float64]) -> float:
    """Return the value of the last digit with which times are written."""
    shown = seconds[:100]
    return next((10.0**-digits for digits in range(10) if np.abs(shown - shown.round(digits)).max() < 1e-11), 0.0)
