"""Find the recordings in each of their three published forms, with their labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from clocs_core import DataError, DataNotFound, Drop, Entry, Listing, Task, open_regular, read_header
from clocs_plugins.physionet2020.labels import find_classes, note_ignored, read_table

OURS = re.compile(r"A[0-9]{4}")  # A0001 to A6877; the 2017 challenge has five digits
OTHERS = re.compile(r"(Q|E|S|I|HR|JS)[0-9]{4,5}")  # records of the challenges' other sets
PARTS = re.compile(r"g[0-9]+|TrainingSet[0-9]+", re.IGNORECASE)  # folders that divide one set


@attrs.frozen
class Found:
    """A recording with its labels, or the reason why it is left out."""

    record: str
    files: tuple[Path, ...] = ()
    codes: tuple[str, ...] | None = None  # None: no labels given
    fault: str = ""


def list_recordings(root: Path, task: Task) -> Listing:
    """List the recordings in `root` or below it. Raise DataNotFound if there are none."""
    for folder in _folders(root):
        folders = [folder, *_parts(folder)]
        files = {path for one in folders for path in one.iterdir() if path.suffix in (".hea", ".mat")}
        ours = {path for path in files if OURS.fullmatch(path.stem)}
        if not ours:
            continue
        where, notes = _words(folder, root), _note_others({path.stem for path in files - ours})
        if any(path.suffix == ".hea" for path in ours):
            return _listing(_read_headers(ours), task, f"WFDB recordings in {where}", notes)
        if any(map(_is_matlab5, sorted(ours))):
            said = _read_tables([*folders, *folder.parents[:2]])
            form = f"CPSC 2018 structures in {where}, labels in a table"
            return _listing(_look_up(ours, said), task, form, notes + _note_absent(said, ours))
    raise DataNotFound(_nothing_found(root))


def _listing(found: list[Found], task: Task, form: str, notes: tuple[str, ...]) -> Listing:
    entries, drops = [], []
    ignored: Counter[str] = Counter()
    kinds: set[str] = set()
    for one in found:
        label, others = find_classes(one.codes or (), task.classes)
        ignored.update(others)
        kinds |= {"SNOMED" if code.isdigit() else "text" for code in one.codes or ()}
        if one.fault or (one.codes and not label):
            drops.append(Drop(one.fault or "unmapped label", one.record))
        else:
            entries.append(Entry(one.record, one.record, label or None, one.files))
    unlabelled = sum(entry.label is None for entry in entries)
    if unlabelled:
        notes += (f"{unlabelled:,} recordings come without a label.",)
    if "WFDB" in form:
        form += f", {' and '.join(sorted(kinds)) or 'no'} labels"
    return Listing(entries, drops, form, notes + note_ignored(ignored))


# --------------------------------------------------------------------------------------------------- finding the files


def _folders(root: Path) -> Iterator[Path]:
    """Yield the folders to search, in order: the root, the folders that the published files unpack to, any other."""
    published = ("Training_WFDB", "cpsc_2018", "training/cpsc_2018", "training")
    below = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    for folder in dict.fromkeys([root, *(root / name for name in published), *below]):
        if folder.is_dir():
            yield folder


def _parts(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and PARTS.fullmatch(path.name))


def _is_matlab5(file: Path) -> bool:
    try:
        with open_regular(file) as stream:
            return stream.read(8) == b"MATLAB 5"
    except DataError:
        return False  # its load reports it


def _words(folder: Path, root: Path) -> str:
    return "the data folder" if folder == root else f"{folder.relative_to(root)}/"


def _note_others(records: Iterable[str]) -> tuple[str, ...]:
    sets = Counter(re.sub("[0-9]", "", record) for record in records if OTHERS.fullmatch(record))
    if not sets:
        return ()
    counts = ", ".join(f"{name} {count:,}" for name, count in sorted(sets.items()))
    return (f"{sets.total():,} recordings of other sets ({counts}) were ignored: CPSC 2018 is A0001 to A6877.",)


def _note_absent(said: dict[str, list[str]], files: Iterable[Path]) -> tuple[str, ...]:
    listed = {record for record in said if OURS.fullmatch(record)}
    absent = len(listed - {path.stem for path in files})
    return (f"{absent:,} of {len(listed):,} recordings listed in REFERENCE.csv are not there.",) if absent else ()


def _nothing_found(root: Path) -> str:
    found = sorted(path.name for path in root.iterdir())[:5] if root.is_dir() else []
    return (
        f"No recording of CPSC 2018 (A0001.hea and A0001.mat, or A0001.mat and REFERENCE.csv) in {root}, nor in "
        f"Training_WFDB/, training/cpsc_2018/g1/ or TrainingSet1/ below it; found {', '.join(found) or 'nothing'}. "
        "Set `root=...` to the unpacked folder."
    )


# --------------------------------------------------------------------------------------------------- reading the labels


def _read_headers(files: set[Path]) -> list[Found]:
    """Read the labels in the headers, words or codes."""
    return [_read_one(record, pair) for record, pair in _by_record(files)]


def _read_one(record: str, files: dict[str, Path]) -> Found:
    if ".hea" not in files:
        return Found(record, fault="missing header")
    if ".mat" not in files:
        return Found(record, fault="missing file")
    try:
        header = read_header(files[".hea"])
    except (DataError, FileNotFoundError):  # what the system cannot read today is no fault of the file
        return Found(record, fault="broken header")
    return Found(record, (files[".hea"], files[".mat"]), header.listed("Dx") or None)


def _read_tables(folders: Iterable[Path]) -> dict[str, list[str]]:
    """Read the labels of one or several REFERENCE.csv; earlier folders override later ones."""
    said: dict[str, list[str]] = {}
    for folder in reversed(list(folders)):
        table = folder / "REFERENCE.csv"
        if table.is_file():
            said.update(read_table(table))
    return said


def _look_up(files: set[Path], said: dict[str, list[str]]) -> list[Found]:
    return [
        Found(record, (pair[".mat"],), tuple(said[record]) if said.get(record) else None)
        for record, pair in _by_record(files)
    ]


def _by_record(files: set[Path]) -> list[tuple[str, dict[str, Path]]]:
    pairs: dict[str, dict[str, Path]] = {}
    for path in sorted(files):
        pairs.setdefault(path.stem, {}).setdefault(path.suffix, path)
    return sorted(pairs.items())
