"""Fake recordings for tests of the preparation: worker processes can import them, and each load is logged."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from pathlib import Path
from zlib import crc32

import attrs
import numpy as np

from clocs_core.contracts.records import Entry, Record


@attrs.frozen
class FakeOptions:
    """log: a file that gets a line per load; samples: 0 makes lengths differ by record; pause: seconds per load."""

    log: Path | None = None
    samples: int = 0
    channels: int = 2
    pause: float = 0.0


def fake_entries(count: int) -> list[Entry]:
    return [Entry(f"r{i:04d}", f"p{i // 2:03d}", i % 3) for i in range(count)]


def fake_load(entry: Entry, options: FakeOptions) -> Record:
    """Return noise that depends only on the record's name; names with a capital letter have a peculiarity."""
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
    noise = np.random.default_rng(seed)
    samples = noise.normal(size=(options.channels, options.samples or 10 + seed % 25))
    names = tuple(f"L{i}" for i in range(options.channels))
    unit = "mV"
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
    return Record(entry.patient, entry.record, names, unit, 100.0, samples)


def load_without_torch(entry: Entry, options: FakeOptions) -> Record:
    if "torch" in sys.modules and multiprocessing.parent_process() is not None:  # other tests import it in the parent
        raise RuntimeError("a worker imported torch")
    return fake_load(entry, options)


def load_counts(entry: Entry, options: FakeOptions) -> Record:
    """Return 16-bit integers with a gain; "Coarse" has another gain, "Real" has floats."""
    counts = np.round(fake_load(entry, options).samples * 200).astype(np.int16)
    names = tuple(f"L{i}" for i in range(options.channels))
    if entry.record.startswith("Real"):
        return Record(entry.patient, entry.record, names, "mV", 100.0, counts / 200.0)
    if entry.record.startswith("Hole"):
        counts[0, 3] = -32768
    gain = 50.0 if entry.record.startswith("Coarse") else 200.0
    odd = ("The gain is coarse.",) if entry.record.startswith("Coarse") else ()
    return Record(entry.patient, entry.record, names, "mV", 100.0, counts, gain=gain, tolerated=odd)


def load_file_of_numbers(entry: Entry, options: FakeOptions) -> Record:
    """Read one lead, written as text in the entry's only file."""
    return Record(entry.patient, entry.record, ("I",), "mV", 100.0, np.loadtxt(entry.files[0])[None])
