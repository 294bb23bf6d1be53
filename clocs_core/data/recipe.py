"""All that prepared frames depend on: which recordings, how they are read, and how they are cut."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from clocs_core.contracts.records import Entry, Framing
from clocs_core.settings.options import options_that_read

if TYPE_CHECKING:
    from clocs_core.contracts.offers import Load

_STORED = 1  # raise it when framing changes the stored bytes: every set then gets another fingerprint


@attrs.frozen(kw_only=True, eq=False)
class Recipe:
    """The recordings of a data set, the function that reads one, its options, and the framing.

    revision: of the reader; it rises when the same file is read differently.
    channels: order of the channels; empty: that of the first recording.
    """

    dataset: str
    entries: Sequence[Entry]
    load: Load
    options: Any
    framing: Framing
    revision: int = 1
    channels: tuple[str, ...] = ()

    def fingerprint(self) -> str:
        """Hash all of it into 16 hexadecimal digits: files by name, size and time; never the labels and the parts."""
        options = self.options
        read = options_that_read(options) if attrs.has(type(options)) else options
        facts = {
            "schema": _STORED,
            "dataset": self.dataset,
            "revision": self.revision,
            "options": [type(options).__qualname__, read],
            "framing": _without_idle_filters(self.framing),
            "channels": self.channels,
            "entries": stamp_entries(self.entries),
        }
        return sha256(json.dumps(facts, sort_keys=True, default=_plain).encode()).hexdigest()[:16]


def stamp_entries(entries: Iterable[Entry]) -> list[list[object]]:
    """List recordings with their patients and the name, size and time of their files."""
    return [[entry.record, entry.patient, [_stamp(file) for file in entry.files]] for entry in entries]


def _without_idle_filters(framing: Framing) -> dict[str, object]:
    """Return the fields of a framing without the filters that are not set: sets of older versions have none."""
    return {
        name: value
        for name, value in attrs.asdict(framing).items()
        if value is not None or name not in ("band_pass", "notch")
    }


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return value.as_posix()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, Enum):
        return value.name
    raise TypeError(f"an option of type {type(value).__name__} has no fingerprint: {value!r}")


def _stamp(file: Path) -> list[object]:
    try:
        found = file.stat()
    except OSError:  # deleted since the scan: its load will fail, and restoring it changes the fingerprint
        return [file.name, None, None]
    return [file.name, found.st_size, found.st_mtime_ns]
