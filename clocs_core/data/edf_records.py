"""Find the records of an EDF or BDF file: what its header says of them is checked against the size of the file.

A record holds some samples of each channel, one channel after the other; all records of a file are of one size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import BinaryIO, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.errors import DataError

Number = TypeVar("Number", int, float)

PIECE = 1 << 24  # bytes of records that are read at once

_SAMPLES_OF = {b"0": 2, b"\xffBIOSEMI": 3}  # bytes of a sample, by the first field of the file
_WITHOUT_CONTROLS = bytes(32 if byte < 32 else byte for byte in range(256))  # some devices fill fields with zeros
_ANNOTATIONS = ("EDF Annotations", "BDF Annotations")


@attrs.frozen
class Records:
    """How the records of a file lie, in numbers that fit its size, and remarks for the user."""

    header: bytes  # of the whole file, without control characters
    encoding: str  # of letters beyond ASCII: EDF allows none, and devices write names of patients and µV
    bytes_each: int  # of a sample
    samples: tuple[int, ...]  # of each channel in a record, with channels of annotations
    count: int
    seconds: float  # of a record
    notes: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes of a record."""
        return sum(self.samples) * self.bytes_each

    @property
    def is_plus(self) -> bool:
        """Whether the file is EDF+ or BDF+."""
        return self.field(192, 236).startswith(("EDF+", "BDF+"))

    def field(self, start: int, stop: int) -> str:
        """Return a field of the header, without the spaces that fill it."""
        return self.header[start:stop].decode(self.encoding, errors="replace").strip()


def find_records(path: Path, stream: BinaryIO) -> Records:
    """Return how the records lie. Raises DataError for a file that is no EDF or BDF, or ends before its last record.

    Bytes behind the last record are no error: files of CHB-MIT and of some recorders have them.
    """
    start, held = stream.read(256), stream.seek(0, 2)
    bytes_each = _SAMPLES_OF.get(start[:8].strip(b"\0 "))
    if len(start) < 256 or bytes_each is None:
        raise DataError(f"{path} does not begin as EDF and BDF files do; it has {held:,} bytes.")
    head, count, channels = (_number(path, field, int) for field in (start[184:192], start[236:244], start[252:256]))
    seconds = _number(path, start[244:252], float)
    if channels < 0 or head != 256 * (channels + 1):
        raise DataError(f"{path} cannot be read as EDF: its header has {head:,} bytes, for {channels:,} channels.")
    stream.seek(0)
    header = stream.read(head).translate(_WITHOUT_CONTROLS)
    first = 256 + 216 * channels
    samples = tuple(_number(path, header[place : place + 8], int) for place in range(first, first + 8 * channels, 8))
    if not samples or min(samples) < 0 or not sum(samples) or not 0 < seconds < math.inf:
        raise DataError(f"{path} holds no signal: its records have {sum(samples):,} samples in {seconds:g} s.")
    size = sum(samples) * bytes_each
    notes: tuple[str, ...] = ()
    if count == -1:  # EDF says so while a recording goes on
        count = (held - head) // size
        notes = ("The header does not say how many records there are; all that the file holds are read.",)
    elif held >= head + (count + 1) * size:
        notes = ("Records behind the last one that the header counts are not read.",)
    if count < 1 or head + count * size > held:
        raise DataError(
            f"{path} cannot be read as EDF: its header describes {count:,} records of {sum(samples):,} samples, "
            f"which is more than {held:,} bytes hold; the recording may have been cut short."
        )
    return Records(header, _encoding(header), bytes_each, samples, count, seconds, notes)


def read_records(path: Path, stream: BinaryIO, records: Records, first: int, last: int) -> bytes:
    """Return the bytes of records from `first` up to `last`. Raises DataError where the file has become shorter."""
    stream.seek(len(records.header) + first * records.size)
    wanted = (last - first) * records.size
    raw = stream.read(wanted)
    if len(raw) < wanted:
        raise DataError(f"{path} ends before its record {last:,}.")
    return raw


def begins_of_records(path: Path, stream: BinaryIO, records: Records) -> NDArray[np.float64] | None:
    """Return the time at which each record begins, in s after the first (record,); None for a continuous file.

    A discontinuous one (EDF+D, BDF+D) says it in the first words of its first channel of annotations, so all of the
    file is read: a day of three channels at 256 Hz takes 0.4 s.
    """
    if not records.field(192, 236).startswith(("EDF+D", "BDF+D")):
        return None
    labels = [records.field(start, start + 16) for start in range(256, 256 + 16 * len(records.samples), 16)]
    channel = next((place for place, label in enumerate(labels) if label in _ANNOTATIONS), None)
    if channel is None:
        raise DataError(f"{path} is discontinuous (EDF+D), and has no channel that says when its records begin.")
    start, stop = (records.bytes_each * sum(records.samples[:place]) for place in (channel, channel + 1))
    times: list[Decimal] = []
    step = max(1, PIECE // records.size)
    for first in range(0, records.count, step):
        raw = read_records(path, stream, records, first, min(first + step, records.count))
        for record in range(0, len(raw), records.size):
            said = raw[record + start : record + stop].partition(b"\x14")[0]
            try:
                times.append(Decimal(said.decode("ascii")))
            except (InvalidOperation, UnicodeDecodeError):
                raise DataError(
                    f"{path} is discontinuous, and its record {len(times) + 1:,} does not say when it begins."
                ) from None
    return np.array([float(time - times[0]) for time in times])


def _encoding(header: bytes) -> str:
    try:
        header[8:].decode("utf-8")  # the first field of a BDF file is no text
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _number(path: Path, field: bytes, kind: Callable[[str], Number]) -> Number:
    text = field.translate(_WITHOUT_CONTROLS).decode("latin-1").strip()
    try:
        return kind(text)
    except ValueError:
        raise DataError(f"{path} cannot be read as EDF: its header says {text!r} where a number belongs.") from None
