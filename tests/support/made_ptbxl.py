"""PTB-XL as PhysioNet has it, of noise: a table, and a recording for each of its rows."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

IN_FILES = ("I", "II", "III", "AVR", "AVL", "AVF", "V1", "V2", "V3", "V4", "V5", "V6")
COLUMNS = ("ecg_id", "patient_id", "age", "report", "scp_codes", "strat_fold", "filename_lr", "filename_hr")


def row(number: int, codes: str = "{'SR': 0.0}", patient: str = "", fold: str = "1", **others: str) -> dict[str, str]:
    """Make a row of the table."""
    stem = f"{number // 1000:02d}000/{number:05d}"
    return {
        "ecg_id": str(number),
        "patient_id": patient or f"{1000 + number}.0",
        "age": "61.0",
        "report": 'trace only, "äöü"\nsecond line',
        "scp_codes": codes,
        "strat_fold": fold,
        "filename_lr": f"records100/{stem}_lr",
        "filename_hr": f"records500/{stem}_hr",
        **others,
    }


def write_record(path: Path, rate: int, samples: int | None = None) -> NDArray[np.int16]:
    """A recording as PhysioNet has it; returns its counts (channel, sample)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(list(path.name.encode()))
    counts = rng.integers(-900, 900, (12, samples or 10 * rate)).astype("<i2")
    path.with_suffix(".dat").write_bytes(counts.T.tobytes())
    lines = [f"{path.name} 12 {rate} {counts.shape[1]}"]
    for lead, values in zip(IN_FILES, counts, strict=True):
        total = int(values.astype(np.int64).sum()) % 65536
        lines.append(f"{path.name}.dat 16 1000.0(0)/mV 16 0 {values[0]} {total} 0 {lead}")
    path.with_suffix(".hea").write_text("\n".join(lines) + "\n")
    return counts


def write_set(
    root: Path, rows: list[dict[str, str]], rates: tuple[int, ...] = (100,), absent: tuple[str, ...] = ()
) -> Path:
    """Write a folder of these rows, with a recording for each; returns it."""
    root.mkdir(parents=True, exist_ok=True)
    with open(root / "ptbxl_database.csv", "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(rows)
    for one in rows:
        for rate in rates:
            name = one["filename_lr" if rate == 100 else "filename_hr"]
            if name.startswith("records") and one["ecg_id"] not in absent:
                write_record(root / name, rate)
    return root
