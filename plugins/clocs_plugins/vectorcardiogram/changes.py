"""The perturbations of 3KG.

Gopal et al., "3KG: Contrastive Learning of 12-Lead Electrocardiograms using Physiologically-Inspired Augmentations",
ML4H 2021.

A heart that lies a little differently, or is larger, gives another vectorcardiogram. With D Dower's matrix and D⁺ its
pseudo-inverse, signals become

    e' = D · S · R · D⁺ · e

where R rotates about X, then Y, then Z, by angles drawn from -angle to angle, and S multiplies each axis by a factor
drawn from 1 to scale. Whatever of the eight leads is not a sum of X, Y and Z is lost, as in the paper.
"""

from __future__ import annotations

import math
from functools import lru_cache

import attrs
import torch
from torch import Generator, Tensor

from clocs_plugins.vectorcardiogram.leads import Mixing, Rows


@attrs.frozen
class Rotation:
    """Rotates and scales the vectorcardiogram of signals (..., channel, sample), drawn for each of them."""

    mixing: Mixing
    angle: float
    scale: float

    def __call__(self, signal: Tensor, generator: Generator) -> Tensor:
        """Return changed signals."""
        # Always float32, so that a seed gives the same change for every dtype of the signal.
        drawn = torch.rand((*signal.shape[:-2], 6), generator=generator, device=signal.device, dtype=torch.float32)
        drawn = drawn.to(signal.dtype)
        angles = (2 * drawn[..., :3] - 1) * math.radians(self.angle)  # (..., axis)
        factors = 1 + drawn[..., 3:] * (self.scale - 1)  # (..., axis)
        change = factors[..., None] * rotation_of(angles)  # (..., 3, 3)
        outwards, inwards = (
            _matrix(rows, signal.device, signal.dtype) for rows in (self.mixing.outwards, self.mixing.inwards)
        )
        whole = outwards @ change @ inwards
        return whole @ signal  # (..., channel, channel) times (..., channel, sample)


def rotation_of(angles: Tensor) -> Tensor:
    """Return the matrices (..., 3, 3) that rotate about X, then Y, then Z, by angles (..., 3) in radians."""
    (a, b, c), (x, y, z) = angles.cos().unbind(-1), angles.sin().unbind(-1)
    rows = (
        (b * c, x * y * c - a * z, a * y * c + x * z),
        (b * z, x * y * z + a * c, a * y * z - x * c),
        (-y, x * b, a * b),
    )
    return torch.stack([torch.stack(row, -1) for row in rows], -2)


def mask_time(signal: Tensor, generator: Generator, *, share: float) -> Tensor:
    """Set a stretch of `share` of the samples of signals (..., sample) to zero, at a place drawn for each signal."""
    samples = signal.shape[-1]
    length = round(share * samples)
    drawn = torch.rand((*signal.shape[:-1], 1), generator=generator, device=signal.device, dtype=torch.float32)
    first = (drawn * (samples - length + 1)).long()  # (..., 1)
    at = torch.arange(samples, device=signal.device)
    return signal.masked_fill((at >= first) & (at < first + length), 0.0)


@lru_cache(maxsize=8)  # 36 numbers are as many kernels; a step must not make them again
def _matrix(rows: Rows, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Make a matrix on a device from numbers. Copying a list to a device would wait for it."""
    return torch.stack(
        [torch.stack([torch.full((), number, device=device, dtype=dtype) for number in row]) for row in rows]
    )
