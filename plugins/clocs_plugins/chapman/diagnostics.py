"""Read the table of diagnoses, Diagnostics.xlsx, or its export as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from clocs_core import DataError

FORMATS = (".xlsx", ".csv")  # the first that exists is read; .xlsx is the published one


def find_table(folder: Path) -> Path | None:
    """Find the file called Diagnostics, in upper or lower case; None if there is none."""
    found = {path.suffix.lower(): path for path in sorted(folder.iterdir()) if path.stem.lower() == "diagnostics"}
    return next((found[suffix] for suffix in FORMATS if suffix in found), None)


def read_rhythms(table: Path) -> dict[str, set[str]]:
    """Read the rhythms of each recording, by FileName: one, unless the table contradicts itself.

    Raises DataError where the file is not a table of diagnoses.
    """
    rows = _read_workbook(table) if table.suffix.lower() == ".xlsx" else _read_text(table)
    try:
        names = [_text(cell).lower() for cell in next(iter(rows), ())]
        at, rhythm = names.index("filename"), names.index("rhythm")
    except ValueError:
        there = ", ".join(name for name in names if name)[:200] or "nothing"
        raise DataError(f"{table} should have columns FileName and Rhythm in its first row, but has {there}.") from None
    rhythms: dict[str, set[str]] = {}
    for row in rows[1:]:
        if len(row) > max(at, rhythm) and (name := _text(row[at])):
            rhythms.setdefault(name.removesuffix(".csv"), set()).add(_text(row[rhythm]))
    return rhythms


def _text(cell: object) -> str:
    return "" if cell is None else str(cell).strip()


def _read_workbook(table: Path) -> Sequence[Sequence[object]]:
    from openpyxl import load_workbook

    with open(table, "rb") as stream:
        try:
            sheet = load_workbook(stream, read_only=True, data_only=True).worksheets[0]
            sheet.reset_dimensions()  # some programs write A1:A1 for a sheet of any size
            return list(sheet.iter_rows(values_only=True))
        except Exception as problem:  # openpyxl passes on all exceptions of zip, zlib and XML parsers
            raise DataError(f"{table} cannot be read as a workbook ({problem}). Download it again.") from problem


def _read_text(table: Path) -> Sequence[Sequence[object]]:
    raw = table.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    lines = text.replace("\0", "").splitlines()
    return list(csv.reader(lines, delimiter=_delimiter(lines[:1])))


def _delimiter(first: Iterable[str]) -> str:
    """Return the most frequent of , ; and tab in the first line: in many countries, spreadsheets export semicolons."""
    line = "".join(first)
    return max(",;\t", key=line.count)
