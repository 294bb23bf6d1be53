"""List the recordings of one or several folders with their labels, and read one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import attrs

from clocs_core import DataError, DataNotFound, Drop, Entry, Header, Listing, Record, Signal, Task, read_wfdb
from clocs_plugins.physionet2017.labels import SYMBOLS, Labels, choose_labels, read_named
from clocs_plugins.physionet2017.places import Place, find_places, natural, tell_other_set
from clocs_plugins.physionet2017.repeats import Entered, list_once

RATE, GAIN = 300.0, 1000.0  # Hz, counts per mV: the same in every header, so files without a header can be read too


@attrs.frozen
class Labelled:
    """A place with the labels of its recordings."""

    place: Place
    labels: Labels


def list_recordings(root: Path, task: Task, wanted: str, label_file: str) -> Listing:
    """List the recordings in `root` and the folders below it, each once.

    Raise DataNotFound if there are none, or none of this challenge.
    """
    places, passed_over = _of_this_challenge(root, find_places(root))
    named = read_named(root, label_file) if label_file else None
    labelled = [Labelled(place, named or _labels_near(place, root, wanted)) for place in places]
    entered, drops, taken = [], [], set[str]()
    for one in labelled:
        entries, left_out = _enter(one, task, taken)
        entered.append(Entered(one.place.name, entries))
        drops.extend(left_out)
        taken |= one.place.records
    once = list_once(entered)
    notes = (*_tell_labels(labelled), *once.notes, *_tell_renamed(places, once.entries), *passed_over)
    return Listing(once.entries, [*drops, *once.drops], "; ".join(place.form for place in places), notes)


def read_recording(entry: Entry) -> Record:
    """Read one recording by its header or, without one, with the values that all headers of the data set share."""
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


def _of_this_challenge(root: Path, found: Sequence[Place]) -> tuple[list[Place], list[str]]:
    """Return the places that do not look like another challenge, and a note for each of the others."""
    if not found:
        raise DataNotFound(_nothing_found(root))
    signs = [tell_other_set(place) for place in found]
    places = [place for place, sign in zip(found, signs, strict=True) if not sign]
    if not places:
        raise DataNotFound(
            f"The recordings in {found[0].folder} {signs[0]}, so they are not of the 2017 challenge, which has one "
            "lead. Is this `physionet2020`?"
        )
    others = [(place.name, sign) for place, sign in zip(found, signs, strict=True) if sign]
    return places, [f"The recordings in {name} {sign}: they are of another set, and left out." for name, sign in others]


def _labels_near(place: Place, root: Path, wanted: str) -> Labels:
    up_to_root = place.folder.parents[: len(place.folder.relative_to(root).parts) + 1]  # and the root's parent
    return choose_labels(place.folder, up_to_root, place.records, wanted)


def _enter(one: Labelled, task: Task, taken: Collection[str]) -> tuple[list[Entry], list[Drop]]:
    """Return entries and drops of a place. A name that a better place already uses gets the path as prefix."""
    entries: list[Entry] = []
    drops: list[Drop] = []
    signals, headers = one.place.signals, one.place.headers
    for record in sorted(one.place.records, key=natural):
        name = f"{one.place.path}/{record}" if record in taken else record
        symbol = one.labels.symbol.get(record)
        if record not in signals:
            drops.append(Drop("missing file", name))
        elif symbol is not None and symbol not in SYMBOLS:
            drops.append(Drop("unmapped label", name))
        else:
            label = None if symbol is None else task.classes.index(SYMBOLS[symbol])
            files = [headers[record], signals[record]] if record in headers else [signals[record]]
            entries.append(Entry(name, name, label, files))
    return entries, drops


# ------------------------------------------------------------------------------------------------------ notes for users


def _tell_labels(labelled: Sequence[Labelled]) -> list[str]:
    """Note where labels come from, and which recordings and labels do not match. Places may share a label file."""
    notes = [note for one in labelled for note in one.labels.notes]
    for file in dict.fromkeys(one.labels.file for one in labelled if one.labels.file is not None):
        sharing = [one for one in labelled if one.labels.file == file]
        symbol = sharing[0].labels.symbol
        absent = symbol.keys() - set[str]().union(*(one.place.signals for one in sharing))
        if absent:
            where = " or ".join(f"{one.place.folder.name}/" for one in sharing)
            notes.append(f"{len(absent):,} of {len(symbol):,} recordings listed in {file.name} are not in {where}.")
        notes.extend(_tell_unlisted(one.place, symbol, file) for one in sharing if one.place.signals.keys() - symbol)
    return list(dict.fromkeys(notes))


def _tell_unlisted(place: Place, listed: Collection[str], file: Path) -> str:
    count = len(place.signals.keys() - listed)
    return f"{count:,} recordings in {place.folder.name}/ are not in {file.name}: they have no label."


def _tell_renamed(places: Sequence[Place], entries: Sequence[Entry]) -> list[str]:
    notes = []
    names = {entry.record for entry in entries}
    for place in places:
        renamed = sorted({f"{place.path}/{record}" for record in place.records} & names, key=natural)
        if renamed:
            notes.append(
                f"{len(renamed):,} recordings in {place.name} have the names of others, of other contents; they are "
                f"listed as {renamed[0]} and so on."
            )
    return notes


def _nothing_found(root: Path) -> str:
    found = sorted(path.name for path in root.iterdir())[:5] if root.is_dir() else []
    return (
        f"No recording of the 2017 challenge (A00001.mat, ...) in {root}, nor in training2017/, training/A00/ or "
        f"sample2017/validation/ below it; found {', '.join(found) or 'nothing'}. Unpack training2017.zip there."
    )
