"""Where the recordings of the challenge lie, in each of the forms in which they are handed on, and how to read one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs

from clocs_core import (
    DataError,
    DataNotFound,
    Drop,
    Entry,
    Header,
    Listing,
    Record,
    Signal,
    Task,
    read_header,
    read_wfdb,
)
from clocs_plugins.physionet2017.labels import SYMBOLS, Labels, choose_labels, read_named

__all__ = ["list_recordings", "read_recording"]

RATE, GAIN = 300.0, 1000.0  # Hz, counts per mV: the same in every header, so files without one can be read too
TREE = re.compile(r"A[0-9]{2}")  # the folders into which the web site divides training/


@attrs.frozen
class Place:
    """A folder of recordings: its files by record, and the form in which they are."""

    folder: Path
    form: str
    signals: dict[str, Path]
    headers: dict[str, Path]


def list_recordings(root: Path, task: Task, wanted: str, label_file: str) -> Listing:
    """List what lies in `root`, or in a folder below it. Raises DataNotFound where there is nothing."""
    places = list(_find_places(root))
    if not places:
        raise DataNotFound(_nothing_found(root))
    place = places[0]
    _refuse_other_sets(place)
    parents = [folder for folder in (place.folder, *place.folder.parents) if folder != place.folder]
    up_to_root = parents[: len(place.folder.relative_to(root).parts) + 1]  # and the folder that holds the root
    labels = (
        read_named(root, label_file)
        if label_file
        else choose_labels(place.folder, up_to_root, place.signals | place.headers, wanted)
    )
    entries, drops = _enter(place, labels, task)
    notes = (*labels.notes, *_absent(place, labels), *_elsewhere(root, places))
    return Listing(entries, drops, place.form, notes)


def read_recording(entry: Entry) -> Record:
    """Read one recording, by its header or, where it has none, as all of the data set are."""
    path = entry.files[0]
    header = None
    if path.suffix == ".mat":
        signal = Signal(path.name, "ECG", gain=GAIN, offset=24)
        header = Header(entry.record, RATE, None, (signal,))
    read = read_wfdb(path, header)
    if len(read.header.signals) != 1:
        raise DataError(f"{path} has {len(read.header.signals)} channels, expected one.")
    rate = read.header.sampling_rate
    return Record(
        entry.patient, entry.record, ("ECG",), read.unit, rate, read.samples, entry.label, read.gain, read.tolerated
    )


# --------------------------------------------------------------------------------------------------- finding the files


def _find_places(root: Path) -> Iterator[Place]:
    """The folders with recordings, the best first: the root, the training set, any other, the sample set last.

    The sample set repeats recordings, so what comes first is taken and the others are only told of.
    """
    below = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    below = [path for path in below if not TREE.fullmatch(path.name)]
    known = [root / "training2017", root / "training"]
    samples = [path / "validation" for path in (root, root / "sample2017")]
    last = {root / "sample2017", root / "validation"}
    for folder in dict.fromkeys([root, *known, *(path for path in below if path not in last), *samples]):
        place = _look_into(folder, root)
        if place is not None:
            yield place


def _look_into(folder: Path, root: Path) -> Place | None:
    if not folder.is_dir():
        return None
    where = "the data folder" if folder == root else f"{folder.relative_to(root)}/"
    files, form = _recordings(folder), f"recordings in {where}"
    if not files:
        parts = sorted(path for path in folder.iterdir() if path.is_dir() and TREE.fullmatch(path.name))
        files, form = [file for part in parts for file in _recordings(part)], f"recordings in folders of {where}"
    if not files:
        return None
    signals, headers = ({path.stem: path for path in files if path.suffix == end} for end in (".mat", ".hea"))
    with_headers = "with" if headers.keys() >= signals.keys() else "some without" if headers else "without"
    return Place(folder, f"{form}, {with_headers} headers", signals, headers)


def _recordings(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix in (".mat", ".hea") and not path.name.startswith(".")]


def _refuse_other_sets(place: Place) -> None:
    """The 2018 and 2020 challenges have files of the same kind and nearly the same names, with twelve leads."""
    for record in sorted(place.headers, key=_natural)[:1]:
        try:
            channels = read_header(place.headers[record]).channels
        except (DataError, OSError):
            return  # a broken header, which is told of when it is read
        if len(channels) != 1:
            raise DataNotFound(
                f"The recordings in {place.folder} have {len(channels)} leads ({record}), so they are not of the 2017 "
                "challenge, which has one. Is this `physionet2020`?"
            )


# --------------------------------------------------------------------------------------------------- listing the files


def _enter(place: Place, labels: Labels, task: Task) -> tuple[list[Entry], list[Drop]]:
    entries: list[Entry] = []
    drops: list[Drop] = []
    for record in sorted(place.signals.keys() | place.headers.keys(), key=_natural):
        symbol = labels.symbol.get(record)
        files = [found[record] for found in (place.headers, place.signals) if record in found]
        if record not in place.signals:
            drops.append(Drop("missing file", record))
        elif symbol is not None and symbol not in SYMBOLS:
            drops.append(Drop("unmapped label", record))
        else:
            label = None if symbol is None else task.classes.index(SYMBOLS[symbol])
            entries.append(Entry(record, record, label, files))
    return entries, drops


def _natural(record: str) -> tuple[tuple[tuple[int, str], ...], str]:
    """Sort "x2" before "x10"."""
    parts = re.findall(r"[0-9]{1,4000}|[^0-9]+", record)
    return tuple((int(part), "") if "0" <= part[0] <= "9" else (-1, part) for part in parts), record


def _absent(place: Place, labels: Labels) -> tuple[str, ...]:
    notes = []
    absent = len(labels.symbol.keys() - place.signals.keys())
    if absent and labels.file is not None:
        listed = len(labels.symbol)
        notes.append(
            f"{absent:,} of {listed:,} recordings listed in {labels.file.name} are not in {place.folder.name}/."
        )
    unlisted = len(place.signals.keys() - labels.symbol.keys())
    if unlisted and labels.file is not None:
        notes.append(
            f"{unlisted:,} recordings in {place.folder.name}/ are not in {labels.file.name}: they have no label."
        )
    return tuple(notes)


def _elsewhere(root: Path, places: list[Place]) -> tuple[str, ...]:
    others = ", ".join(f"{place.folder.relative_to(root)}/" for place in places[1:])
    return (
        (f"There are recordings in {others} too, which were not used: point `--root` there to use them.",)
        if others
        else ()
    )


def _nothing_found(root: Path) -> str:
    found = sorted(path.name for path in root.iterdir())[:5] if root.is_dir() else []
    return (
        f"No recording of the 2017 challenge (A00001.mat, ...) in {root}, nor in training2017/, training/A00/ or "
        f"sample2017/validation/ below it; found {', '.join(found) or 'nothing'}. Unpack training2017.zip there."
    )
