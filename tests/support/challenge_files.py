"""WFDB recordings as the challenges publish them, for the tests of headers and of signals."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")


def checksum(channel: NDArray[np.int16]) -> int:
    """The 16-bit sum of a channel, signed, in a loop."""
    total = 0
    for sample in channel:
        total = (total + int(sample)) & 0xFFFF
    return total - 0x10000 if total >= 0x8000 else total


def write(
    folder: Path,
    samples: ArrayLike,
    name: str = "A0001",
    ending: str = ".mat",
    gain: str | Sequence[str] = "1000/mV",
    record_line: str | None = None,
    comments: Sequence[str] = ("#Dx: AF",),
) -> Path:
    """Write a recording as the challenges do: time-major int16 after the 24 bytes of a MATLAB 4 matrix."""
    samples = np.asarray(samples, dtype="<i2")
    channels, length = samples.shape
    start = struct.pack("<5i", 30, channels, length, 0, 4) + b"val\0" if ending == ".mat" else b""
    (folder / f"{name}{ending}").write_bytes(start + samples.T.tobytes())
    gains = [gain] * channels if isinstance(gain, str) else gain
    form = "16+24" if ending == ".mat" else "16"
    lines = [record_line or f"{name} {channels} 500 {length}"]
    for i, channel in enumerate(samples):
        lead = LEADS[i % 12]
        lines.append(f"{name}{ending} {form} {gains[i]} 16 0 {channel[0]} {checksum(channel)} 0 {lead}")
    (folder / f"{name}.hea").write_text("\n".join([*lines, *comments]) + "\n", encoding="utf-8")
    return folder / f"{name}.hea"


def counts(channels: int = 12, length: int = 50, seed: int = 0) -> NDArray[np.int16]:
    return np.random.default_rng(seed).integers(-3000, 3000, (channels, length)).astype(np.int16)


def edit(path: Path, old: str, new: str) -> Path:
    """Replace text in a header."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path
