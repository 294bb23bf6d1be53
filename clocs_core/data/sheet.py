"""Read a small table, one row per recording or person, from a workbook (.xlsx) or from text (.csv), cell by cell."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO
from zipfile import ZipFile

from clocs_core.data.regular_file import is_passing, open_regular
from clocs_core.errors import DataError

_LARGEST = 1 << 27  # bytes of text, or of the unpacked parts of a workbook
_ROWS = 1 << 18  # the largest table of a data set has 22,000
_CELLS = 1 << 23  # openpyxl fills every row up to its last cell, and adds the rows that are missing
_FIRST_LINES = 10  # lines in which separators are counted

Rows = list[tuple[str, ...]]


def read_sheet(path: Path) -> Rows:
    """Read the rows of the first sheet of a workbook, or of a CSV file with commas, semicolons or tabs, as text.

    Spaces around a cell and empty cells at the end of a row are left out. Raises DataError where the file is not a
    table, or has more rows, cells or bytes than such a table, and OSError.
    """
    with open_regular(path, _LARGEST) as stream:
        try:
            rows = _workbook(stream) if path.suffix.lower() == ".xlsx" else _text(stream.read())
            return [_trim(row) for row in rows]
        except MemoryError:
            raise
        except Exception as problem:  # openpyxl passes on all exceptions of zip, zlib and XML parsers
            if is_passing(problem):
                raise
            what = "workbook" if path.suffix.lower() == ".xlsx" else "table"
            said = (str(problem).splitlines() or [type(problem).__name__])[0].rstrip(".")
            raise DataError(f"{path} cannot be read as a {what} ({said}). Download it again.") from problem


def _trim(row: Sequence[object]) -> tuple[str, ...]:
    end = len(row)
    while end and row[end - 1] in (None, ""):
        end -= 1
    return tuple("" if cell is None else str(cell).strip() for cell in row[:end])


def _workbook(stream: BinaryIO) -> Iterable[Sequence[object]]:
    from openpyxl import load_workbook

    with ZipFile(stream) as parts:
        unpacked = sum(part.file_size for part in parts.infolist())
    if unpacked > _LARGEST:
        raise ValueError(f"it unpacks to {unpacked:,} bytes, expected at most {_LARGEST:,}")
    page = load_workbook(stream, read_only=True, data_only=True).worksheets[0]
    page.reset_dimensions()  # some programs write A1:A1 for a sheet of any size
    cells = 0
    for number, row in enumerate(page.iter_rows(values_only=True)):
        cells += len(row)
        if number >= _ROWS or cells > _CELLS:
            raise ValueError(f"it has more than {_ROWS:,} rows or {_CELLS:,} cells")
        yield row


def _text(raw: bytes) -> Iterable[Sequence[object]]:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    lines = text.replace("\0", "").splitlines()
    # In many countries, spreadsheets export semicolons.
    return csv.reader(lines, delimiter=max(",;\t", key="".join(lines[:_FIRST_LINES]).count))
