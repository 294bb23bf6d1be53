"""Ids and labels, one per recording: read from csv, txt or npy, of any type, as text."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from clocs_core import DataError, DataNotFound

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PATIENT = ("patient", "patients", "patient_id", "patient_ids", "patientid", "subject", "subjects", "subject_id", "id")
LABEL = ("label", "labels", "class", "target", "y")
FILE = ("file", "filename", "file_name", "path", "record", "recording", "record_id")

_WHOLE_FLOAT = re.compile(r"[+-]?\d+\.0*")


@attrs.frozen
class Column:
    """A column of a table, row by row, with the columns beside it that say whose row it is."""

    path: Path
    values: tuple[str, ...]
    files: tuple[str, ...] | None = None
    patients: tuple[str, ...] | None = None


def read_column(path: Path, names: Sequence[str], flag: str) -> Column:
    """Read the column that has one of these names, or the only one. `flag` is how the user gave the file."""
    if not path.is_file():
        raise DataNotFound(f"{flag}: there is no file {path}. Give a csv, txt or npy with one value per recording.")
    if path.suffix.lower() == ".npy":
        return Column(path, _npy_values(path, flag))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{flag}: {path} is not text in UTF-8; save it as csv, txt or npy.") from None
    if path.suffix.lower() == ".txt":
        return Column(path, tuple(_plain(line) for line in text.splitlines()))
    try:
        rows = list(csv.reader(text.splitlines(), delimiter=_delimiter(text)))
    except csv.Error as problem:
        raise DataError(f"{flag}: {path} is not a table: {problem}.") from None
    if max(map(len, rows), default=0) > 1:
        rows = [row for row in rows if row]  # a blank line; in a single column it is an empty cell
    return _from_rows(path, [row or [""] for row in rows], names, flag)


def as_texts(values: NDArray[np.generic], where: str) -> tuple[str, ...]:
    """An array of any type as text: 12.0 is "12". A missing number is empty."""
    if values.ndim != 1:
        raise DataError(
            f"{where} has the shape {values.shape}, expected one value per recording; several classes of one "
            "recording are written as text, such as 'a;b', with `--task findings`."
        )
    if values.dtype.kind not in "biufSU":
        raise DataError(f"{where} has values of type {values.dtype}, expected numbers or text.")
    return tuple(_as_text(one) for one in values.tolist())


def is_missing(value: str) -> bool:
    """Whether a cell says that nothing is known, as pandas and R write it."""
    return value in ("", "NA", "<NA>") or value.lower() == "nan"


def _as_text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return _plain(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))


def _plain(value: str) -> str:
    text = value.strip()
    return text.split(".")[0] if _WHOLE_FLOAT.fullmatch(text) else text


def _npy_values(path: Path, flag: str) -> tuple[str, ...]:
    from clocs_plugins.arrays.numpyfiles import Unreadable, headers, read_small

    try:
        return as_texts(read_small(path, headers(path)[""]), f"{flag}: {path.name}")
    except Unreadable as problem:
        raise DataError(f"{flag}: {problem}.") from None


def _delimiter(text: str) -> str:
    first = text.partition("\n")[0]
    return max(",;\t", key=first.count)


def _from_rows(path: Path, rows: list[list[str]], names: Sequence[str], flag: str) -> Column:
    if not rows:
        raise DataError(f"{flag}: {path} is empty.")
    heads = [cell.strip().lower() for cell in rows[0]]
    if not any(head in (*PATIENT, *LABEL, *FILE) for head in heads):
        return _headless(path, rows, names, flag)
    place = next((heads.index(name) for name in names if name in heads), None)
    if place is None:
        raise DataError(f"{flag}: {path} has the columns {', '.join(rows[0])}; call one of them {names[0]!r}.")
    ragged = next((number for number, row in enumerate(rows, 1) if len(row) < len(heads)), None)
    if ragged is not None:
        raise DataError(f"{flag}: row {ragged} of {path} has fewer cells than the heading.")

    def column(position: int | None) -> tuple[str, ...] | None:
        return None if position is None else tuple(_plain(row[position]) for row in rows[1:])

    file = next((heads.index(name) for name in FILE if name in heads), None)
    patient = next((heads.index(name) for name in PATIENT if name in heads), None)
    return Column(path, column(place) or (), column(file), column(patient) if patient != place else None)


def _headless(path: Path, rows: list[list[str]], names: Sequence[str], flag: str) -> Column:
    widths = {len(row) for row in rows}
    if widths == {1}:
        return Column(path, tuple(_plain(row[0]) for row in rows))
    if widths == {2}:
        return Column(path, tuple(_plain(row[1]) for row in rows), files=tuple(row[0].strip() for row in rows))
    raise DataError(
        f"{flag}: {path} has several columns and none is called {names[0]!r}; its first line is {','.join(rows[0])!r}. "
        "Give it a heading, or a single column."
    )
