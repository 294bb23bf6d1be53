"""Check whether Triton kernels run on a device. A plugin with such kernels asks here and needs a fallback."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sysconfig
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from clocs_core.errors import ClocsWarning

if TYPE_CHECKING:
    import torch

OLDEST = (8, 0)
"""Oldest compute capability whose tensor cores support bfloat16 and TF32: Ampere."""


def can_run_triton(device: torch.device) -> bool:
    """Return whether Triton kernels run on a device. Warn once if only installable software is missing."""
    problem = missing_for_triton(device)
    if problem and _is_young_enough(device):
        _warn_once(problem)
    return not problem


def missing_for_triton(device: torch.device) -> str:
    """Return what Triton kernels lack on a device, as the end of a sentence; empty if nothing.

    With TRITON_INTERPRET=1 only Triton is needed: the kernels then run as NumPy, anywhere, very slowly.
    """
    if os.environ.get("TRITON_INTERPRET") == "1":
        return _missing_triton()
    if not _is_nvidia(device):
        return f"needs an NVIDIA GPU, and the data is on {device.type}"
    if not _is_young_enough(device):
        return f"needs a GPU of compute capability {OLDEST[0]}.{OLDEST[1]} or newer"
    return _missing_tool()


def _is_nvidia(device: torch.device) -> bool:
    import torch

    return device.type == "cuda" and torch.version.hip is None


def _is_young_enough(device: torch.device) -> bool:
    import torch

    return _is_nvidia(device) and torch.cuda.get_device_capability(device) >= OLDEST


@cache
def _missing_tool() -> str:
    """Return what is missing to compile the small C launcher that Triton builds at a kernel's first launch."""
    if _missing_triton():
        return _missing_triton()
    if not os.environ.get("CC") and not any(map(shutil.which, ("gcc", "clang"))):
        return "needs a C compiler: there is no gcc or clang on the path, and CC names none"
    scheme = sysconfig.get_default_scheme().replace("posix_local", "posix_prefix")  # Debian's place for the headers
    if not Path(sysconfig.get_paths(scheme)["include"], "Python.h").exists() and not os.environ.get("CPATH"):
        return "needs Python's header files, such as the package python3-dev has"
    return ""


def _missing_triton() -> str:
    found = importlib.util.find_spec("triton") is not None
    return "" if found else "needs Triton, which is not installed: `pip install 'clocs[fused]'`"


@cache
def _warn_once(problem: str) -> None:
    warnings.warn(f"Fused GPU kernels are not used, which is slower: that {problem}.", ClocsWarning, stacklevel=3)
