"""Measure the memory of whole runs: its peak, and what it is made of.

    python benchmarks/memory.py --out benchmarks/results/memory.json

Each run is a process of its own. It prepares simulated recordings, in other processes, audits them, trains one epoch
and evaluates. Its resident memory is read every 100 ms from the system, map by map: the file of frames, libraries,
other memory. A frame counts once it was read; the system takes such memory back where another program needs it. A run
may hold its frames and 1.5 GB (`--most`).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

from command_line import command_line

from clocs_core.data.prepared import FRAMES
from clocs_core.files import write_atomically

_MAP = re.compile(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)")  # the first line of a map, which ends with its file


def main() -> int:
    """Run at every size, and write what was found. The exit code is 1 where a run holds too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--patients", type=int, nargs="+", default=[2000])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--most", type=float, default=1500, help="megabytes beside the frames")
    given = parser.parse_args()
    rows = []
    for patients in given.patients:
        with tempfile.TemporaryDirectory() as scratch:
            rows.append(measure(patients, given.device, Path(scratch)))
    found = {
        "command": command_line(__file__),
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "device": given.device,
        "most_megabytes_beside_the_frames": given.most,
        "runs": rows,
    }
    print(json.dumps(found, indent=2))
    write_atomically(given.out, json.dumps(found, indent=2) + "\n")
    return int(any(row["megabytes_beside_the_frames"] > given.most for row in rows))


def measure(patients: int, device: str, scratch: Path) -> dict[str, float]:
    """Run one epoch on this many patients, and watch the memory."""
    data = ["--dataset", "demo", "-o", f"patients={patients}", "--data-root", str(scratch)]
    clocs = [sys.executable, "-m", "clocs_core"]
    run = [*clocs, "run", "--method", "cmsc", *data, "--epochs", "1", "--device", device, "--resamples", "200"]
    peak = watch([*run, "--out", str(scratch / "run")])
    frames = sum(file.stat().st_size for file in scratch.glob(f"prepared/demo/*/{FRAMES}"))
    megabytes = {name: round(size / 1e6) for name, size in peak.items()}
    return {
        "patients": patients,
        "frames_megabytes": round(frames / 1e6),
        "peak_megabytes": sum(megabytes.values()),
        "megabytes_beside_the_frames": sum(megabytes.values()) - round(frames / 1e6),
        **{f"peak_megabytes_of_{name}": size for name, size in megabytes.items()},
    }


def watch(command: list[str]) -> dict[str, int]:
    """Run a command, and return the bytes of each kind at the moment at which it held most."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most: dict[str, int] = {}
    while child.poll() is None:
        held = resident(child.pid)
        if sum(held.values()) > sum(most.values()):
            most = held
        time.sleep(0.1)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    return most


def resident(pid: int) -> dict[str, int]:
    """Return the resident bytes of a process by kind: its frames, other files, and all else. Empty once it ended."""
    held, kind = {"frames": 0, "libraries": 0, "other_memory": 0}, ""
    try:
        text = Path(f"/proc/{pid}/smaps").read_text()
    except (OSError, ProcessLookupError):
        return {}
    for line in text.splitlines():
        if begin := _MAP.fullmatch(line):
            name = begin[1]
            kind = "frames" if FRAMES in name else "libraries" if name.startswith("/") else "other_memory"
        elif line.startswith("Rss:"):
            held[kind] += int(line.split()[1]) * 1024
    return held


if __name__ == "__main__":
    sys.exit(main())
