"""Signals as text: a line per sample, a column per channel, with or without a heading."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_TIME = {"", "t", "time", "timestamp", "time_s", "time (s)", "time [s]", "seconds"}  # "": the index that pandas writes
_FIRST = 1 << 16  # bytes: the first line of a table of signals is shorter


def read_heading(path: Path) -> tuple[tuple[str, ...] | None, int]:
    """The names of the channels where the first line has them, and how many channels there are."""
    with open(path, encoding="utf-8-sig", buffering=4096) as file:
        cells = _cells(_untrailed([file.readline(_FIRST)])[0])
    if not cells:
        raise ValueError(f"{path.name} is empty")
    if _are_numbers(cells):
        return None, len(cells)
    kept = _channels(cells)
    return tuple(cells[column] for column in kept), len(kept)


def read_signal(path: Path) -> NDArray[np.float64]:
    """The samples, (sample, channel). An empty cell is a missing sample."""
    lines = _untrailed([line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()])
    if not lines:
        raise ValueError(f"{path.name} is empty")
    first = _cells(lines[0])
    heading = not _are_numbers(first)
    columns = _channels(first) if heading else list(range(len(first)))
    rows = lines[1:] if heading else lines
    if not rows or not columns:
        raise ValueError(f"{path.name} has a heading, but no samples below it")
    try:
        values = np.loadtxt(rows, delimiter=_delimiter(rows[0]), ndmin=2, comments=None)
    except ValueError:  # an empty cell, or a mistake to be named
        values = _with_gaps(rows, len(first), path, first_line=2 if heading else 1)
    if values.shape[1] != len(first):
        raise ValueError(f"{path.name} has {values.shape[1]} columns below a heading of {len(first)}")
    return np.asarray(values[:, columns], dtype=np.float64)


def _with_gaps(rows: list[str], columns: int, path: Path, first_line: int) -> NDArray[np.float64]:
    values = np.full((len(rows), columns), np.nan)
    for number, row in enumerate(rows):
        cells = _cells(row, _delimiter(rows[0]))
        if len(cells) != columns:
            raise ValueError(f"line {number + first_line} of {path.name} has {len(cells)} columns, expected {columns}")
        for column, cell in enumerate(cells):
            try:
                values[number, column] = float(cell) if cell else np.nan
            except ValueError:
                raise ValueError(f"line {number + first_line} of {path.name} has {cell!r}, not a number") from None
    return values


def _untrailed(lines: list[str]) -> list[str]:
    """The lines without the mark that some programs put behind the last cell, if every line has it."""
    bare = [line.rstrip("\r\n") for line in lines]
    mark = _delimiter(bare[0]) if bare else None
    if mark is None or not all(line.endswith(mark) for line in bare):
        return bare
    return [line.removesuffix(mark) for line in bare]


def _delimiter(line: str) -> str | None:
    return next((mark for mark in "\t;," if mark in line.strip("\r\n")), None)


def _cells(line: str, delimiter: str | None = None) -> list[str]:
    mark = delimiter or _delimiter(line)
    return [cell.strip().strip('"') for cell in (line.strip("\r\n").split(mark) if mark else line.split())]


def _are_numbers(cells: list[str]) -> bool:
    try:
        return len([float(cell) for cell in cells if cell]) > 0
    except ValueError:
        return False


def _channels(heading: list[str]) -> list[int]:
    return [column for column, name in enumerate(heading) if name.lower() not in _TIME]
