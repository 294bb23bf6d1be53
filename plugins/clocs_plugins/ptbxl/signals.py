"""Read one recording: WFDB, format 16, 12 leads, 10 s at 100 or 500 Hz."""

from __future__ import annotations

from clocs_core import DataError, Entry, Record, read_wfdb

SECONDS = 10.0
LEEWAY = 0.1  # s; most recordings at 100 Hz lack the last of their 1,000 samples
_SPELLING = {"AVR": "aVR", "AVL": "aVL", "AVF": "aVF"}


def read_recording(entry: Entry) -> Record:
    """Load one recording. Raise DataError or OSError if it is damaged.

    A recording that is not 10 s long is refused: stretched to a frame, its heart rate would be wrong.
    """
    found = read_wfdb(entry.files[0])
    rate, samples = found.header.sampling_rate, found.samples
    seconds = samples.shape[1] / rate
    if abs(seconds - SECONDS) > LEEWAY:
        raise DataError(
            f"PTB-XL: recording {entry.record} has {samples.shape[1]:,} samples at {rate:g} Hz, {seconds:.4g} s, "
            f"expected {SECONDS:g} s. Download {entry.files[-1].name} again."
        )
    channels = [_SPELLING.get(name.upper(), name) for name in found.header.channels]
    return Record(
        entry.patient, entry.record, channels, found.unit, rate, samples, entry.label, found.gain, found.tolerated
    )
