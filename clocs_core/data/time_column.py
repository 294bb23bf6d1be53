"""Find the column of times or of row numbers of a recording; the sampling rate by it, and the gaps in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "μs", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
}
_DAY = 86_400.0  # seconds
_CHANNELS = ("min",)  # as names of columns they are no times, but a channel of minima
_ROWS = frozenset(("sample", "samples", "sample #", "sample no", "sample no.", "sample number", "index", "row", "#"))
_ELSEWHERE = ("zeit", "temps", "tiempo", "tempo", "tijd")  # as programs in other languages write it
_NAMES = frozenset(
    ("", "t", "time", "times", "timestamp", "time stamp", "elapsed time", "date", "datetime", "date time", *_ELSEWHERE)
)


def is_time(name: str) -> bool:
    """Whether a column of this name holds the time of each sample, or has no name, as row numbers often have none."""
    plain = _words(name)
    if plain in _NAMES:
        return True
    return len(plain) > 2 and plain not in _CHANNELS and seconds_in(name) is not None  # a channel may be called S


def are_times(name: str, unit: str, values: NDArray[np.float64]) -> bool:
    """Whether a column holds the time of each sample: by its name, or as it rises and is in a unit of time.

    Intervals between beats are in such a unit too, and do not rise.
    """
    if is_time(name):
        return True
    if unit.strip().lower() not in _SECONDS or len(values) < 3 or not np.isfinite(values).all():
        return False
    return bool((np.diff(values) >= 0).all() and values[-1] > values[0])


def are_row_numbers(name: str, values: NDArray[np.float64]) -> bool:
    """Whether a column numbers the samples, by its name and its values: rising whole numbers, perhaps with gaps."""
    if _words(name) not in _ROWS or len(values) < 2 or not np.isfinite(values).all():
        return False
    return bool((np.diff(values) > 0).all() and (values == values.round()).all())


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


def say_gaps(times: NDArray[np.float64], what: str = "times") -> str:
    """Count the gaps in times, or the steps back, in words; "" where there are none.

    times: in any unit; what: the word for them. A gap is a step of more than 1.5 times the median step, and of one unit
    of the last digit more.
    Where the median step is 0, since times have too few digits, nothing is said.
    """
    if len(times) < 3 or not np.isfinite(times).all():
        return ""
    steps = np.diff(times)
    usual = float(np.median(steps))
    back = int((steps < 0).sum())
    if back:
        return f"its {what} go back {_count(back, 'time')}, first after row {int(np.argmax(steps < 0)) + 1:,}"
    if usual <= 0:
        return ""
    gap = steps > 1.5 * usual + 1.01 * _last_digit(times)
    if not gap.any():
        return ""
    between = steps[~gap].mean()  # the median of rounded steps is that of their last digit
    missing = round(float((steps[gap] / between - 1).sum()))
    return f"its {what} have {_count(int(gap.sum()), 'gap')}, of about {_count(missing, 'sample')} in all"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'s' * (number != 1)}"


def seconds_of_times_of_day(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Return dates or times of day as seconds after the first; None where they cannot be read.

    Times of day go on over midnight: a step back of more than half a day is one to the next day.
    """
    import pandas as pd  # takes 0.3 s, and few files need it

    plain = pd.Series([cell.replace(",", ".") for cell in cells])
    minutes = plain.str.fullmatch(r"\d{1,3}:\d\d\.\d+")  # 3:20.500 is 3 minutes and 20.5 seconds
    plain = plain.where(~minutes, "0:" + plain)
    try:
        of_day = bool(plain.str.match(r"\d\d?:\d\d?\d?:").all())
        ticks = pd.to_timedelta(plain) if of_day else pd.to_datetime(plain, utc=True, format="ISO8601")
    except ValueError:
        return None
    seconds: NDArray[np.float64] = (ticks - ticks.iloc[0]).dt.total_seconds().to_numpy()
    if not of_day:
        return seconds
    days = np.concatenate([[0], np.cumsum(np.diff(seconds) < -_DAY / 2)])  # (n,): how often midnight has passed
    return seconds + _DAY * days


def _words(name: str) -> str:
    return " ".join(name.lower().replace("_", " ").replace("(", " ").replace("[", " ").strip("()[] ").split())


def _last_digit(seconds: NDArray[np.float64]) -> float:
    """Return the value of the last digit with which times are written."""
    shown = seconds[:100]
    return next((10.0**-digits for digits in range(10) if np.abs(shown - shown.round(digits)).max() < 1e-11), 0.0)
