"""Measure what it costs to compare prepared frames with their checksums whenever they are opened.

    python benchmarks/verification.py --out benchmarks/results/verification.json

The sets have the sizes of Chapman, 10,646 recordings, and of the 5,695 recordings of PTB-XL that the other pages use:
12 leads, float32, two frames of 2,500 samples for pre-training and one for the evaluation. Each is opened seven times,
with and without the comparison, after it was read once; the fastest counts, since other programs can only slow it down.
Processor time is that of all threads together. The speeds of checksums are measured on 256 MB in memory, in one thread.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shlex
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from datetime import date
from functools import cache, partial
from pathlib import Path
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from clocs_core.contracts.records import Entry, Framing, Record
from clocs_core.data import prepared
from clocs_core.data.preparation import prepare
from clocs_core.data.recipe import Recipe
from clocs_core.files import write_atomically

REPEATS = 7
LEADS = tuple(f"L{number}" for number in range(12))


def main() -> int:
    """Measure both sets and all checksums, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--recordings", type=int, nargs="+", default=[10_646, 5_695])
    parser.add_argument("--megabytes", type=int, default=256, help="size of what the checksums are measured on")
    given = parser.parse_args()
    found = {
        "command": shlex.join(["python", *sys.argv]),
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "load_average": round(os.getloadavg()[0], 1),  # above the number of cores, other programs slowed this down
        "gigabytes_per_second": speeds(given.megabytes << 20),
        "sets": [measure(recordings) for recordings in given.recordings],
    }
    print(json.dumps(found, indent=2))
    write_atomically(given.out, json.dumps(found, indent=2) + "\n")
    return 0


def speeds(size: int) -> dict[str, float]:
    """Measure checksums of the standard library on 16-bit samples in memory."""
    samples = np.random.default_rng(0).integers(-3000, 3000, size=size // 2, dtype=np.int16).data.cast("B")
    ways: dict[str, Callable[[memoryview], object]] = {
        "crc32": zlib.crc32,
        "adler32": zlib.adler32,
        "sha256": hashlib.sha256,
        "sha1": hashlib.sha1,
        "blake2b": hashlib.blake2b,
    }
    return {name: round(size / 1e9 / fastest(partial(way, samples))[0], 2) for name, way in ways.items()}


def measure(recordings: int) -> dict[str, object]:
    """Prepare both sets of frames of this many recordings, and open them with and without the comparison."""
    entries = [Entry(f"r{number:05d}", f"p{number:05d}") for number in range(recordings)]
    with tempfile.TemporaryDirectory() as folder:
        sets = [
            prepare(
                Recipe(dataset="noise", entries=entries, load=load, options=samples, framing=Framing(), channels=LEADS),
                Path(folder),
                1,
                lambda done, total: None,
            )
            for samples in (5000, 2500)
        ]

        def open_both() -> None:
            for one in sets:
                prepared.open_prepared(Path(folder), one.fingerprint)

        checked = fastest(open_both)
        with mock.patch.object(prepared, "find_damage", return_value=None):
            unchecked = fastest(open_both)
        size = sum(one.frames_file.stat().st_size for one in sets)
    return {
        "recordings": recordings,
        "gigabytes": round(size / 1e9, 2),
        "seconds_to_open": round(checked[0], 3),
        "seconds_without_comparison": round(unchecked[0], 3),
        "processor_seconds": round(checked[1], 3),
    }


def load(entry: Entry, samples: int) -> Record:
    """Return noise with an offset of its own."""
    return Record(entry.patient, entry.record, LEADS, "mV", 500.0, noise(samples) + np.float32(entry.record[1:]))


@cache
def noise(samples: int) -> NDArray[np.float32]:
    """Return noise (lead, sample), once per process."""
    return np.random.default_rng(0).standard_normal((len(LEADS), samples), dtype=np.float32)


def fastest(action: Callable[[], object]) -> tuple[float, float]:
    """Return the shortest time of an action, and the least processor time, after one that is not counted."""
    action()
    times, busy = [], []
    for _ in range(REPEATS):
        start, before = time.perf_counter(), time.process_time()
        action()
        times.append(time.perf_counter() - start)
        busy.append(time.process_time() - before)
    return min(times), min(busy)


if __name__ == "__main__":
    raise SystemExit(main())
