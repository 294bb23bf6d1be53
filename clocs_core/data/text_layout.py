"""Find where the numbers of a text begin, and what the lines above them say: names, units, a sampling rate.

Devices and apps write lines about the recording first, then a heading, perhaps a line of units, and a row for each
sample. Some write decimal commas, or times of day. Where a row of numbers has a mistake, nothing is guessed: the reader
of numbers then names the cell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Self

import attrs

from clocs_core.data.number_table import MISSING
from clocs_core.data.text_exports import read_titles

_ABOVE = 200  # lines above the numbers, at most
_RUN = 3  # rows of numbers, one below the other, that are no chance
_SHOWN = 1000  # rows that are looked at for decimal commas

_MARKS = (b"\t", b";", b",")
_COMMENT = "#%;/*"
_DECIMAL = re.compile(rb"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_QUOTED_DECIMAL = re.compile(rb'"([+-]?\d*),(\d+)"')
_DATE, _CLOCK = rb"(?:\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4})", rb"\d\d?:\d\d(?::\d\d(?:[.,]\d{1,9})?)?"
_SINCE = rb"(?:\d+:)?\d{1,3}:\d\d[.,]\d{1,9}"  # hours and minutes since the start, and seconds
_TIME = re.compile(rb"%s(?:[T ]%s)?(?: ?Z| ?[+-]\d\d:?\d\d)?|%s|%s" % (_DATE, _CLOCK, _CLOCK, _SINCE))
_QUOTED_TIME = re.compile(rb"'(%s)'" % _SINCE)
_WITH_UNIT = re.compile(r"(.+?)\s*[\[(]\s*([^\])]+?)\s*[\])]")
_BRACKETED = re.compile(r"[\[(][^\])]*[\])]")
_VOLTS_AND_OTHERS = "v mv µv μv uv nv na ua µa μa ohm kohm counts adc a.u. au arb. % bpm mmhg kpa °c g m/s2 m/s²"
_UNITS = frozenset(
    (*_VOLTS_AND_OTHERS.split(), "s", "sec", "seconds", "ms", "us", "µs", "μs", "ns", "min", "hh:mm:ss.mmm")
)
_RATE = re.compile(
    r"(?:\bsampl\w*[ _-]*(?:rate|freq\w*)|\bfs\b)[\"']?\s*(?:[\[(]\s*(k?)hz\s*[\])])?\s*[:=,;\s]\s*[\"']?"
    r"(\d{1,3}(?: \d{3})+|\d+(?:[.,]\d+)?)(?:\s*(k?)(?:hz|hertz))?",
    re.IGNORECASE,
)
_UNCLEAR = re.compile(r"[1-9]\d{0,2},\d{3}|[1-9]\.\d{3}")  # but 250.000 is 250: nobody samples at 250 kHz


@attrs.frozen
class TextLayout:
    """The rows of a text, and what the lines above them say.

    mark: what stands between cells; None for white space. names: of the columns; None without a heading. units: of the
    columns, empty where the file does not say them. times: the columns of dates or times of day. words: those of other
    words. above: the lines above the heading. rate: the sampling rate in Hz that an export of a known program says.
    """

    rows: bytes
    mark: bytes | None
    names: tuple[str, ...] | None = None
    units: tuple[str, ...] = ()
    times: frozenset[int] = frozenset()
    words: frozenset[int] = frozenset()
    above: tuple[str, ...] = ()
    rate: float | None = None

    @property
    def decimal_comma(self) -> bool:
        """Whether numbers are written as 0,5."""
        return self.mark != b"," and b"," in self.rows

    def without_words(self, rows: bytes, column: int) -> Self | None:
        """Leave a column of these rows out, of which no cell is a number, such as marks of events; None if one is."""
        cells = (line.split(self.mark) for line in rows.split(b"\n"))
        held = (each[column].strip(b' "') for each in cells if len(each) > column)
        return (
            None if any(cell and _is_number(cell) for cell in held) else attrs.evolve(self, words=self.words | {column})
        )

    def fact(self, *keys: str) -> str:
        """Return what a line above says under one of these words, such as "mV" of "Unit: mV"; empty if none does."""
        for line in self.above:
            key, *value = re.split(r"[:=,;\t]", line, maxsplit=1)
            if value and key.strip(f"{_COMMENT} ").lower() in keys:
                return value[0].strip(' "')
        return ""

    def sampling_rate(self) -> float | None:
        """Return the sampling rate in Hz that the lines above say; None where none, several or an unclear one."""
        if self.rate is not None:
            return self.rate
        found = {
            float(number.replace(" ", "").replace(",", ".")) * (1000 if kilo or kilo_behind else 1)
            for line in self.above
            for kilo, number, kilo_behind in _RATE.findall(line)
        }
        return found.pop() if len(found) == 1 and not self.unclear_rate() else None

    def unclear_rate(self) -> str:
        """Return a sampling rate such as 1,000 or 1.000: a thousand to some and one to others. Empty if none is."""
        said = (number for line in self.above for _, number, _ in _RATE.findall(line))
        return next(filter(_UNCLEAR.fullmatch, said), "")


@attrs.frozen
class _Row:
    """How a line of numbers is written."""

    mark: bytes | None
    width: int
    times: frozenset[int]


def find_layout(text: bytes) -> TextLayout:
    """Find the numbers of a text, whose lines end with a line feed. It has at least one line that is not blank.

    Raises UnicodeDecodeError where a line above the numbers is no UTF-8.
    """
    if b'"' in text:
        text = _QUOTED_DECIMAL.sub(rb"\1.\2", text)
    if b"'" in text:  # as the PhysioBank ATM writes times
        text = _QUOTED_TIME.sub(rb"\1", text)
    return _below_a_preamble(text) or _with_words(text) or _below_the_first_line(text)


def _below_a_preamble(text: bytes) -> TextLayout | None:
    """Find the first rows of numbers, though one of them may have a mistake. None where there are none."""
    above: list[str] = []
    for place, run in _runs(text):
        rows = [_row(line) for line in run]
        first = rows[0]
        if first is not None and all(one is not None and one.width == first.width for one in rows):
            return _described(text[place:], first, above)
        if first is not None or _begins_with_numbers(run[0]):
            found = next((one for one in rows if one is not None), None)
            return _described(text[place:], found, above) if above and found is not None else None
        above.append(run[0].decode("utf-8").strip(" "))
    return None


def _runs(text: bytes) -> list[tuple[int, list[bytes]]]:
    """Return the place of each of the first lines that are not blank, with the line and those that follow."""
    found, place = list[tuple[int, bytes]](), 0
    for line in text.split(b"\n", _ABOVE + _RUN)[: _ABOVE + _RUN]:
        if line.strip():
            found.append((place, line))
        place += len(line) + 1
    return [(begin, [line for _, line in found[n : n + _RUN]]) for n, (begin, _) in enumerate(found[:_ABOVE])]


def _described(rows: bytes, row: _Row, above: Sequence[str]) -> TextLayout | None:
    """Read the heading of rows. None where the only line above them has another number of cells."""
    if row.mark == b"," and row.width == 2 and _are_decimals(rows):
        row = _Row(None, 1, frozenset())
    export = read_titles(above, rows, row.mark)
    if export is not None:
        samples = rows.partition(b"\n")[2] if export.counted else rows
        return TextLayout(
            samples, row.mark, export.names, export.units, row.times, above=tuple(above), rate=export.rate
        )
    names, units, used = _heading(above, row)
    if names is None and len(above) == 1 and _is_heading_of_others(above[0], row):
        return None
    others = tuple(above[: len(above) - used])
    return TextLayout(rows, row.mark, names, units, times=row.times, above=others)


def _with_words(text: bytes) -> TextLayout | None:
    """Find rows below a heading in which some columns are words and others are numbers."""
    runs = [(place, run) for place, run in _runs(text) if run[0].lstrip()[:1] not in (b"#", b"%")]
    if len(runs) < 2:
        return None
    heading, (place, run) = runs[0][1][0], runs[1]
    if _begins_with_numbers(heading):
        return None
    mark = _mark_of(heading)
    names, rows = _cells(heading.decode("utf-8"), mark), [line.split(mark) for line in run]
    if mark is None or any(len(cells) != len(names) for cells in rows):
        return None
    columns = range(len(names))
    times = frozenset(n for n in columns if all(_TIME.fullmatch(cells[n].strip()) for cells in rows))
    words = frozenset(n for n in columns if not any(_is_number(cells[n]) for cells in rows)) - times
    if not words or len(times | words) == len(names):
        return None
    plain, units = _split_units(names)
    return TextLayout(text[place:], mark, plain, units, times=times, words=words)


def _below_the_first_line(text: bytes) -> TextLayout:
    """Take the first line for the heading, unless it is a row of numbers."""
    place, (line, *_) = _runs(text)[0]
    mark = _mark_of(line)
    if _row(line) is not None:
        return TextLayout(text[place:], mark)
    names, units = _split_units(_cells(line.decode("utf-8"), mark))
    return TextLayout(text[place + len(line) :], mark, names, units)


def _mark_of(line: bytes) -> bytes | None:
    return next((mark for mark in _MARKS if mark in line), None)


def _row(line: bytes) -> _Row | None:
    """Return how a line of numbers is written; None where it is none."""
    if line.strip() == b'""':  # an empty cell of a single column
        return _Row(None, 1, frozenset())
    for mark in (*(one for one in _MARKS if one in line), None):
        cells = [cell.strip().strip(b'"') for cell in line.split(mark)]
        times = frozenset(n for n, cell in enumerate(cells) if _TIME.fullmatch(cell))
        numbers = [cell for n, cell in enumerate(cells) if n not in times]
        comma = mark != b"," and any(map(_DECIMAL.fullmatch, numbers))
        if any(numbers) and all(_is_number(cell.replace(b",", b".") if comma else cell) for cell in numbers):
            return _Row(mark, len(cells), times)
    return None


def _begins_with_numbers(line: bytes) -> bool:
    """Whether a line begins as a row of numbers does, such as `1,2,x`."""
    first, *others = re.split(rb"[\t;,]", line)
    return bool(others) and bool(first.strip()) and _is_number(first)


def _is_number(cell: bytes) -> bool:
    """Whether a cell is a number, or empty."""
    try:
        float(cell)
    except ValueError:
        return cell.strip().lower() in MISSING
    return b"_" not in cell


def _are_decimals(rows: bytes) -> bool:
    """Whether 3,042 is one number in every row: no whole number begins with a zero."""
    shown = [line.strip() for line in rows.split(b"\n", _SHOWN)[:_SHOWN] if line.strip()]
    return all(map(_DECIMAL.fullmatch, shown)) and any(re.search(rb",0\d", line) for line in shown)


def _heading(above: Sequence[str], row: _Row) -> tuple[tuple[str, ...] | None, tuple[str, ...], int]:
    """Return the names and the units of columns, and how many lines above the rows say them."""
    last = _columns(above[-1], row) if above and not _says_rate(above[-1]) else None
    if last is None or last[0].endswith("="):  # a fact, as LabChart writes them
        return None, ("",) * row.width, 0
    has_units = len(above) > 1 and any(last) and all(map(_is_unit, last))
    names = _columns(above[-2], row) or _apart(above[-2], row) if has_units else None
    if names is not None:
        return names, tuple(one.strip("[]() ") for one in last), 2
    return *_split_units(last), 1


def _says_rate(line: str) -> bool:
    """Whether a line says a sampling rate, such as 1,000 Hz, which has a comma. FS 1 names a force sensor."""
    return _RATE.search(line) is not None and re.search("[:=]|hz|hertz", line, re.IGNORECASE) is not None


def _is_heading_of_others(line: str, row: _Row) -> bool:
    """Whether a line names columns, and not those of these rows."""
    mark = _mark_of(line.encode())
    if line.startswith(tuple(_COMMENT)) or re.search("[:=]", line) or (mark is None and row.mark is not None):
        return False
    cells = _cells(line, mark)
    return len(cells) > 1 and not any(cell and _is_number(cell.encode()) for cell in cells)


def _columns(line: str, row: _Row) -> tuple[str, ...] | None:
    """Read a line as a heading of these rows; None where it is none."""
    bare = line.lstrip(f"{_COMMENT} ")
    if row.width == 1:
        return None if not bare or re.search(r"[,;:=\t]", bare) else (bare.strip('" '),)
    for one in (bare,) if row.mark is None else (line, bare):
        first, *others = _cells(one, row.mark) or [""]
        if 1 + len(others) == row.width:
            return first.lstrip(f"{_COMMENT} "), *others
    return None


def _apart(line: str, row: _Row) -> tuple[str, ...] | None:
    """Read names of several words, such as Elapsed time, that stand two or more spaces apart."""
    names = re.split(r"\s{2,}", line.strip())
    return tuple(names) if row.mark is None and len(names) == row.width else None


def _cells(line: str, mark: bytes | None) -> list[str]:
    return [cell.strip().strip("\"'").strip() for cell in line.split(None if mark is None else mark.decode())]


def _is_unit(cell: str) -> bool:
    return not cell or cell.lower() in _UNITS or _BRACKETED.fullmatch(cell) is not None


def _split_units(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split names such as `ECG (mV)` into names and units. What is no known unit stays in the name."""
    found = [_WITH_UNIT.fullmatch(name) for name in names]
    known = [one if one is not None and one[2].lower() in _UNITS else None for one in found]
    plain = tuple(name if one is None else one[1] for name, one in zip(names, known, strict=True))
    return plain, tuple("" if one is None else one[2] for one in known)
