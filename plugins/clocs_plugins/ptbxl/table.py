"""Read the table of PTB-XL, ptbxl_database.csv: one row per recording."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from clocs_core import DataError, Drop
from clocs_plugins.ptbxl.statements import read_statements

SEX = {"0": "male", "1": "female"}


@attrs.frozen
class Row:
    """The columns of a recording's row that are used here; an absent value is empty."""

    record: str
    patient: str
    file: str  # below the folder of the table, without ending
    statements: Mapping[str, float]
    fold: str
    age: float | None = None  # in years
    sex: str | None = None


def read_table(path: Path, rate: int, also: tuple[str, ...] = ()) -> Iterator[Row | Drop]:
    """Yield the recordings of ptbxl_database.csv with their files of `rate` Hz; drops for damaged rows.

    also: columns that must be there beside those of every task.
    """
    column = {100: "filename_lr", 500: "filename_hr"}[rate]
    needed = ("ecg_id", "patient_id", "scp_codes", "strat_fold", column, *also)
    for number, row in enumerate(_read_csv(path, needed), 2):  # line 1 is the heading
        record = _whole(row["ecg_id"])
        if not record:
            yield Drop("broken row", f"row {number}")
            continue
        record = record.zfill(5)  # as in the files' names
        try:
            statements = read_statements(row["scp_codes"])
        except ValueError:
            yield Drop("broken scp_codes", record)
            continue
        yield Row(
            record=record,
            patient=_whole(row["patient_id"]),
            file=row[column].strip(),
            statements=statements,
            fold=_whole(row["strat_fold"]),
            age=_age(row.get("age") or ""),
            sex=SEX.get(_whole(row.get("sex") or "")),
        )


def _read_csv(path: Path, needed: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """Yield rows by column. Raise DataError if a column is missing or the file is not a table."""
    # utf-8-sig: a spreadsheet puts a mark at the start. Only the reports have umlauts, and they are not read here.
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = csv.DictReader(file, restval="")
        try:
            missing = [name for name in needed if name not in (rows.fieldnames or ())]
            if missing:
                raise DataError(f"{path} has no column {missing[0]!r}. Download it again, and do not edit it.")
            yield from rows
        except csv.Error as error:
            raise DataError(f"{path} is not a table ({error}, line {rows.line_num}). Download it again.") from error


_HIDDEN = 300.0  # stands for every age above 89, to protect the privacy of the oldest


def _age(text: str) -> float | None:
    """Return the age in years; None if it is empty, no number, or hidden: 300 gives a bound, not an age."""
    try:
        age = float(text)
    except ValueError:
        return None
    return age if 0 <= age < _HIDDEN else None


def _whole(text: str) -> str:
    """Return an integer's digits, "15709" for "15709.0"; empty if it is not an integer."""
    digits = text.strip().removesuffix(".0")
    return digits if digits.isascii() and digits.isdigit() and len(digits) < 16 else ""
