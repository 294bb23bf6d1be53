"""Read one recording: WFDB, or the MATLAB structure in which CPSC 2018 was published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clocs_core import DataError, Entry, Record, read_matlab_field, read_wfdb

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STRUCTURE_RATE = 500.0  # Hz; the structures do not state it
STRUCTURE_LARGEST = 1 << 24  # bytes: the longest recording, of 144 s, has 7 million


def read_recording(entry: Entry, leads: tuple[str, ...]) -> Record:
    """Read one recording, its leads named as in `leads`. Raise DataError if a lead is missing."""
    path = entry.files[0]
    if path.suffix == ".mat":
        samples = _read_structure(path, len(leads))
        return Record(entry.patient, entry.record, leads, "mV", STRUCTURE_RATE, samples, entry.label)
    read = read_wfdb(path)
    spelling = {name.lower(): name for name in leads}
    channels = tuple(spelling.get(name.lower(), name) for name in read.header.channels)
    if sorted(channels) != sorted(leads):
        raise DataError(f"{path} has the leads {', '.join(channels)}, expected {', '.join(leads)}.")
    rate = read.header.sampling_rate
    return Record(
        entry.patient, entry.record, channels, read.unit, rate, read.samples, entry.label, read.gain, read.tolerated
    )


def _read_structure(file: Path, leads: int) -> NDArray[np.float64]:
    """Read the field `data` of the structure `ECG`, in mV (lead, sample)."""
    import numpy as np

    samples = np.ascontiguousarray(read_matlab_field(file, "ECG", "data", STRUCTURE_LARGEST))
    if samples.ndim != 2 or samples.shape[0] != leads or samples.shape[1] == 0:
        raise DataError(f"{file} has ECG.data of shape {samples.shape}, expected ({leads}, samples).")
    return samples
