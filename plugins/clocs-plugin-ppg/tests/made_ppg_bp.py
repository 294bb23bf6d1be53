"""Write synthetic PPG-BP files in the published form: a workbook with a title row, and numbers followed by tabs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

STAGES = ("Normal", "Prehypertension", "Stage 1 hypertension", "Stage 2 hypertension")
COLUMNS = ("Num.", "subject_ID", "Sex(M/F)", "Age(year)", "Heart Rate(b/m)", "Hypertension", "Diabetes")


def row(number: int) -> tuple[object, ...]:
    """Return the row of a subject: its stage follows from its number, and every third has diabetes."""
    diabetes = "Type 2 Diabetes" if number % 3 == 0 else None
    return (number, number, "Female", 40 + number, 70, STAGES[number % 4], diabetes)


def wave(number: int, segment: int, samples: int = 2100) -> np.ndarray:
    """Make the counts of a pulse wave, as integers; subjects differ in rate and shape."""
    rng = np.random.default_rng((number, segment))
    time = np.arange(samples) / 1000
    beat = 2 * np.pi * (1 + 0.05 * number) * time + rng.uniform(0, 6)
    pulse = np.sin(beat) + 0.1 * number * np.sin(2 * beat) + 0.02 * rng.standard_normal(samples)
    return np.round(2000 + 300 * pulse)


def write_text(path: Path, counts: np.ndarray) -> None:
    path.write_text("".join(f"{count}\t" for count in counts.tolist()), encoding="ascii")


def write_sheet(path: Path, rows: list[tuple[object, ...]]) -> None:
    from openpyxl import Workbook

    book = Workbook()
    book.active.append(("Cardiovascular Dataset Information File", None, None, None, None, "Hospital Record"))
    for one in (COLUMNS, *rows):
        book.active.append(one)
    book.save(path)


def write_ppg_bp(root: Path, subjects: int = 12) -> Path:
    (root / "0_subject").mkdir(parents=True)
    write_sheet(root / "PPG-BP dataset.xlsx", [row(number) for number in range(1, subjects + 1)])
    for number in range(1, subjects + 1):
        for segment in (1, 2, 3):
            write_text(root / "0_subject" / f"{number}_{segment}.txt", wave(number, segment))
    return root
