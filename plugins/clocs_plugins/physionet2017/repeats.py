"""List the recordings of several places once: copies of this set repeat each other under other names."""

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
HEAD = 2048  # bytes, about 3 s of signal: recordings that agree this far are nearly always the same
Ranked: TypeAlias = tuple[int, Path]  # rank of the place, 0 is the best; and the file


@attrs.frozen
class Entered:
    """The entries of one place, and its name in messages."""

    place: str
    entries: Sequence[Entry]


@attrs.frozen
class Once:
    """Entries without repeats across places; the repeats as drops; and notes for the user."""

    entries: list[Entry]
    drops: list[Drop]
    notes: list[str]


def list_once(places: Sequence[Entered]) -> Once:
    """Keep the entry of the earlier place, with its label, of recordings that are byte for byte equal in two places."""
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
    """Map files of later places to the file of an earlier place that is byte for byte equal.

    Files are compared by size, then by their first bytes, and read in full only if both agree. An unreadable file
    equals no other.
    """
    if len(places) < 2:
        return {}  # a single place needs no comparison, so no file is read
    groups = [[(rank, path) for rank, paths in enumerate(places) for path in paths]]
    for trait in (_size, _head, _digest):
        groups = [part for group in groups for part in _divide(group, trait)]
    repeats = {}
    for group in groups:
        best, original = min(group)
        repeats.update({path: original for rank, path in group if rank > best})
    return repeats


def _divide(group: Sequence[Ranked], trait: Callable[[Path], Hashable]) -> list[list[Ranked]]:
    """Return groups of files that share a trait across places."""
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
