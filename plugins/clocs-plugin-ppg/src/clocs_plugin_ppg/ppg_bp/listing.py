"""List the recordings of PPG-BP from a workbook and the names of the files, without reading a signal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from clocs_core import DataNotFound, Drop, Entry, Listing

from clocs_plugin_ppg.ppg_bp.labels import Subject, label_of
from clocs_plugin_ppg.ppg_bp.sheet import find_sheet, read_subjects

_NAME = re.compile(r"([0-9]+)_[1-3]")

# These of the 657 published files are equal, byte by byte, to an earlier one of the same subject.
REPEATED = frozenset({"66_2", "146_2", "148_2", "185_3", "216_2", "403_2"})
# These two are one recording under two subjects. Its subject is unknown, and it must not be in two parts.
TWO_SUBJECTS = frozenset({"23_3", "24_1"})


def list_recordings(root: Path, task: str) -> Listing:
    """List every recording with its label for the task; those without a label serve pre-training."""
    sheet = find_sheet(root) if root.is_dir() else None
    if sheet is None:
        raise DataNotFound(
            f"PPG-BP was looked for in {root}, and two folders below, by its table `PPG-BP dataset.xlsx`, which is not "
            "there. Unpack the download from figshare, and set `root=...` to the folder with the table and recordings."
        )
    subjects = read_subjects(sheet)
    files = _list_files(sheet.parent)
    if not files:
        raise DataNotFound(f"There is {sheet}, but no recording such as 100_1.txt beside it or below. Unpack them too.")
    entries, drops = [], []
    for record, file in files.items():
        reason = _reason_to_drop(record, file)
        if reason:
            drops.append(Drop(reason, record))
        else:
            entries.append(_entry(record, file, subjects, task))
    return Listing(entries, drops, f"{sheet.name} and {len(files):,} files", _notes(entries, subjects))


def _list_files(folder: Path) -> dict[str, Path]:
    """Return the recordings by name, sorted by numbers of subject and segment; of two with one name the first."""
    found = {path.stem: path for path in sorted(folder.rglob("*.txt"), reverse=True) if _NAME.fullmatch(path.stem)}
    return {name: found[name] for name in sorted(found, key=lambda name: [int(part) for part in name.split("_")])}


def _entry(record: str, file: Path, subjects: Mapping[str, Subject], task: str) -> Entry:
    patient = record.split("_")[0]
    known = subjects.get(patient)
    return Entry(record, patient, label_of(task, known) if known else None, [file])


def _reason_to_drop(record: str, file: Path) -> str:
    if file.stat().st_size == 0:
        return "empty file"
    if record in REPEATED:
        return "the same as another of its subject"
    return "published under two subjects" if record in TWO_SUBJECTS else ""


def _notes(entries: list[Entry], subjects: Mapping[str, Subject]) -> tuple[str, ...]:
    notes = []
    if absent := set(subjects) - {entry.patient for entry in entries}:
        notes.append(f"{len(absent):,} of {len(subjects):,} subjects of the table have no recording here.")
    if bare := sum(entry.label is None for entry in entries):
        notes.append(f"{bare:,} recordings have no label for this task and serve pre-training only.")
    return tuple(notes)
