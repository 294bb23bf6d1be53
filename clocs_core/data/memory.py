"""Compute on a GPU whose memory may not suffice: in smaller pieces, then on the CPU. Find the memory of the machine."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import torch

from clocs_core.errors import ClocsWarning
from clocs_core.turns import waiting

Result = TypeVar("Result")

_SHARES = (1.0, 1 / 8, 1 / 64)


def within_memory(work: Callable[[torch.device, float], Result], device: torch.device) -> Result:
    """Return `work(device, share)`. share: how much to compute at once, as a fraction of the usual amount.

    On a GPU, `work` must draw no random numbers of torch's own: other runs of this process go on meanwhile.

    When the device's memory runs out, `work` is called again with a smaller share; in the end it is called on the CPU,
    with a warning. A failure here would lose hours of training.
    """
    if device.type != "cpu":
        for share in _SHARES:
            # The tensors of a failed call are free after this block. The work waits for the GPU most of the time.
            with suppress(torch.OutOfMemoryError), waiting():
                return work(device, share)
        warn_of_memory(device)
    return work(torch.device("cpu"), 1.0)


def warn_of_memory(device: torch.device) -> None:
    """Warn that something is computed on the CPU, since a device has too little memory."""
    warnings.warn(
        f"The memory of {device} does not suffice to evaluate on it: what does not fit is computed on the CPU. "
        "Nothing else changes; other programs on this GPU may hold its memory.",
        ClocsWarning,
        stacklevel=3,
    )


def physical_memory() -> float:
    """Return the bytes of memory of this machine; infinity where the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return math.inf
