"""Write synthetic BIDMC files in the published form: WFDB of format 16, commas after names, comments with brackets."""

from __future__ import annotations

from pathlib import Path

import numpy as np

SIGNALS = (("RESP,", "pm", 5000), ("PLETH,", "NU", 8000), ("V,", "mV", 9000), ("AVR,", "mV", 9000), ("II,", "mV", 9000))
NUMERICS = (("HR,", "bpm", 1), ("PULSE,", "bpm", 1), ("RESP,", "pm", 10), ("SpO2,", "%", 1))
RATE = 125


def write_wfdb(path: Path, rate: int, rows: list[np.ndarray], about: list[tuple[str, str, int]], comment: str) -> None:
    """Write physical values, one row per signal, as 16-bit counts; NaN becomes the count for a missing sample."""
    lines, counts = [f"{path.name} {len(rows)} {rate} {len(rows[0])}"], []
    for (name, unit, gain), values in zip(about, rows, strict=True):
        whole = np.where(np.isnan(values), -32768, np.round(np.nan_to_num(values) * gain)).astype("<i2")
        total = int(whole.astype(np.int64).sum()) % 65536
        lines.append(f"{path.name}.dat 16 {gain}(0)/{unit} 16 0 {whole[0]} {total} 0 {name}")
        counts.append(whole)
    path.with_suffix(".dat").write_bytes(np.stack(counts).T.tobytes())
    path.with_suffix(".hea").write_text("\n".join([*lines, *([f"# {comment}"] if comment else [])]) + "\n")


def vital_signs(number: int, seconds: int) -> list[np.ndarray]:
    """Make heart rate, pulse, breaths and saturation (second,); breathing is slow, then normal, then fast."""
    rng = np.random.default_rng(number)
    heart = 70 + number + np.round(rng.uniform(-3, 3, seconds + 1))
    breaths = np.repeat([10.0, 12.0, 20.0, 20.1], seconds // 4 + 1)[: seconds + 1]
    return [heart, heart + 1, breaths, 96 + np.round(rng.uniform(-2, 2, seconds + 1))]


def waveforms(number: int, seconds: int) -> list[np.ndarray]:
    """Make breathing, pulse and three leads (sample,), with one sample more than the seconds have."""
    rng = np.random.default_rng(number)
    time = np.arange(RATE * seconds + 1) / RATE
    phase = 2 * np.pi * (1 + number / 60) * time + rng.uniform(0, 6)
    shapes = [np.sin(phase / 5), 1 + np.sin(phase), np.sin(phase) ** 7, -(np.sin(phase) ** 7), np.sin(phase) ** 9]
    return [shape + 0.02 * rng.standard_normal(len(time)) for shape in shapes]


def write_bidmc(root: Path, recordings: int = 10, seconds: int = 60) -> Path:
    root.mkdir(exist_ok=True)
    for number in range(1, recordings + 1):
        sex = "FM"[number % 2]
        comment = f"<age>: {50 + number} <sex>: {sex} <location>: micu <source>: made up"
        write_wfdb(root / f"bidmc{number:02d}", RATE, waveforms(number, seconds), list(SIGNALS), comment)
        write_wfdb(root / f"bidmc{number:02d}n", 1, vital_signs(number, seconds), list(NUMERICS), "")
    return root
