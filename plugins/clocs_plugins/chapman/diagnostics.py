"""Read the table of diagnoses, Diagnostics.xlsx, or its export as CSV."""

from __future__ import annotations

from pathlib import Path

from clocs_core import DataError, read_sheet

FORMATS = (".xlsx", ".csv")  # the first that exists is read; .xlsx is the published one


def find_table(folder: Path) -> Path | None:
    """Find the file called Diagnostics, in upper or lower case; None if there is none."""
    found = {path.suffix.lower(): path for path in sorted(folder.iterdir()) if path.stem.lower() == "diagnostics"}
    return next((found[suffix] for suffix in FORMATS if suffix in found), None)


def read_rhythms(table: Path) -> dict[str, set[str]]:
    """Read the rhythms of each recording, by FileName: one, unless the table contradicts itself.

    Raises DataError where the file is not a table of diagnoses.
    """
    rows = read_sheet(table)
    try:
        names = [cell.lower() for cell in next(iter(rows), ())]
        at, rhythm = names.index("filename"), names.index("rhythm")
    except ValueError:
        there = ", ".join(name for name in names if name)[:200] or "nothing"
        raise DataError(f"{table} should have columns FileName and Rhythm in its first row, but has {there}.") from None
    rhythms: dict[str, set[str]] = {}
    for row in rows[1:]:
        if len(row) > max(at, rhythm) and (name := row[at]):
            rhythms.setdefault(name.removesuffix(".csv"), set()).add(row[rhythm])
    return rhythms
