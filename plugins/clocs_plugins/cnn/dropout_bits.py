"""Dropout by random numbers of 16 bits, four from one draw of the generator: on a CPU and in kernels alike.

A share is rounded to a multiple of 1/65536. One number for each value, as nn.Dropout draws them, would take an eighth
of a whole step on a CPU, whose generator runs on one core, and three times as long on a GPU.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

LEVELS = 1 << 16


class Dropout(NamedTuple):
    """Which levels from 0 to 65535 drop a feature, those below `dropped`, and what the others are multiplied with."""

    dropped: int
    scale: float

    @property
    def threshold(self) -> int:
        """The same for numbers with a sign, from -32768 to 32767: those below it drop a feature."""
        return self.dropped - LEVELS // 2


def in_levels(share: float) -> Dropout:
    """The nearest that 16 bits can do to dropping a share in [0, 1): one level is always kept, or nothing would be."""
    dropped = min(round(share * LEVELS), LEVELS - 1)
    return Dropout(dropped, LEVELS / (LEVELS - dropped))


def draw_noise(size: int, device: torch.device) -> Tensor:
    """So many random numbers (size,) of int16, by torch's generator of the device, which knows of CUDA graphs."""
    draws = torch.empty((size + 3) // 4, dtype=torch.int64, device=device).random_(-(1 << 63), None)
    return draws.view(torch.int16)[:size]
