"""Read the lines that LabChart and AcqKnowledge write above the numbers of their exports.

The reader of other texts looks for a heading right above the numbers, and for a sampling rate in Hz.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

_INTERVAL = re.compile(r"(\d+(?:\.\d+)?(?:[eE]-\d+)?) ?(\w+)/sample")
_CHANNELS = re.compile(r"(\d+) channels?")
_SECONDS = {"usec": 1e-6, "µsec": 1e-6, "msec": 1e-3, "ms": 1e-3, "sec": 1.0, "seconds": 1.0, "min": 60.0}


@attrs.frozen
class Titles:
    """Names and units of the columns of an export, those of times too.

    rate: in Hz, if it says one. counted: its first row of numbers counts the samples, and is none itself.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    rate: float | None = None
    counted: bool = False


def read_titles(above: Sequence[str], rows: bytes, mark: bytes | None) -> Titles | None:
    """Read the lines above the rows of numbers of such an export; None for other texts.

    mark: what stands between cells; None for white space.
    """
    plain = None if mark is None else mark.decode()
    return _labchart(above, rows, plain) or _acqknowledge(above, rows, plain)


def _labchart(above: Sequence[str], rows: bytes, mark: str | None) -> Titles | None:
    """Lines of LabChart are facts with an equals sign. The first column is the time in seconds."""
    said = {line.partition("=")[0].strip(): _cells(line, mark)[1:] for line in above if "=" in line}
    names, ranges = said.get("ChannelTitle"), said.get("Range", [])
    if names is None or len(names) + 1 != len(_first(rows, mark)):
        return None
    units = said.get("UnitName") or [one.split(" ")[-1] for one in ranges]
    return Titles(("time", *names), ("s", *(units if len(units) == len(names) else [""] * len(names))))


def _acqknowledge(above: Sequence[str], rows: bytes, mark: str | None) -> Titles | None:
    """Lines of AcqKnowledge are `1 msec/sample`, `2 channels`, and a name and a unit for each channel.

    A heading such as min, CH1, CH2 follows, and a row with the number of samples of each channel.
    """
    begin = next((place for place in range(len(above) - 2) if _CHANNELS.fullmatch(above[place + 1])), None)
    interval = None if begin is None else _INTERVAL.fullmatch(above[begin])
    if begin is None or interval is None or interval[2].lower() not in _SECONDS:
        return None
    seconds = float(interval[1]) * _SECONDS[interval[2].lower()]
    count, texts, heading = int(above[begin + 1].split()[0]), above[begin + 2 : -1], _cells(above[-1], mark)
    times = int(not heading[0].startswith("CH"))
    unused = len(heading) - times - count  # each line may end with a mark
    first = _first(rows, mark)
    if not count or unused < 0 or len(first) != len(heading) or not seconds:
        return None
    named = len(texts) == 2 * count  # or some have no unit: which ones is not known, since empty lines are not here
    names = [" ".join(one.replace(",", " ").split()) for one in texts[::2]] if named else heading[times : times + count]
    return Titles(
        names=("time",) * times + tuple(names) + ("",) * unused,
        units=tuple(heading[:times]) + tuple(texts[1::2] if named else [""] * count) + ("",) * unused,
        rate=round(1 / seconds, 6),
        counted=_are_counts(first, times, count, rows),
    )


def _are_counts(first: Sequence[str], times: int, count: int, rows: bytes) -> bool:
    """Whether the first row counts the samples of each channel: it has no time, or the number of the other rows."""
    counts = first[times : times + count]
    if not all(one.isdecimal() for one in counts):
        return False
    return not first[0] if times else max(map(int, counts)) == rows.rstrip(b"\n").count(b"\n")


def _first(rows: bytes, mark: str | None) -> list[str]:
    return _cells(rows[: rows.find(b"\n")].decode("utf-8", "replace"), mark)


def _cells(line: str, mark: str | None) -> list[str]:
    return [cell.strip().strip("\"'").strip() for cell in line.split(mark)]
