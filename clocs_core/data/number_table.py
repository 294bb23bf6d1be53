"""Read tables of decimal numbers as text by pandas, or cell by cell where pandas fails or is slower."""

from __future__ import annotations

import csv
import re
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

MISSING = (b"", b"na", b"n/a", b"null")  # float() reads nan itself

_LITTLE = 4096  # bytes; pandas takes 0.3 ms for each call
_FEW_COLUMNS = 100  # pandas takes 11 µs for each column, and `float` 0.1 µs for each cell
_EMPTY_LINE = re.compile(rb"\n[ \t\r]*(?=\n)")
_TRUTHS = (b"u", b"U", b"s", b"S")  # letters of True and False, which pandas reads as 1 and 0


class NotANumber(ValueError):
    """A cell that is no number. Rows and columns count from 1."""

    def __init__(self, row: int, column: int, cell: str) -> None:
        super().__init__(f"row {row}, column {column} is {cell!r}, expected a number")
        self.column, self.cell = column, cell


def read_number_table(text: bytes, separator: bytes | None = b",", columns: int | None = None) -> NDArray[np.float64]:
    """Read numbers as `float` reads them, to the last bit: (row, column), NaN where a cell is empty.

    separator: the bytes between two cells; None for white space. columns: their number, or None for that of the first
    row. Empty lines are skipped; in a single column, those between numbers are empty cells. Raises NotANumber where a
    cell is no number, and ValueError where a row has another number of cells.
    """
    text = text.replace(b'""', b"nan").replace(b'"', b"") if b'"' in text else text
    width = len(text.lstrip(b"\n").partition(b"\n")[0].split(separator))
    if max(width, columns or 1) == 1:
        text = _with_empty_cells(text)
    if len(text) > _LITTLE and width < _FEW_COLUMNS and not any(letter in text for letter in _TRUTHS):
        found = _read_at_once(text, separator)
        if found is not None and columns in (None, found.shape[1]):
            return found
    return _read_cells(text, separator, columns)


def _with_empty_cells(text: bytes) -> bytes:
    """Write nan for the empty cells of a single column. Where every second line is empty, lines end twice."""
    text = text.strip(b" \n")
    if not _EMPTY_LINE.search(text):
        return text
    lines = text.split(b"\n")
    if not any(map(bytes.strip, lines[1::2])):
        lines = lines[::2]
    return b"\n".join(line if line.strip() else b"nan" for line in lines)


def _read_at_once(text: bytes, separator: bytes | None) -> NDArray[np.float64] | None:
    """Read a table with pandas; None where a cell or the length of a row must be checked cell by cell."""
    import pandas as pd  # takes 0.3 s, and only processes that read text need it

    try:
        table = pd.read_csv(
            BytesIO(text),
            header=None,
            sep=separator.decode() if separator else r"\s+",
            dtype=np.float64,
            keep_default_na=False,
            na_values=["", "NA", "NaN", "nan"],
            quoting=csv.QUOTE_NONE,
            low_memory=False,
        )
    except ValueError:
        return None
    values: NDArray[np.float64] = table.to_numpy()
    if np.isnan(values).any():  # pandas fills up rows that are too short
        cells = len(values) + text.count(separator) if separator else len(text.split())
        return values if cells == values.size else None
    return values


def _read_cells(text: bytes, separator: bytes | None, columns: int | None) -> NDArray[np.float64]:
    """Read cell by cell: slower, but accepts every spelling and names the row and column of a mistake."""
    blanks = b" " if separator else None
    rows = [line.split(separator) for line in text.splitlines() if line.strip(blanks)]
    width = columns or len(rows[0] if rows else ())
    values = np.empty((len(rows), width))
    for row, cells in enumerate(rows):
        if len(cells) != width:
            raise ValueError(f"row {row + 1} has {len(cells)} columns, expected {width}")
        numbers = [_number(cell) for cell in cells]
        if None in numbers:
            column = numbers.index(None)
            raise NotANumber(row + 1, column + 1, cells[column].strip()[:20].decode("utf-8", "replace"))
        values[row] = numbers
    return values


def _number(cell: bytes) -> float | None:
    """Read a cell; NaN where it is empty, None where it is no number."""
    try:
        if b"_" not in cell:  # float("1_0") is 10
            return float(cell)
    except ValueError:
        pass
    return float("nan") if cell.strip().lower() in MISSING else None
