"""Read parquet files: a row per sample, with the columns patient, record, perhaps label, and one per channel.

The rows of a recording follow each other, in the order of time. Columns of ids are read first, to find the row groups
of each recording. pandas.read_parquet can choose rows only by statistics that a file need not have.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from clocs_core import DataError, SignalFile
from clocs_plugins.arrays.layout import Found, one_recording
from clocs_plugins.arrays.tables import as_text, is_missing

_AT_ONCE = 1 << 20  # rows of ids that are read at a time


@attrs.frozen
class _Run:
    """The rows of one recording."""

    patient: str
    label: str | None
    start: int
    stop: int


def describe_parquet(path: Path) -> Found:
    """Describe a parquet file. Raises DataError in one sentence where it cannot be used."""
    try:
        runs, channels = _runs(path, *_stamp(path))
    except DataError:
        raise
    except (OSError, ValueError) as problem:
        raise DataError(f"{path.name} cannot be read as parquet: {str(problem).rstrip('.')}.") from None
    labels = tuple(run.label for run in runs.values())
    return Found(
        form=f"{path.name}, a row per sample",
        records=tuple(runs),
        files=(path,) * len(runs),
        patients=tuple(run.patient for run in runs.values()),
        labels=labels if any(label is not None for label in labels) else None,
        channels=channels,
        channel_count=len(channels),
        shortest=min(run.stop - run.start for run in runs.values()),
    )


def read_rows(path: Path, record: str) -> SignalFile:
    """Read one recording; row groups without it are not read."""
    runs, channels = _runs(path, *_stamp(path))
    run, file = runs[record], _module().ParquetFile(path)
    if (size := 8 * (run.stop - run.start) * len(channels)) > max(1 << 28, 100 * path.stat().st_size):
        raise DataError(
            f"{record} in {path.name} unpacks to {size:,} bytes, far more than the file has; it is not read."
        )
    edges = np.cumsum([0, *(file.metadata.row_group(group).num_rows for group in range(file.num_row_groups))])
    groups = [g for g, (first, end) in enumerate(pairwise(edges)) if first < run.stop and end > run.start]
    table = file.read_row_groups(groups, columns=list(channels))
    part = table.slice(int(run.start - edges[groups[0]]), run.stop - run.start)
    return SignalFile(one_recording(part.to_pandas(ignore_metadata=True).to_numpy(), ("sample", "channel")), channels)


def _module() -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ImportError:
        raise DataError("Reading parquet needs pyarrow: install it with `pip install 'clocs[parquet]'`.") from None


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=2)
def _runs(path: Path, _size: int, _changed: int) -> tuple[dict[str, _Run], tuple[str, ...]]:
    """Find the recordings of a file by its columns of ids, which are small; no signal is read."""
    file = _module().ParquetFile(path)
    columns = list(file.schema_arrow.names)
    ids = [name for name in ("patient", "record", "label") if name in columns]
    channels = tuple(name for name in columns if name not in ids)
    absent = [name for name in ("patient", "record") if name not in columns]
    if absent:
        raise DataError(
            f"{path.name} has the columns {', '.join(columns)}, but no {absent[0]!r}; a row is a sample, with the "
            "columns patient, record, perhaps label, and one per channel."
        )
    if not channels:
        raise DataError(f"{path.name} has no column for a channel beside {', '.join(columns)}.")
    firsts = _first_rows(file, ids)
    ends = [*(row for row, _ in firsts[1:]), file.metadata.num_rows]
    runs: dict[str, _Run] = {}
    for (row, (patient, record, *label)), end in zip(firsts, ends, strict=True):
        if is_missing(patient) or is_missing(record):
            raise DataError(f"Row {row:,} of {path.name} has no {'patient' if is_missing(patient) else 'record'}.")
        run = _Run(patient, next((one for one in label if not is_missing(one)), None), row, end)
        if runs.setdefault(f"{patient}/{record}", run) is not run:
            raise DataError(
                f"The rows of record {record} of patient {patient} do not follow each other in {path.name}, or have "
                "several labels; sort it by patient, record and time."
            )
    return runs, channels


def _first_rows(file: Any, ids: list[str]) -> list[tuple[int, list[str]]]:
    """Return the number and the ids of each row whose ids differ from those of the row before it."""
    import pandas as pd

    found: list[tuple[int, list[str]]] = []
    begin = 0
    for batch in file.iter_batches(_AT_ONCE, columns=ids):
        table = batch.to_pandas(integer_object_nulls=True, ignore_metadata=True)[ids]
        codes = np.stack([pd.factorize(table[name])[0] for name in ids])
        changes = np.flatnonzero((np.diff(codes, axis=1, prepend=-2) != 0).any(axis=0))
        for row, values in zip(changes.tolist(), table.iloc[changes].itertuples(index=False), strict=True):
            texts = ["" if pd.isna(value) else as_text(value) for value in values]
            if not found or found[-1][1] != texts:
                found.append((begin + row, texts))
        begin += len(table)
    return found
