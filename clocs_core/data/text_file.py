"""Read a recording written as text: a row for each sample, a column for each channel."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clocs_core.data.number_table import NotANumber, read_number_table
from clocs_core.data.recording import Recording, Wish, in_memory, one_unit
from clocs_core.data.regular_file import open_regular
from clocs_core.data.text_layout import TextLayout, find_layout
from clocs_core.data.time_column import (
    are_row_numbers,
    are_times,
    is_time,
    rate_of,
    say_gaps,
    seconds_in,
    seconds_of_times_of_day,
)
from clocs_core.errors import DataError

_APART = 0.01  # share by which two sampling rates of a file differ before a line says so: clocks are not that exact
_JOINED = "Recording whose times have gaps or go back, read as if its rows followed each other."


def open_text(path: Path, wish: Wish) -> Recording:
    """Read a column per channel, with or without a heading and lines above it. Empty cells are missing samples.

    Columns of time are left out; so are columns of words, with a note. Names, units and the sampling rate come from the
    heading, the lines above it, and the times.
    """
    with open_regular(path) as stream:
        text = _as_lines(stream.read())
    if not text.strip():
        raise DataError(f"{path} is empty.")
    try:
        layout = find_layout(text)
        if not layout.rows.strip():
            raise DataError(f"{path} has a heading, but no samples below it.")
        layout, values, columns = _read(layout)
    except NotANumber as problem:
        raise DataError(f"{path} cannot be read: could not convert string {problem.cell!r}: {problem}.") from None
    except DataError:
        raise
    except ValueError as problem:
        raise DataError(f"{path} cannot be read: {problem}.") from None
    return _recording(path, layout, values, columns)


def _recording(path: Path, layout: TextLayout, values: NDArray[np.float64], columns: Sequence[int]) -> Recording:
    """Choose the channels among the columns that were read, (sample, column)."""
    names = layout.names
    if names is None and (rate := _rate_of_a_wristband(values)) is not None:
        told = f"{path.name}: its first two rows are the start and the sampling rate, as wristbands of Empatica write."
        return in_memory(values[2:].T, sampling_rate=rate, unit=_unit_above(layout), notes=(told,))
    if names is None:
        unused = _is_unused(layout, values)
        seconds = _seconds_by_clock(layout)
        gaps = "" if seconds is None else say_gaps(seconds)
        rate = layout.sampling_rate() or (None if seconds is None else rate_of(seconds))
        name = layout.fact("lead", "channel", "signal") if values.shape[1] - unused == 1 else ""
        samples = values.T[: values.shape[1] - unused]
        return in_memory(
            samples,
            channels=(name,) if name else None,
            sampling_rate=rate,
            unit=_unit_above(layout),
            notes=_notes(path, layout, gaps, rate),
            found=(_JOINED,) if gaps else (),
        )
    if values.shape[1] != len(columns):
        raise DataError(f"{path} has {values.shape[1]} columns below the heading {', '.join(names)}.")
    numbers = [place for place, column in enumerate(columns) if are_row_numbers(names[column], values[:, place])]
    clocks = _clocks(layout, values, columns)
    kept = [place for place in range(len(columns)) if place not in (*clocks, *numbers)]
    if not kept:
        raise DataError(
            f"{path} has no column of a signal: {', '.join(names)} are times, numbers of rows or words. Give "
            "a signal another name."
        )
    units = [_unit_of(layout, columns[place]) for place in kept]
    unit, factors = one_unit(units) if all(units) else (_unit_above(layout), np.ones((1, 1)))
    left_out = ", ".join(names[column] for column in sorted(layout.words))
    # AcqKnowledge writes the interval, and times with six digits: after ten minutes their steps are 0 or 6 ms.
    times, unit_of_time = (None, None) if layout.rate is not None else _times(layout, values, columns, clocks)
    gaps = "" if times is None else say_gaps(times)
    gaps = gaps or next(filter(None, (say_gaps(values[:, place], "row numbers") for place in numbers)), "")
    said, timed = layout.sampling_rate(), rate_of(times * unit_of_time) if unit_of_time and times is not None else None
    notes = [f"{path.name}: columns of words are not read: {left_out}."] if left_out else []
    notes += _notes(path, layout, gaps, said or timed)
    if said and timed and abs(said - timed) > _APART * said:
        notes.append(f"{path.name} says {said:g} Hz, which is used, and its times are those of {timed:g} Hz.")
    return in_memory(
        values.T[kept] * factors if (factors != 1).any() else values.T[kept],
        channels=tuple(names[columns[place]] for place in kept),
        sampling_rate=said or timed,
        unit=unit,
        units=tuple(units) if "," in unit else (),
        notes=tuple(notes),
        found=(_JOINED,) if gaps else (),
    )


def _notes(path: Path, layout: TextLayout, gaps: str, rate: float | None) -> tuple[str, ...]:
    """Say where times have gaps, and where the sampling rate could not be read."""
    found: tuple[str, ...] = (f"{path.name}: {gaps}.",) if gaps else ()
    unclear = layout.unclear_rate()
    if rate is None and unclear:
        either = f"{unclear.replace(',', '').replace('.', '')} or {float(unclear.replace(',', '.')):g}"
        found += (f"{path.name}: its sampling rate is written {unclear}, which can be {either}; give `sampling_rate`.",)
    return found


def _as_lines(text: bytes) -> bytes:
    """Return a text as UTF-8 without its byte order mark and blank beginning, with a line feed after each line."""
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if text.startswith(mark):
            text = text.removeprefix(mark).decode(encoding, "replace").encode()
    text = text.removeprefix(codecs.BOM_UTF8).lstrip(b" \r\n")
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text


def _read(layout: TextLayout) -> tuple[TextLayout, NDArray[np.float64], list[int]]:
    """Read the numbers, (sample, column), with the columns that they are of. Raises ValueError as read_number_table.

    A named column without any number is one of words, though its first cells are empty.
    """
    rows = layout.rows.replace(b",", b".") if layout.decimal_comma else layout.rows
    cells = len(rows.lstrip(b"\n").partition(b"\n")[0].split(layout.mark))  # of the first row
    width = len(layout.names) if layout.names is not None else cells
    while True:
        skipped = layout.times | layout.words
        columns = [column for column in range(width) if column not in skipped]
        try:
            return layout, read_number_table(_only(rows, layout.mark, skipped), layout.mark), columns
        except NotANumber as problem:
            named = layout.names is not None and width == cells and len(columns) > 1
            fewer = layout.without_words(rows, columns[problem.column - 1]) if named else None
            if fewer is None:
                raise
            layout = fewer


def _only(rows: bytes, mark: bytes | None, skipped: frozenset[int]) -> bytes:
    """Return rows without some columns."""
    if not skipped:
        return rows
    between = mark or b" "
    return b"\n".join(
        (between.join(cell for place, cell in enumerate(line.split(mark)) if place not in skipped) or b"nan")
        for line in rows.split(b"\n")
        if line.strip()  # or a single column that is left would have an empty cell there
    )


def _is_unused(layout: TextLayout, values: NDArray[np.float64]) -> bool:
    """Whether the last column is none: some programs end each line with a mark."""
    last = layout.rows.partition(b"\n")[0].split(layout.mark)[-1]
    return not last.strip() and values.shape[1] > 1 and bool(np.isnan(values[:, -1]).all())


def _rate_of_a_wristband(values: NDArray[np.float64]) -> float | None:
    """Return the sampling rate in the second row, below the time at which the recording began; None for other files.

    Both stand in every column: a time in seconds since 1970, and a whole number of Hz.
    """
    if len(values) < 3 or not (values[:2] == values[:2, :1]).all():
        return None
    start, rate = values[:2, 0].tolist()
    return rate if 1e9 <= start < 5e9 and 1 <= rate <= 1024 and rate == round(rate) else None


def _unit_above(layout: TextLayout) -> str:
    """Return the unit that the lines above the rows say."""
    said = layout.fact("unit", "units").replace(",", " ").split()
    return one_unit(said[:1])[0] if said else ""


def _clocks(layout: TextLayout, values: NDArray[np.float64], columns: Sequence[int]) -> list[int]:
    """List the places of the columns of times among those that were read."""
    return [
        place
        for place, column in enumerate(columns)
        if are_times((layout.names or ())[column], _unit_of(layout, column), values[:, place])
    ]


def _unit_of(layout: TextLayout, column: int) -> str:
    return layout.units[column] if layout.units else ""


def _times(
    layout: TextLayout, values: NDArray[np.float64], columns: Sequence[int], clocks: Sequence[int]
) -> tuple[NDArray[np.float64] | None, float | None]:
    """Return the times of the samples (sample,), and the seconds in their unit: of the first column that says both.

    A column without a unit may count rows. Before it come dates and times of day, which are in seconds.
    """
    names = [(layout.names or ())[columns[place]] for place in clocks]
    units = [_unit_of(layout, columns[place]) for place in clocks]
    found = [
        (values[:, place], seconds_in(name if is_time(name) else "time", unit))
        for place, name, unit in zip(clocks, names, units, strict=True)
    ]
    for times, seconds in found:
        if seconds is not None:
            return times, seconds
    clock = _seconds_by_clock(layout)
    if clock is not None:
        return clock, 1.0
    return found[0] if found else (None, None)


def _seconds_by_clock(layout: TextLayout) -> NDArray[np.float64] | None:
    """Return dates and times of day as seconds (sample,), where there is one column of them."""
    if len(layout.times) != 1:
        return None
    (column,) = layout.times
    cells = [line.split(layout.mark)[column] for line in layout.rows.split(b"\n") if line.strip()]
    return seconds_of_times_of_day([cell.decode("ascii", "replace").strip(' "') for cell in cells])
