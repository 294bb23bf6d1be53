"""The recordings of several places, each once: copies of this set repeat each other, under other names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

import attrs

from clocs_core import Drop, Entry

REPEATED = "the same as another recording"
HEAD = 2048  # bytes, about 3 s of signal: two recordings that agree so far are nearly always one
Ranked: TypeAlias = tuple[int, Path]  # a file, and which place it lies in: 0 is the best


@attrs.frozen
class Entered:
    """The entries of one place, and what to call it."""

    place: str
    entries: Sequence[Entry]


@attrs.frozen
class Once:
    """Entries of which no two are the same recording in two places; the others, as drops; and what to tell of it."""

    entries: list[Entry]
    drops: list[Drop]
    notes: list[str]


def list_once(places: Sequence[Entered]) -> Once:
    """Of recordings that are byte for byte the same in two places, keep the entry of the earlier one, label and all."""
    owner = {entry.files[-1]: (one.place, entry) for one in places for entry in one.entries}
    repeats = find_repeats([[entry.files[-1] for entry in one.entries] for one in places])
    once = Once([], [], [])
    for one in places:
        again = [entry for entry in one.entries if entry.files[-1] in repeats]
        once.entries.extend(entry for entry in one.entries if entry.files[-1] not in repeats)
        once.drops.extend(Drop(REPEATED, entry.record) for entry in again)
        pairs = [(owner[repeats[entry.files[-1]]], entry) for entry in again]
        for other, count in Counter(place for (place, _), _ in pairs).items():
            otherwise = sum(place == other and first.label != entry.label for (place, first), entry in pairs)
            once.notes.extend(_tell(one, other, count, otherwise))
    return once


def find_repeats(places: Sequence[Sequence[Path]]) -> dict[Path, Path]:
    """The files of later places that are byte for byte one of an earlier place, each with that one.

    Files are told apart by their sizes, then by how they begin, and read in full only where both agree. A file that
    cannot be read is the same as no other.
    """
    if len(places) < 2:
        return {}  # one place is taken as it is, and no file of it is touched
    groups = [[(rank, path) for rank, paths in enumerate(places) for path in paths]]
    for trait in (_size, _head, _digest):
        groups = [part for group in groups for part in _divide(group, trait)]
    repeats = {}
    for group in groups:
        best, original = min(group)
        repeats.update({path: original for rank, path in group if rank > best})
    return repeats


def _divide(group: Sequence[Ranked], trait: Callable[[Path], Hashable]) -> list[list[Ranked]]:
    """The files that share a trait across places."""
    parts: dict[Hashable, list[Ranked]] = {}
    for rank, path in group:
        with suppress(OSError):
            parts.setdefault(trait(path), []).append((rank, path))
    return [part for part in parts.values() if len({rank for rank, _ in part}) > 1]


def _size(path: Path) -> int:
    return path.stat().st_size


def _head(path: Path) -> bytes:
    with open(path, "rb", buffering=0) as stream:  # a buffer would read the next page too
        return stream.read(HEAD)


def _digest(path: Path) -> bytes:
    return sha256(path.read_bytes()).digest()


def _tell(one: Entered, other: str, count: int, otherwise: int) -> list[str]:
    notes = [
        f"{count:,} of {len(one.entries):,} recordings in {one.place} are in {other} too, byte for byte, and were left "
        "out."
    ]
    if otherwise:
        notes.append(f"For {otherwise:,} of these the labels differ; those of {other} were kept.")
    return notes
