"""Parquet: a row per sample, with the columns patient, record, perhaps label, and one per channel.

The rows of a recording follow each other, in the order of time.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core import DataError
from clocs_plugins.arrays.layout import Found
from clocs_plugins.arrays.tables import as_texts, is_missing


@attrs.frozen
class _Run:
    """The rows of one recording."""

    patient: str
    record: str
    label: str | None
    start: int
    stop: int


def describe_parquet(path: Path) -> Found:
    """What a parquet file holds. Raises DataError in one sentence where it cannot be used."""
    try:
        runs, channels = _runs(path, *_stamp(path))
    except (OSError, ValueError) as problem:
        raise (
            problem
            if isinstance(problem, DataError)
            else DataError(f"{path.name} cannot be read as parquet: {problem}".rstrip(".") + ".")
        ) from None
    labelled = any(run.label is not None for run in runs.values())
    return Found(
        form=f"{path.name}, a row per sample",
        records=tuple(runs),
        files=(path,) * len(runs),
        patients=tuple(run.patient for run in runs.values()),
        labels=tuple(run.label for run in runs.values()) if labelled else None,
        channels=channels,
        channel_count=len(channels),
    )


def read_rows(path: Path, record: str) -> tuple[NDArray[Any], tuple[str, ...]]:
    """The samples of one recording, (sample, channel), and the channels; other row groups are not read."""
    runs, channels = _runs(path, *_stamp(path))
    run = runs[record]
    file = _module().ParquetFile(path)
    edges = np.cumsum([0, *(file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups))])
    groups = [g for g in range(len(edges) - 1) if edges[g] < run.stop and edges[g + 1] > run.start]
    table = file.read_row_groups(groups, columns=list(channels))
    first = int(run.start - edges[groups[0]])
    part = table.slice(first, run.stop - run.start)
    return np.stack([part.column(name).to_numpy() for name in channels], axis=1), channels


def _module() -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ImportError:
        raise DataError("Reading parquet needs pyarrow: install it with `pip install 'clocs[parquet]'`.") from None


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=2)
def _runs(path: Path, _size: int, _mtime: int) -> tuple[dict[str, _Run], tuple[str, ...]]:
    """The recordings of a file, from its columns of ids, which are small; no signal is read."""
    file = _module().ParquetFile(path)
    columns = list(file.schema_arrow.names)
    missing = [name for name in ("patient", "record") if name not in columns]
    if missing:
        raise DataError(
            f"{path.name} has the columns {', '.join(columns)}, but no {missing[0]!r}; a row is a sample, with the "
            "columns patient, record, perhaps label, and one per channel."
        )
    channels = tuple(name for name in columns if name not in ("patient", "record", "label"))
    if not channels:
        raise DataError(f"{path.name} has no column for a channel beside {', '.join(columns)}.")
    ids = ["patient", "record", *(["label"] if "label" in columns else [])]
    runs: list[_Run] = []
    row = 0
    for group in range(file.metadata.num_row_groups):
        for run in _runs_of(file.read_row_group(group, columns=ids), ids, row, path):
            last = runs[-1] if runs else None
            if last is not None and (last.patient, last.record, last.label) == (run.patient, run.record, run.label):
                runs[-1] = attrs.evolve(last, stop=run.stop)
            else:
                runs.append(run)
            row = run.stop
    by_name: dict[str, _Run] = {}
    for run in runs:
        if by_name.setdefault(f"{run.patient}/{run.record}", run) is not run:
            raise DataError(
                f"The rows of record {run.record} of patient {run.patient} do not follow each other in {path.name}, "
                "or have several labels; sort it by patient, record and time."
            )
    return by_name, channels


def _runs_of(table: Any, ids: list[str], first: int, path: Path) -> list[_Run]:
    """The stretches of rows with equal ids."""
    if not table.num_rows:
        return []
    values, codes = [], np.zeros((len(ids), table.num_rows), dtype=np.int64)
    for number, name in enumerate(ids):
        column = table.column(name).combine_chunks()
        encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
        codes[number] = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        values.append(_texts(encoded.dictionary.to_pylist()))
    edges = [0, *(np.flatnonzero((codes[:, 1:] != codes[:, :-1]).any(axis=0)) + 1).tolist(), table.num_rows]
    runs = []
    for start, stop in pairwise(edges):
        found = [values[n][codes[n, start]] if codes[n, start] >= 0 else "" for n in range(len(ids))]
        if is_missing(found[0]) or is_missing(found[1]):
            raise DataError(
                f"Row {first + start:,} of {path.name} has no {'patient' if is_missing(found[0]) else 'record'}."
            )
        label = None if len(found) < 3 or is_missing(found[2]) else found[2]
        runs.append(_Run(found[0], found[1], label, first + start, first + stop))
    return runs


def _texts(values: list[object]) -> tuple[str, ...]:
    plain = [value if isinstance(value, (int, float)) else str(value) for value in values]
    return tuple(as_texts(np.array([value]), "an id")[0] for value in plain)
