"""List the recordings from the table and the names of the files, without reading a header or a signal."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from clocs_core import DataError, DataNotFound, Drop, Entry, Label, Listing
from clocs_plugins.ptbxl.folds import FOLDS, Folds, parts_of, published
from clocs_plugins.ptbxl.statements import CLASSES_OF, classes, rhythm_group
from clocs_plugins.ptbxl.table import Row, read_table

TABLE = "ptbxl_database.csv"
RATES = (100, 500)  # Hz
LabelOf = Callable[[Row], Label]


@attrs.define
class _Found:
    """Results collected while the table is read."""

    entries: list[Entry] = attrs.field(factory=list)
    drops: list[Drop] = attrs.field(factory=list)
    folds: dict[str, str] = attrs.field(factory=dict)  # by record
    listed: int = 0

    @property
    def absent(self) -> int:
        """Number of recordings in the table without a file."""
        return self.listed - len(self.entries) - len(self.drops)


def list_recordings(root: Path, task: str, rate: int | None, likelihood: float, folds: Folds, by_fold: bool) -> Listing:
    """List the recordings of a task. rate: Hz, None for any; by_fold: split by these folds whatever `split` says."""
    root = _find(root)
    rate = _choose_rate(root, rate)
    label_of = _label_of(task, likelihood)
    present = _list_files(root / f"records{rate}")
    found = _collect(
        read_table(root / TABLE, rate, ("age",) if task == "age" else ()), root, present, label_of, by_fold
    )
    if not found.entries:
        raise DataError(
            f"PTB-XL: none of the {found.listed:,} recordings listed in {root / TABLE} can be read from "
            f"records{rate}/: {found.absent:,} are not there, {len(found.drops):,} are damaged. Download it again."
        )
    entries = sorted(found.entries, key=lambda entry: int(entry.record))
    parts = parts_of(entries, found.folds, folds) if by_fold else None
    form = f"{root.name}/ with records{rate}/ ({rate} Hz)"
    notes = _notes(found, rate, task)
    whole, why = published(entries, found.folds, folds)
    return Listing(entries, found.drops, form, notes, parts=parts, published=whole, unpublished=why)


def _label_of(task: str, likelihood: float) -> LabelOf:
    """Return the function that gives the label of a row."""
    if task == "age":
        return lambda row: row.age
    if task in CLASSES_OF:
        return lambda row: classes(row.statements, task=task, likelihood=likelihood)
    return lambda row: rhythm_group(row.statements)


def _collect(rows: Iterable[Row | Drop], root: Path, present: set[str], label_of: LabelOf, by_fold: bool) -> _Found:
    found = _Found()
    seen: set[str] = set()
    for row in rows:
        found.listed += 1
        if isinstance(row, Drop):
            found.drops.append(row)
            continue
        files = [f"{row.file}{ending}" for ending in (".hea", ".dat")]
        if not any(file in present for file in files):
            continue  # reported in one note: a partial download lacks thousands
        reason = _reason_to_drop(row, files, present, seen, by_fold)
        seen.add(row.record)
        if reason:
            found.drops.append(Drop(reason, row.record))
            continue
        paths = [root / file for file in files]
        about = {"age": row.age, "sex": row.sex}
        found.entries.append(Entry(row.record, row.patient, label_of(row), paths, about))
        found.folds[row.record] = row.fold
    return found


def _reason_to_drop(row: Row, files: list[str], present: set[str], seen: set[str], by_fold: bool) -> str:
    if row.record in seen:
        return "listed twice"
    if not all(file in present for file in files):
        return "missing file"
    if not row.patient:
        return "no patient id"
    if by_fold and row.fold not in FOLDS:
        return "no strat_fold"
    return ""


def _find(root: Path) -> Path:
    """Find the folder with the table: root, one below, or the place where `wget -r` puts it."""
    below = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    mirrored = sorted(root.glob("physionet.org/files/ptb-xl/*"), reverse=True)  # the newest version first
    for folder in [root, *below, *mirrored]:
        if (folder / TABLE).is_file():
            return folder
    names = sorted(path.name for path in root.iterdir()) if root.is_dir() else []
    found = "a file" if root.is_file() else ", ".join(names[:4]) or "nothing"
    raise DataNotFound(
        f"PTB-XL was looked for in {root}, and one folder below, by its table {TABLE}. There is {found}. "
        f"Unpack the download, and set `root=...` to the folder with {TABLE} and records100/ or records500/."
    )


def _choose_rate(root: Path, asked: int | None) -> int:
    there = [rate for rate in RATES if (root / f"records{rate}").is_dir()]
    if asked is None and there:
        return there[0]
    if asked in there:
        return asked
    looked = f"records{asked}/" if asked else "records100/ or records500/"
    advice = f"Use `rate={there[0]}`, or download" if there else "Download"
    has = f", but there is records{there[0]}/" if there else ""
    raise DataNotFound(f"PTB-XL: {root} has no {looked}{has}. {advice} the recordings beside {TABLE}.")


def _list_files(folder: Path) -> set[str]:
    """List all files of records100/ or records500/, as the table names them; read each folder once."""
    found = set()
    for part in os.scandir(folder):
        if part.is_dir():
            found |= {f"{folder.name}/{part.name}/{file.name}" for file in os.scandir(part.path)}
    return found


def _notes(found: _Found, rate: int, task: str) -> tuple[str, ...]:
    notes = []
    if found.absent:
        notes.append(f"{found.absent:,} of {found.listed:,} recordings listed in {TABLE} are not in records{rate}/.")
    if bare := sum(entry.label is None for entry in found.entries):
        lacking = {"rhythm-group": "one rhythm group", "age": "a known age"}.get(task, f"a class of {task!r}")
        notes.append(f"{bare:,} recordings do not have {lacking} and serve pre-training only.")
    return tuple(notes)
