"""Fake patients and their recordings. Worker processes can import them; nothing here imports torch."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import attrs
import numpy as np

from clocs_core.contracts.records import Entry, Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clocs_core import Recordings

CHANNELS = ("L0", "L1", "L2")
RATE = 100.0  # Hz
SAMPLES = 800  # of a recording in memory


def fake_entries(count: int = 12, visits: int = 2, classes: int = 3) -> list[Entry]:
    """List recordings, `visits` of each patient in turn; the class belongs to the patient."""
    places = (divmod(number, visits) for number in range(count))
    return [Entry(f"r{patient}-{visit}", f"p{patient}", patient % classes) for patient, visit in places]


# ------------------------------------------------------------------------------------------------------- noise


@attrs.frozen
class FakeOptions:
    """log: a file that gets a line per load; samples: 0 makes lengths differ by record; pause: seconds per load.

    flat: the record whose channel L1 is flat in its first 50 samples.
    """

    log: Path | None = None
    samples: int = 0
    channels: int = 2
    pause: float = 0.0
    flat: str = ""


def fake_load(entry: Entry, options: FakeOptions) -> Record:
    """Return noise around a level that is the class, so that a classifier can learn it.

    It depends only on the entry. Records whose names begin with a capital letter have a peculiarity.
    """
    if options.log is not None:
        with open(options.log, "a", encoding="utf-8") as log:
            log.write(f"{entry.record} {os.getpid()}\n")
    time.sleep(options.pause)
    if entry.record.startswith("Broken"):
        raise EOFError("the file ends in the middle of a sample")
    if entry.record.startswith("Memory"):
        raise MemoryError
    if entry.record.startswith("Killed"):
        os._exit(9)
    seed = crc32(entry.record.encode())
    level = entry.label if isinstance(entry.label, int) else 0
    samples = np.random.default_rng(seed).normal(level, 1.0, (options.channels, options.samples or 10 + seed % 25))
    names, unit = CHANNELS[: options.channels], "mV"
    if entry.record == options.flat:
        samples[1, :50] = 3.0
    if entry.record.startswith("Swapped"):
        samples, names = samples[::-1], names[::-1]
    if entry.record.startswith("Short"):
        samples = samples[:, :3]
    if entry.record.startswith("Lost"):
        samples, names = samples[1:], names[1:]
    if entry.record.startswith("Micro"):
        samples, unit = np.round(samples * 1000), "µV"
    if entry.record.startswith("Pressure"):
        unit = "mmHg"
    if entry.record.startswith("Gap"):
        samples[0, 2] = np.nan
    if entry.record.startswith("Flat"):
        samples[:] = 1.0
    return Record(entry.patient, entry.record, names, unit, RATE, samples, entry.label)


def load_without_torch(entry: Entry, options: FakeOptions) -> Record:
    if "torch" in sys.modules and multiprocessing.parent_process() is not None:  # other tests import it in the parent
        raise RuntimeError("a worker imported torch")
    return fake_load(entry, options)


def load_counts(entry: Entry, options: FakeOptions) -> Record:
    """Return 16-bit integers with a gain; "Coarse" has another gain, "Real" has floats."""
    counts = np.round(fake_load(entry, options).samples * 200).astype(np.int16)
    names = CHANNELS[: options.channels]
    if entry.record.startswith("Real"):
        return Record(entry.patient, entry.record, names, "mV", RATE, counts / 200.0)
    if entry.record.startswith("Hole"):
        counts[0, 3] = -32768
    gain = 50.0 if entry.record.startswith("Coarse") else 200.0
    odd = ("The gain is coarse.",) if entry.record.startswith("Coarse") else ()
    return Record(entry.patient, entry.record, names, "mV", RATE, counts, gain=gain, tolerated=odd)


def load_file_of_numbers(entry: Entry, options: FakeOptions) -> Record:
    """Read one lead, written as text in the entry's only file."""
    return Record(entry.patient, entry.record, ("I",), "mV", RATE, np.loadtxt(entry.files[0])[None])


# ------------------------------------------------------------------------------------------------------- waves


def fake_wave(kind: int, samples: int) -> NDArray[np.float64]:
    """Return a slow wave, or a fast one for the second kind: a class that survives normalisation."""
    wave: NDArray[np.float64] = np.sin(2 * np.pi * (2 + 3 * kind) * np.arange(samples) / RATE)
    return wave


def recordings_in_memory(people: int = 16, scale: float = 1.0, unit: str = "") -> Recordings:
    """Return two recordings of each patient, with slow or fast waves, as a user of the Python API makes them."""
    import clocs_core as clocs

    rng, entries = np.random.default_rng(0), fake_entries(2 * people, classes=2)
    kinds = [int(entry.patient[1:]) % 2 for entry in entries]
    return clocs.Recordings(
        np.stack([fake_wave(kind, SAMPLES)[None] + 0.3 * rng.normal(size=(1, SAMPLES)) for kind in kinds]) * scale,
        patients=np.repeat(np.arange(people), 2),
        labels=np.array(["slow", "fast"])[kinds],
        sampling_rate=RATE,
        channels=["II"],
        unit=unit,
    )
