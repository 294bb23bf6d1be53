"""The subjects of PPG-BP: `PPG-BP dataset.xlsx`, or what a spreadsheet exported it to.

The first row of the workbook is a title; the names of the columns stand in the second.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from clocs_core import DataError

from clocs_plugin_ppg.ppg_bp.labels import Subject

HEADINGS = ("subject_id", "hypertension", "diabetes")
FORMATS = (".xlsx", ".csv")  # the first that is there is read: it is the one that is published
FIRST_ROWS = 10  # among which the names of the columns are looked for


def find_sheet(root: Path) -> Path | None:
    """The file called `PPG-BP dataset`, in root or up to two folders below, or None."""
    candidates = [path for depth in ("*", "*/*", "*/*/*") for path in sorted(root.glob(depth))]
    for suffix in FORMATS:
        for path in candidates:
            if path.suffix.lower() == suffix and path.stem.lower().startswith("ppg-bp") and path.is_file():
                return path
    return None


def read_subjects(sheet: Path) -> dict[str, Subject]:
    """What is said of each subject, by the id. Raises DataError where the file is no such table."""
    rows = _read_workbook(sheet) if sheet.suffix.lower() == ".xlsx" else _read_text(sheet)
    first, columns = _find_headings(sheet, rows)
    subjects = {}
    for row in rows[first:]:
        cells = [_text(row[at]) if at < len(row) else "" for at in columns]
        if cells[0]:
            subjects[cells[0].removesuffix(".0")] = Subject(cells[1], cells[2])
    return subjects


def _find_headings(sheet: Path, rows: Sequence[Sequence[object]]) -> tuple[int, list[int]]:
    """The number of the first row below the names of the columns, and where the columns are."""
    for number, row in enumerate(rows[:FIRST_ROWS]):
        names = [_text(cell).lower() for cell in row]
        if all(heading in names for heading in HEADINGS):
            return number + 1, [names.index(heading) for heading in HEADINGS]
    raise DataError(
        f"{sheet} should name the columns subject_ID, Hypertension and Diabetes in one of its first {FIRST_ROWS} rows, "
        "and does not. Download it again, and do not edit it."
    )


def _text(cell: object) -> str:
    return "" if cell is None else str(cell).strip()


def _read_workbook(sheet: Path) -> Sequence[Sequence[object]]:
    from openpyxl import load_workbook

    with open(sheet, "rb") as stream:
        try:
            page = load_workbook(stream, read_only=True, data_only=True).worksheets[0]
            return list(page.iter_rows(values_only=True))
        except Exception as problem:  # openpyxl lets through whatever zip, zlib and XML parsers raise
            raise DataError(f"{sheet} cannot be read as a workbook ({problem}). Download it again.") from problem


def _read_text(sheet: Path) -> Sequence[Sequence[object]]:
    lines = sheet.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    delimiter = max(",;\t", key="".join(lines[:FIRST_ROWS]).count)  # many countries' spreadsheets write semicolons
    return list(csv.reader(lines, delimiter=delimiter))
