"""Open frames prepared on disk, by memory map: `<folder>/<fingerprint>/` has frames, index and manifest.

    frames.bin           (frame, channel, sample), little-endian: float32 in the set's unit, or the recorders' own
                         16-bit integers, to be divided by the gain of their frame
    index.safetensors    valid (frame, channel), start, record, position, gain (frame,)
    manifest.json        data set, framing, records, drops, sizes and checksums

`preparation` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from clocs_core.contracts.records import DropReport, Entry, Framing
from clocs_core.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCHEMA = 1  # raise it when framing or this layout changes the stored bytes: every set is then prepared again
CHUNK = 1 << 22  # bytes read at a time
FRAMES, INDEX, MANIFEST = "frames.bin", "index.safetensors", "manifest.json"


@attrs.frozen(eq=False)
class Prepared:
    """The frames of a data set, on disk. `records` are those that gave a frame, in the order of the scan."""

    folder: Path  # folder of this set, named by the fingerprint
    fingerprint: str
    dataset: str
    framing: Framing
    channels: tuple[str, ...]
    unit: str
    sampling_rates: Mapping[float, int]  # Hz of the source: number of recordings
    records: tuple[tuple[str, str], ...]  # (record, patient)
    drops: DropReport
    tolerated: DropReport  # faults in files that readers tolerated, counted by kind
    versions: Mapping[str, str]
    checksums: Mapping[str, tuple[tuple[int, str], ...]]  # file: (bytes, SHA-256) of its pieces, in order
    frames: NDArray[np.float32] | NDArray[np.int16]  # (frame, channel, sample), a read-only memory map
    valid: NDArray[np.bool_]  # (frame, channel): False where a lead-frame cannot be used and holds zeros
    start: NDArray[np.int64]  # (frame,): first source sample
    record: NDArray[np.int64]  # (frame,): index into `records`
    position: NDArray[np.int64]  # (frame,): number of the frame within its recording
    gain: NDArray[np.float64]  # (frame,): frames divided by it are in `unit`; all 1 where they are float32

    @property
    def frames_file(self) -> Path:
        """The file that `frames` maps, for callers that map it in another way."""
        return self.folder / FRAMES

    @property
    def frame_rate(self) -> float | None:
        """Sampling rate of a frame in Hz, or None where recordings differ in it."""
        if self.framing.sampling_rate is not None:
            return self.framing.sampling_rate
        if len(self.sampling_rates) != 1 or self.framing.frames_per_record is not None:
            return None
        (rate,) = self.sampling_rates
        return rate * self.framing.frame_samples / (self.framing.source_samples or self.framing.frame_samples)


def open_prepared(folder: Path, fingerprint: str) -> Prepared:
    """Open prepared frames after a cheap check of manifest and sizes. Raises DataError where they cannot be used."""
    here = folder / fingerprint
    try:
        held = json.loads((here / MANIFEST).read_text(encoding="utf-8"))
        if held["schema"] != SCHEMA:
            raise _damaged(here, f"its schema is {held['schema']!r}, expected {SCHEMA}")
        for name, fact in held["files"].items():
            if (size := (here / name).stat().st_size) != fact["size"]:
                raise _damaged(here, f"{name} has {size:,} bytes, expected {fact['size']:,}")
        index = load_file(here / INDEX)
        shape = tuple(held["shape"])
        return Prepared(
            folder=here,
            fingerprint=held["fingerprint"],
            dataset=held["dataset"],
            framing=Framing(**held["framing"]),
            channels=tuple(held["channels"]),
            unit=held["unit"],
            sampling_rates=dict(held["sampling_rates"]),
            records=tuple((record, patient) for record, patient in held["records"]),
            drops=read_drops(held["drops"]),
            tolerated=read_drops(held["tolerated"]),
            versions=held["versions"],
            checksums={
                name: tuple((size, digest) for size, digest in fact["pieces"]) for name, fact in held["files"].items()
            },
            frames=np.memmap(here / FRAMES, dtype=held["stored"], mode="r", shape=shape),
            valid=index["valid"].astype(np.bool_),
            start=index["start"],
            record=index["record"],
            position=index["position"],
            gain=index["gain"],
        )
    except FileNotFoundError as error:
        raise _damaged(here, f"{Path(error.filename).name} is missing") from error
    except DataError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, SafetensorError) as error:
        raise _damaged(here, repr(error)) from error


def verify(prepared: Prepared) -> None:
    """Read every byte again and compare checksums. Raises DataError naming the first file that differs."""
    for name, pieces in prepared.checksums.items():
        with open(prepared.folder / name, "rb") as file:
            for size, expected in pieces:
                found, left = sha256(), size
                while left and (chunk := file.read(min(left, CHUNK))):
                    found.update(chunk)
                    left -= len(chunk)
                if found.hexdigest() != expected:
                    problem = f"{name} has checksum {found.hexdigest()[:12]}, expected {expected[:12]}"
                    raise _damaged(prepared.folder, problem)


def fingerprint_of(
    entries: Sequence[Entry],
    options: Any,
    framing: Framing,
    *,
    dataset: str,
    revision: int,
    channels: tuple[str, ...],
) -> str:
    """Hash all that the frames depend on into 16 hexadecimal digits: files by name, size and time; never the labels."""
    facts = {
        "schema": SCHEMA,
        "dataset": dataset,
        "revision": revision,
        "options": [type(options).__qualname__, attrs.asdict(options) if attrs.has(type(options)) else options],
        "framing": attrs.asdict(framing),
        "channels": channels,
        "entries": [[entry.record, entry.patient, [_stamp(file) for file in entry.files]] for entry in entries],
    }
    return sha256(json.dumps(facts, sort_keys=True, default=_plain).encode()).hexdigest()[:16]


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return value.as_posix()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"an option of type {type(value).__name__} has no fingerprint: {value!r}")


def _stamp(file: Path) -> list[object]:
    try:
        found = file.stat()
    except OSError:  # deleted since the scan: its load will fail, and restoring it changes the fingerprint
        return [file.name, None, None]
    return [file.name, found.st_size, found.st_mtime_ns]


def read_drops(held: Mapping[str, Any]) -> DropReport:
    """Read a drop report from its form in a manifest."""
    return DropReport(dict(held["counts"]), {reason: tuple(names) for reason, names in held["first"].items()})


def _damaged(here: Path, found: str) -> DataError:
    return DataError(f"The prepared frames in {here} cannot be used: {found}. Delete that folder and prepare again.")
