"""Measure preparing frames from files: recordings per second and peak memory, beside a plain loop.

    python benchmarks/prepare.py --data $CLOCS_DATA --out benchmarks/results/prepare.json

`--data` holds the real recordings: physionet2020/, chapman/ and ptbxl/. The plain loops are what one writes without
this project: wfdb or pandas to read, numpy to cut, scipy to resample, one array at the end. Every pair runs in the same
process one after the other, three times, and the median ratio counts. Before any timing both ways must give the same
frames. Memory is the proportional set size of this process and its workers, added up every 50 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clocs_core.data.cohort import get_cohort
from clocs_core.data.prepared import Prepared
from clocs_core.files import write_atomically
from clocs_core.plan.data import resolve_data
from clocs_core.plugins.session import open_session

REPEATS = 3

Frames = NDArray[np.float32]  # (frame, channel, sample)


def main() -> int:
    """Compare both formats, measure the memory, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--wfdb-copies", type=int, default=1050, help="WFDB recordings, made of the real ones")
    parser.add_argument("--csv-copies", type=int, default=4200, help="CSV recordings, made of the real ones")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    found: dict[str, object] = {
        "command": "python benchmarks/prepare.py --data $CLOCS_DATA --out benchmarks/results/prepare.json",
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "workers": given.workers,
    }
    with tempfile.TemporaryDirectory() as scratch:
        found["wfdb"] = compare(
            "physionet2020", copy_wfdb(given.data, Path(scratch) / "wfdb", given.wfdb_copies), plain_wfdb, given.workers
        )
        found["csv"] = compare(
            "chapman", copy_csv(given.data, Path(scratch) / "csv", given.csv_copies), plain_csv, given.workers
        )
        found["memory"] = [memory(given.data, Path(scratch), count, given.workers) for count in (500, 5500)]
    print(json.dumps(found, indent=2))
    write_atomically(given.out, json.dumps(found, indent=2) + "\n")
    return 0


def prepare(name: str, root: Path, data_root: Path, workers: int) -> Prepared:
    """Prepare a data set as `clocs` does."""
    session = open_session()
    asked = resolve_data(session.catalogue, name, {"data": {"root": str(root), "data_root": str(data_root)}})
    framing = asked.dataset.offer.framing(1)
    return get_cohort(asked, framing, framing, workers, lambda done, total: None).evaluate


def compare(name: str, root: Path, plain: Callable[[Path], Frames], workers: int) -> dict[str, object]:
    """Check agreement, then time both: ours from files to frames on disk, theirs from files to one array on disk."""
    with tempfile.TemporaryDirectory() as folder:
        ours = prepare(name, root, Path(folder), workers)
        theirs = plain(root)
        same = np.asarray(ours.frames / ours.gain[:, None, None], dtype=np.float32)
        worst = float(np.abs(same - theirs).max())
        assert same.shape == theirs.shape, f"{same.shape} frames against {theirs.shape}"
        assert worst <= 1e-4 * float(np.abs(theirs).max()), f"frames differ by {worst}"
        recordings = len(ours.records)
    rows = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            prepare(name, root, Path(folder), workers)
            mine = time.perf_counter() - began
            began = time.perf_counter()
            np.save(Path(folder) / "frames.npy", plain(root))
            rows.append((mine, time.perf_counter() - began))
    ratios = [theirs / mine for mine, theirs in rows]
    return {
        "recordings": recordings,
        "largest_difference": worst,
        "ours_per_second": round(recordings / statistics.median(mine for mine, _ in rows), 1),
        "plain_per_second": round(recordings / statistics.median(theirs for _, theirs in rows), 1),
        "times_faster": round(statistics.median(ratios), 2),
        "spread": [round(min(ratios), 2), round(max(ratios), 2)],
    }


def plain_wfdb(root: Path) -> Frames:
    """Read WFDB recordings by a plain loop."""
    import wfdb

    frames = []
    for header in sorted(root.glob("*.hea")):
        signal = wfdb.rdrecord(str(header.with_suffix(""))).p_signal.T  # (channel, sample)
        for first in range(0, signal.shape[1] - 2499, 2500):
            frames.append(signal[:, first : first + 2500].astype(np.float32))
    return np.stack(frames)


def plain_csv(root: Path) -> Frames:
    """Read CSV recordings by a plain loop."""
    import pandas as pd
    from scipy.signal import resample

    frames = []
    for path in sorted((root / "ECGDataDenoised").glob("*.csv")):
        signal = pd.read_csv(path, header=None).to_numpy().T
        frames.append(resample(signal, 2500, axis=1).astype(np.float32))
    return np.stack(frames)


def copy_wfdb(data: Path, target: Path, copies: int) -> Path:
    """Copy the real recordings again and again under new names, which their headers must repeat."""
    target.mkdir(parents=True)
    headers = sorted((data / "physionet2020" / "Training_WFDB").glob("*.hea"))
    for number in range(copies):
        header = headers[number % len(headers)]
        new = f"A{number + 1:04d}"
        (target / f"{new}.hea").write_text(header.read_text().replace(header.stem, new))
        (target / f"{new}.mat").symlink_to(header.with_suffix(".mat").resolve())
    return target


def copy_csv(data: Path, target: Path, copies: int) -> Path:
    """Link the real recordings again and again under new names, with a table of their rhythms."""
    import csv

    (target / "ECGDataDenoised").mkdir(parents=True)
    files = sorted((data / "chapman" / "ECGDataDenoised").glob("*.csv"))
    with open(target / "Diagnostics.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["FileName", "Rhythm"])
        for number in range(copies):
            name = f"MUSE_20180101_000000_{number:05d}"
            (target / "ECGDataDenoised" / f"{name}.csv").symlink_to(files[number % len(files)].resolve())
            table.writerow([name, ("AFIB", "SB", "SR", "SVT")[number % 4]])
    return target


def memory(data: Path, scratch: Path, count: int, workers: int) -> dict[str, object]:
    """Measure the peak memory of a preparation in a process of its own, workers included."""
    root = scratch / f"ptbxl-{count}"
    root.mkdir()
    rows = (data / "ptbxl" / "ptbxl_database.csv").read_text().splitlines(keepends=True)
    (root / "ptbxl_database.csv").write_text("".join(rows[: count + 1]))
    shutil.copy(data / "ptbxl" / "scp_statements.csv", root)
    (root / "records100").symlink_to((data / "ptbxl" / "records100").resolve())
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; import prepare\n"
        "prepare.prepare('ptbxl', Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))"
    )
    with tempfile.TemporaryDirectory() as folder:
        here = str(Path(__file__).parent)
        began = time.perf_counter()
        child = subprocess.Popen([sys.executable, "-c", program, here, str(root), folder, str(workers)])
        peak = watch(child)
        assert child.returncode == 0
        seconds = time.perf_counter() - began
    return {
        "recordings": count,
        "peak_megabytes": round(peak / 1e6),
        "recordings_per_second": round(count / seconds, 1),
    }


def watch(child: subprocess.Popen[bytes]) -> int:
    """Find the largest sum of proportional set sizes of a process and its descendants, in bytes."""
    peak = 0
    while child.poll() is None:
        peak = max(peak, sum(pss(pid) for pid in family(child.pid)))
        time.sleep(0.05)
    return peak


def family(pid: int) -> list[int]:
    """List a process and all its descendants."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(member for child in children for member in family(int(child)))]


def pss(pid: int) -> int:
    """Read the proportional set size of a process in bytes; 0 where it has ended."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, ProcessLookupError):
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
