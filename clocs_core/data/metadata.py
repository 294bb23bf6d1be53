"""The columns of recordings that a method needs, such as age and sex, as arrays."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.contracts.records import Column, Entry
from clocs_core.errors import DataError

Value = float | str | None


def choose_columns(needed: Iterable[Column], declared: Sequence[Column], dataset: str) -> tuple[Column, ...]:
    """Return the declared columns that a method needs. Raise DataError where one is not there or of another kind."""
    known = {column.name: column for column in declared}
    chosen = {}
    for column in needed:
        found = known.get(column.name)
        if found is None or found.kind != column.kind:
            has = ", ".join(f"{one.name} ({one.kind})" for one in declared) or "none"
            raise DataError(
                f"The method needs the column {column.name!r} of each recording, a {column.kind}; data set {dataset!r} "
                f"has {has}. Choose another method, or a data set that has this column."
            )
        chosen[found.name] = found
    return tuple(chosen.values())


def read_columns(
    columns: Sequence[Column], entries: Iterable[Entry], records: Sequence[tuple[str, str]], train: Collection[str]
) -> tuple[tuple[Column, ...], dict[str, NDArray[Any]]]:
    """Return the columns with the mean and deviation of their numbers, and the values of each by name.

    records: (record, patient) in the order of the values. train: training patients, whose recordings give the means.
    Numbers are float32 (record,), NaN where missing; categories int64 (record,), -1 where missing.
    """
    about = {entry.record: entry.about for entry in entries} if columns else {}
    mine = np.array([patient in train for _, patient in records], dtype=bool)
    found = [_read(column, [about[record].get(column.name) for record, _ in records], mine) for column in columns]
    return tuple(column for column, _ in found), {column.name: values for column, values in found}


def _read(column: Column, given: Sequence[Value], train: NDArray[np.bool_]) -> tuple[Column, NDArray[Any]]:
    if column.kind == "category":
        numbers: NDArray[Any] = np.array([_class(column, value) for value in given], dtype=np.int64)
        known = numbers >= 0
    else:
        numbers = np.array([_number(column, value) for value in given], dtype=np.float64)
        known = np.isfinite(numbers)
    if not (known & train).any():
        raise DataError(
            f"The method needs the column {column.name!r}, and no recording of the training patients has a value in it."
        )
    if column.kind == "category":
        return column, numbers
    ours = numbers[known & train]
    column = attrs.evolve(column, mean=float(ours.mean()), deviation=float(ours.std()) or 1.0)
    return column, ((numbers - column.mean) / column.deviation).astype(np.float32)


def _class(column: Column, value: Value) -> int:
    if value is None:
        return -1
    if value not in column.classes:
        raise DataError(f"A recording has {column.name} {value!r}; its classes are {', '.join(column.classes)}.")
    return column.classes.index(str(value))


def _number(column: Column, value: Value) -> float:
    if value is None:
        return math.nan
    if isinstance(value, (str, bool)):
        raise DataError(f"A recording has {column.name} {value!r}, which is not a number.")
    return float(value)
