"""Open frames prepared on disk, by memory map: `<folder>/<fingerprint>/` has frames, index and manifest.

    frames.bin           (frame, channel, sample), little-endian: float32 in the set's unit, or the recorders' own
                         16-bit integers, to be divided by the gain of their frame
    index.safetensors    valid (frame, channel), start, record, position, gain (frame,)
    manifest.json        data set, framing, records, drops, sizes and checksums, and the checksum of all this

`preparation` writes them. Whenever a set is opened, every byte of it is compared with its checksum.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from clocs_core.contracts.records import SAME_LENGTH, DropReport, Framing
from clocs_core.data.checksums import Piece, find_damage
from clocs_core.errors import ClocsWarning, DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCHEMA = 2  # raise it when the manifest changes: sets are then prepared again in their folder
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
    checksums: Mapping[str, tuple[Piece, ...]]  # the pieces of each file, in order
    frames: NDArray[np.float32] | NDArray[np.int16]  # (frame, channel, sample), a read-only memory map
    valid: NDArray[np.bool_]  # (frame, channel): False where a lead-frame cannot be used and holds zeros
    start: NDArray[np.int64]  # (frame,): first source sample
    record: NDArray[np.int64]  # (frame,): index into `records`
    position: NDArray[np.int64]  # (frame,): number of the frame within its recording
    gain: NDArray[np.float64]  # (frame,): frames divided by it are in `unit`; all 1 where they are float32
    record_seconds: Mapping[float, int] = attrs.field(factory=dict)  # s, to four digits: recordings

    @property
    def frames_file(self) -> Path:
        """The file that `frames` maps."""
        return self.folder / FRAMES

    @property
    def contents(self) -> str:
        """The checksum of all frames: that of other signals differs, that of a copy on another machine does not."""
        return sha256("".join(piece.sha256 for piece in self.checksums[FRAMES]).encode()).hexdigest()[:16]

    @property
    def frame_rate(self) -> float | None:
        """Sampling rate of a frame in Hz, or None where recordings differ in it."""
        if self.framing.sampling_rate is not None:
            return self.framing.sampling_rate
        if len(self.sampling_rates) != 1 or self.framing.frames_per_record is not None:
            return None
        (rate,) = self.sampling_rates
        return rate * self.framing.frame_samples / (self.framing.source_samples or self.framing.frame_samples)

    @property
    def stretched_rate(self) -> float | None:
        """Samples per second of frames that whole recordings were stretched to; None where those differ in length."""
        frames = self.framing.frames_per_record
        if frames is None or not self.record_seconds:
            return None
        usual = max(self.record_seconds, key=lambda seconds: self.record_seconds[seconds])
        alike = all(abs(seconds - usual) <= SAME_LENGTH * usual for seconds in self.record_seconds)
        return frames * self.framing.frame_samples / usual if alike else None

    @property
    def uneven(self) -> str:
        """Return a sentence where frames differ in length, since recordings differ in their rate; else ""."""
        ways = (self.framing.sampling_rate, self.framing.frames_per_record)
        if len(self.sampling_rates) < 2 or ways != (None, None):
            return ""
        rates = ", ".join(f"{count:,} at {rate:g} Hz" for rate, count in self.sampling_rates.items())
        usual = max(self.sampling_rates, key=lambda rate: self.sampling_rates[rate])
        return (
            f"Recordings differ in their sampling rate ({rates}), so that their frames differ in length. Resample them "
            f"to one rate: `pretrain_framing.sampling_rate={usual:g}` and `evaluate_framing.sampling_rate={usual:g}`."
        )

    def let_go(self) -> None:
        """Give the memory of all frames that were read back to the system. They are read again where they are used."""
        if isinstance(self.frames.base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):  # Windows has no such call
            self.frames.base.madvise(mmap.MADV_DONTNEED)


class Damaged(DataError):
    """Prepared frames that cannot be used. `reason` is the sentence without advice."""

    def __init__(self, here: Path, found: str) -> None:
        self.reason = f"The prepared frames in {here} cannot be used: {found}"
        super().__init__(f"{self.reason}. Delete that folder and prepare again.")


class PreparedAgain(ClocsWarning):
    """Damaged frames are prepared again. `problem` says what is wrong with them."""

    def __init__(self, problem: Damaged) -> None:
        self.problem = problem
        super().__init__(f"{problem.reason}; they are prepared again.")


def open_prepared(folder: Path, fingerprint: str) -> Prepared:
    """Open prepared frames after all checksums have been compared. Raises Damaged where they cannot be used."""
    here = folder / fingerprint
    try:
        held = json.loads((here / MANIFEST).read_text(encoding="utf-8"))
        if held["schema"] != SCHEMA:
            raise Damaged(here, f"its schema is {held['schema']!r}, expected {SCHEMA}")
        if held.pop("sha256") != seal(held) or held["fingerprint"] != fingerprint:
            raise Damaged(here, f"{MANIFEST} has been changed, or is that of another set")
        checksums = {name: tuple(Piece(*piece) for piece in pieces) for name, pieces in held["files"].items()}
        for name, pieces in checksums.items():
            size, expected = (here / name).stat().st_size, sum(piece.size for piece in pieces)
            if size != expected:
                raise Damaged(here, f"{name} has {size:,} bytes, expected {expected:,}")
            if damage := find_damage(here / name, pieces):
                raise Damaged(here, damage)
        index = load((here / INDEX).read_bytes())
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
            checksums=checksums,
            frames=_map(here / FRAMES, held["stored"], shape),
            valid=index["valid"].astype(np.bool_),
            start=index["start"],
            record=index["record"],
            position=index["position"],
            gain=index["gain"],
            record_seconds=dict(held.get("record_seconds", ())),  # earlier versions did not have it
        )
    except FileNotFoundError as error:
        raise Damaged(here, f"{Path(error.filename).name} is missing") from error
    except DataError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, SafetensorError) as error:
        raise Damaged(here, repr(error)) from error


def _map(file: Path, stored: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Map frames that nobody can write to: neither the array nor, by a tensor that shares its memory, the file."""
    frames = np.memmap(file, dtype=stored, mode="c", shape=shape)
    frames.flags.writeable = False
    return frames


def verify(prepared: Prepared) -> None:
    """Read every byte again and compare SHA-256. Raises Damaged naming the first file that differs."""
    for name, pieces in prepared.checksums.items():
        if damage := find_damage(prepared.folder / name, pieces, thorough=True):
            raise Damaged(prepared.folder, damage)


def seal(manifest: Mapping[str, Any]) -> str:
    """Return the checksum of all that a manifest says."""
    return sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def read_drops(held: Mapping[str, Any]) -> DropReport:
    """Read a drop report from its form in a manifest."""
    first = {reason: tuple(names) for reason, names in held["first"].items()}
    return DropReport(dict(held["counts"]), first, dict(held.get("why", {})))  # earlier versions did not have it
