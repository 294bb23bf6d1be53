"""Read ids and labels, one per recording, from csv, txt or npy, of any type, as text.

Tables are read by the csv module: pandas pads a row that is too short with empty cells, which would here become unknown
labels, and refuses a row that is too long.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import attrs

from clocs_core import DataError, DataNotFound, StoredArray, open_array_file

PATIENT = (
    *("patient", "patients", "patient_id", "patient_ids", "patientid", "subject", "subjects", "subject_id"),
    *("participant", "participant_id", "id"),
)
LABEL = ("label", "labels", "class", "target", "y")
PART = ("part", "split", "set", "fold")
FILE = ("file", "filename", "file_name", "path", "record", "recording", "record_id", "exam_id", "ecg_id", "study_id")

_WHOLE_FLOAT = re.compile(r"([+-]?\d+)\.0*")


@attrs.frozen
class Column:
    """A column of a table, row by row, with the columns that name each row's file or patient.

    only_id: the patients stand under the heading "id", which may be that of rows.
    """

    values: tuple[str, ...]
    files: tuple[str, ...] | None = None
    patients: tuple[str, ...] | None = None
    only_id: bool = False


def read_column(path: Path, names: Sequence[str], argument: str) -> Column:
    """Read the column that has one of these names, or the only one. `argument` names the file's argument in errors."""
    if not path.is_file():
        raise DataNotFound(f"{argument}: there is no file {path}. Give a csv, txt or npy with one value per recording.")
    kind = path.suffix.lower()
    if kind == ".npy":
        return Column(as_texts(open_array_file(path).arrays[""], f"{argument}: "))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{argument}: {path} is not text in UTF-8; save it as csv, txt or npy.") from None
    if kind == ".txt":
        return Column(tuple(map(as_text, text.splitlines())))
    mark = max(",;\t", key=text.partition("\n")[0].count)
    try:
        rows = list(csv.reader(StringIO(text), delimiter=mark))
    except csv.Error as problem:
        raise DataError(f"{argument}: {path} is not a table: {problem}.") from None
    if max(map(len, rows), default=0) > 1:
        rows = [row for row in rows if row]  # a blank line; in a single column it is an empty cell
    return _from_rows([row or [""] for row in rows], names, f"{argument}: {path}")


def as_texts(array: StoredArray, where: str = "") -> tuple[str, ...]:
    """Convert the values of an array of any type to text: 12.0 is "12". A missing number is empty."""
    if len(array.shape) > 1:
        raise DataError(
            f"{where}{array} has the shape {array.shape}, expected one value per recording; several classes of one "
            "recording are written as text, such as 'a;b', with `task='findings'`."
        )
    if array.dtype.kind not in "biufSU":
        raise DataError(f"{where}{array} has values of type {array.dtype}, expected numbers or text.")
    return tuple(map(as_text, array.values()))


def as_text(value: object) -> str:
    """Convert a value to text; whole numbers have no point, whether they are numbers or text."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = (value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)).strip()
    whole = _WHOLE_FLOAT.fullmatch(text)
    return whole[1] if whole else text


def is_missing(value: str) -> bool:
    """Return whether a cell is a missing value, as pandas, R, spreadsheets and BIDS write it."""
    return value in ("", "NA", "<NA>", "#N/A") or value.lower() in ("nan", "n/a")


def _from_rows(rows: list[list[str]], names: Sequence[str], where: str) -> Column:
    if not rows:
        raise DataError(f"{where} is empty.")
    heads = [cell.strip().lower() for cell in rows[0]]

    def column(called: Sequence[str]) -> tuple[str, ...] | None:
        place = next((heads.index(name) for name in called if name in heads), None)
        return None if place is None else tuple(as_text(row[place]) for row in rows[1:])

    if not any(head in (*names, *PATIENT, *LABEL, *FILE) for head in heads):
        return _headless(rows, names, where)
    if len(rows) == 1:
        raise DataError(f"{where} has a heading, but no row below it; give it a value for each recording.")
    ragged = next((number for number, row in enumerate(rows, 1) if len(row) < len(heads)), None)
    if ragged is not None:
        raise DataError(f"{where}: row {ragged} of the table has fewer cells than the heading.")
    values = column(names)
    if values is None:
        say_which = "" if names in (PATIENT, PART) else " Or name it with `label_column=NAME`."
        raise DataError(f"{where} has the columns {', '.join(rows[0])}; call one of them {names[0]!r}.{say_which}")
    only_id = not any(head in PATIENT[:-1] for head in heads)
    return Column(values, column(FILE), None if names is PATIENT else column(PATIENT), only_id)


def _headless(rows: list[list[str]], names: Sequence[str], where: str) -> Column:
    widths = {len(row) for row in rows}
    if widths not in ({1}, {2}):
        raise DataError(
            f"{where} has several columns and none is called {names[0]!r}; its first line is {','.join(rows[0])!r}. "
            "Give it a heading, or a single column."
        )
    files = None if widths == {1} else tuple(row[0].strip() for row in rows)
    return Column(tuple(as_text(row[-1]) for row in rows), files)
