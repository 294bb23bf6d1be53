"""Dropout by random numbers of 16 bits, four from one draw of the generator, on a CPU and in kernels.

A share is rounded to a multiple of 1/65536. One draw for each value, as in nn.Dropout, would take an eighth of a whole
step on a CPU, whose generator runs on one core, and three times as long on a GPU.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

LEVELS = 1 << 16


class Dropout(NamedTuple):
    """Dropout in levels from 0 to 65535: levels below `dropped` drop a feature, the others multiply it by `scale`."""

    dropped: int
    scale: float

    @property
    def threshold(self) -> int:
        """`dropped` for signed numbers, from -32768 to 32767: those below it drop a feature."""
        return self.dropped - LEVELS // 2


def in_levels(share: float) -> Dropout:
    """Round a share in [0, 1) to 16 bits; at least one level is kept, so that some features survive."""
    dropped = min(round(share * LEVELS), LEVELS - 1)
    return Dropout(dropped, LEVELS / (LEVELS - dropped))


def draw_noise(size: int, device: torch.device) -> Tensor:
    """Draw random int16 numbers (size,) from torch's generator of the device, which supports CUDA graphs."""
    draws = torch.empty((size + 3) // 4, dtype=torch.int64, device=device).random_(-(1 << 63), None)
    return draws.view(torch.int16)[:size]
