"""Read the subjects of PPG-BP from `PPG-BP dataset.xlsx`, or from a CSV file exported from it.

The first row of the workbook is a title; the second has the names of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clocs_core import DataError, read_sheet

from clocs_plugin_ppg.ppg_bp.labels import Subject

HEADINGS = ("subject_id", "hypertension", "diabetes")
FORMATS = (".xlsx", ".csv")  # the first that exists is read; the published one comes first
FIRST_ROWS = 10  # rows searched for the names of the columns


def find_sheet(root: Path) -> Path | None:
    """Find the file called `PPG-BP dataset`, in root or up to two folders below; None if there is none."""
    candidates = [path for depth in ("*", "*/*", "*/*/*") for path in sorted(root.glob(depth))]
    for suffix in FORMATS:
        for path in candidates:
            if path.suffix.lower() == suffix and path.stem.lower().startswith("ppg-bp") and path.is_file():
                return path
    return None


def read_subjects(sheet: Path) -> dict[str, Subject]:
    """Read the row of each subject, by id. Raise DataError if the file is not this table."""
    rows = read_sheet(sheet)
    first, columns = _find_headings(sheet, rows)
    subjects = {}
    for row in rows[first:]:
        cells = [row[at] if at < len(row) else "" for at in columns]
        if cells[0]:
            subjects[cells[0].removesuffix(".0")] = Subject(cells[1], cells[2])
    return subjects


def _find_headings(sheet: Path, rows: Sequence[Sequence[str]]) -> tuple[int, list[int]]:
    """Return the number of the first row below the names of the columns, and the numbers of the columns."""
    for number, row in enumerate(rows[:FIRST_ROWS]):
        names = [cell.lower() for cell in row]
        if all(heading in names for heading in HEADINGS):
            return number + 1, [names.index(heading) for heading in HEADINGS]
    raise DataError(
        f"{sheet} should name the columns subject_ID, Hypertension and Diabetes in one of its first {FIRST_ROWS} rows, "
        "and does not. Download it again, and do not edit it."
    )
