"""Describe this machine without its name: GPUs, processor, cores, system; and how many runs of a job suit it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections import Counter
from pathlib import Path

_GPUS = ("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")  # torch would take seconds, and memory of the GPU
_WHO_KNOWS = {"Linux": ("lscpu",), "Darwin": ("sysctl", "machdep.cpu.brand_string")}


def describe_machine() -> str:
    """Describe GPUs, the processor, its cores and the system, as "NVIDIA H200, Neoverse-N1, 2 cores, Linux aarch64"."""
    model = cpu_model(_ask(_WHO_KNOWS.get(platform.system(), ())))
    about = (gpu_models(_ask(_GPUS)), model, f"{os.cpu_count()} cores", f"{platform.system()} {platform.machine()}")
    return ", ".join(filter(None, about))


def runs_per_job(device: str, driver: Path = Path("/proc/driver/nvidia")) -> int:
    """Return how many runs a job makes where nobody says: the five seeds of a cell on a GPU, which they share well.

    device: `cuda`, `cpu` or `auto`. driver: a folder that is there where an NVIDIA GPU is; torch would take seconds to
    say so.
    """
    return 5 if device == "cuda" or (device == "auto" and driver.exists()) else 1


def cpu_model(said: str) -> str:
    """Find the processor in the output of `lscpu` or `sysctl`; "" where it is not there."""
    found = re.search(r"^(?:Model name|machdep\.cpu\.brand_string):[ \t]*(\S.*?)[ \t]*$", said, re.MULTILINE)
    return found[1] if found and found[1] != "-" else ""


def gpu_models(said: str) -> str:
    """Name the GPUs in the output of nvidia-smi, a line for each, as "4 x NVIDIA H200"; "" where there is none."""
    counts = Counter(filter(None, map(str.strip, said.splitlines())))
    return ", ".join(name if count == 1 else f"{count} x {name}" for name, count in counts.items())


def _ask(command: tuple[str, ...]) -> str:
    if not command:
        return ""
    try:  # in English: lscpu speaks the language of its user
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout
