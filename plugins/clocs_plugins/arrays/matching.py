"""Match the rows of a table to recordings: by file, by patient, or in order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeVar

from clocs_core import DataError
from clocs_plugins.arrays.layout import Found
from clocs_plugins.arrays.tables import PATIENT, Column, read_column

K = TypeVar("K", str, tuple[str, str])


def values_of(
    found: Found,
    own: Sequence[str | None] | None,
    path: Path | None,
    what: Literal["patients", "labels", "parts"],
    patients: list[str | None] | None = None,
    names: tuple[str, ...] = PATIENT,
) -> tuple[list[str | None] | None, tuple[str, ...]]:
    """Match a table's values to recordings: by file, in order, or by patient. Without a table, use the file's own.

    names: of the column, in lower case.
    """
    if path is None:
        return None if own is None else _in_order(found, own, f"the file's {what}"), ()
    column = read_column(path, names, f"`{what}=FILE`")
    where = f"`{what}=FILE`: {path.name}"
    if found.table_keys is not None and column.files is not None:
        return _by_file(found, column.files, column, patients, where)
    in_order = found.in_order and len(column.values) == len(found.records)
    if patients is not None and column.patients is not None and not (in_order and list(column.patients) == patients):
        if not in_order or _are_patients(column, patients):
            return _by_patient(column, patients, where)
        note = f"{path.name} names other ids than the patients here: its rows are taken in the order of the recordings."
        return list(column.values), (note,)
    if not found.in_order:
        raise DataError(f"{where} must say which file each row is of: give it a column called 'file'.")
    values = _in_order(found, column.values, where)
    if what == "patients" and own is not None:
        _refuse_other_order(own, column.values, where)
    return values, ()


def _by_file(
    found: Found, files: Sequence[str], column: Column, patients: list[str | None] | None, where: str
) -> tuple[list[str | None], tuple[str, ...]]:
    """Match a table that names files: with their patients, where it has those of the recordings.

    A name without its folder means a file only where no other has it. Raises DataError where it means several.
    """
    named, whose = column.patients, patients
    if named is None or whose is None or set(named).isdisjoint(whose):
        named, whose = ("",) * len(files), [""] * len(found.files)
    asked = list(zip(named, files, strict=True))
    here = [[(one or "", key) for key in keys] for one, keys in zip(whose, found.table_keys or (), strict=True)]
    meant: dict[tuple[str, str], set[Path]] = {}
    for keys, file in zip(here, found.files, strict=True):
        for key in keys:
            meant.setdefault(key, set()).add(file)
    for who, name in asked:
        if len(several := sorted(meant.get((who, name), ()))) > 1:
            raise DataError(
                f"{where} has {name!r}, which is the name of {len(several):,} files, such as {several[0]} and "
                f"{several[1]}. Write the names with their folders, or add a column called 'patient'."
            )
    by_file = _mapping(asked, column.values, where)
    values = [next((by_file[key] for key in keys if key in by_file), None) for keys in here]
    if all(value is None for value in values):
        raise DataError(f"{where} names none of the files; it has {files[0]!r}, there is {found.records[0]!r}.")
    absent, table = len(by_file.keys() - meant.keys()), where.rpartition(": ")[2]
    return values, (f"{absent:,} of {len(by_file):,} files in {table} are not there.",) if absent else ()


def _are_patients(column: Column, patients: Sequence[str | None]) -> bool:
    """Tell whether a table's column has the patients of the recordings, and not numbers of its rows."""
    named = set(column.patients or ())
    return named == set(patients) if column.only_id else not named.isdisjoint(patients)


def _by_patient(column: Column, patients: Sequence[str | None], where: str) -> tuple[list[str | None], tuple[str, ...]]:
    """Match a table that has one value for each patient. Raises DataError where it has none of the patients."""
    by_patient = _mapping(column.patients or (), column.values, where)
    here = list(dict.fromkeys(one for one in patients if one is not None))
    lacking = [one for one in here if one not in by_patient]
    if len(lacking) == len(here):
        raise DataError(
            f"{where} names none of the patients; it has {next(iter(by_patient), '')!r}, there is {here[0]!r}. Write "
            "patients there as the recordings have them."
        )
    table = where.rpartition(": ")[2]
    note = f"{len(lacking):,} of {len(here):,} patients are not in {table}, such as {lacking[0]!r}." if lacking else ""
    return [by_patient.get(one or "") for one in patients], (note,) if note else ()


def _refuse_other_order(own: Sequence[str | None], given: Sequence[str], where: str) -> None:
    """Raise DataError for a table that has the patients of the file itself, in another order."""
    if list(own) != list(given) and sorted(map(str, own)) == sorted(given):
        raise DataError(
            f"{where} has the patients of the file itself in another order. Leave the table out, or put its rows in "
            "the order of the recordings."
        )


def _mapping(keys: Sequence[K], values: Sequence[str], where: str) -> dict[K, str]:
    made: dict[K, str] = {}
    for key, value in zip(keys, values, strict=True):
        if made.setdefault(key, value) != value:
            name = key if isinstance(key, str) else " ".join(filter(None, key))
            raise DataError(f"{where} has both {made[key]!r} and {value!r} for {name!r}.")
    return made


def _in_order(found: Found, values: Sequence[str | None], where: str) -> list[str | None]:
    if len(values) != len(found.records):
        heading = " If its first line is a heading, call it 'patient' or 'label'."
        one_more = len(values) == len(found.records) + 1
        raise DataError(
            f"{where}: {len(values):,} values for {len(found.records):,} recordings ({found.form})."
            + (heading if one_more else " There must be one for each, in the same order.")
        )
    return list(values)
