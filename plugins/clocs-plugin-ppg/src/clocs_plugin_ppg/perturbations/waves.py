"""Add waves to signals or multiply signals with them: batched, on the signal's device, without a host sync."""

from __future__ import annotations

from math import pi
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Generator, Tensor

WAVES = 3  # waves in a mixture: enough that no two mixtures look alike


def drift(signal: Tensor, generator: Generator, *, strength: float, cycles: float) -> Tensor:
    """Add to each of the signals (..., sample) its own mixture of waves of up to `cycles` per frame.

    The mixture has at most `strength` standard deviations of the signal; a flat signal stays flat.
    """
    return signal + strength * _deviation(signal) * _mixture(signal, generator, cycles)


def modulate(signal: Tensor, generator: Generator, *, depth: float, cycles: float) -> Tensor:
    """Multiply the deviation of signals (..., sample) from their mean by 1 ± `depth`, in a wave drawn for each."""
    mean = signal.mean(-1, keepdim=True)  # (..., 1)
    wave = _waves(signal, generator, cycles, 1)[0]  # (..., sample)
    return mean + (signal - mean) * (1 + depth * wave)


def shake(signal: Tensor, generator: Generator, *, strength: float, length: float, cycles: float) -> Tensor:
    """Add a burst of waves under a bell, of random place and length, to signals (..., sample).

    A burst is at most `length` of the frame long, lies within it, and has at most `strength` standard deviations.
    """
    place, share = _draw(signal, generator, 2)  # (..., 1) each
    long = (length * share).clamp(min=torch.finfo(signal.dtype).tiny)
    since = (_time(signal) - place * (1 - long)) / long  # 0 where the burst begins, 1 where it ends
    bell = torch.where((since > 0) & (since < 1), (pi * since).sin().square(), 0)  # (..., sample)
    return signal + strength * _deviation(signal) * bell * _mixture(signal, generator, cycles)


def _mixture(signal: Tensor, generator: Generator, cycles: float) -> Tensor:
    """Return the mean (..., sample) of a few waves, each between -1 and 1."""
    return _waves(signal, generator, cycles, WAVES).mean(0)


def _waves(signal: Tensor, generator: Generator, cycles: float, count: int) -> Tensor:
    """Draw sines (count, ..., sample) of up to `cycles` per frame and of any phase."""
    speed, phase = _draw(signal, generator, 2 * count).split(count)  # (count, ..., 1) each
    return torch.sin(2 * pi * (cycles * speed * _time(signal) + phase))


def _draw(signal: Tensor, generator: Generator, count: int) -> Tensor:
    """Draw numbers (count, ..., 1) between 0 and 1 for each signal."""
    shape = (count, *signal.shape[:-1], 1)
    return torch.rand(shape, generator=generator, device=signal.device, dtype=signal.dtype)


def _time(signal: Tensor) -> Tensor:
    """Return the time (sample,) of each sample, from 0 to nearly 1 within the frame."""
    samples = signal.shape[-1]
    return torch.arange(samples, device=signal.device, dtype=signal.dtype) / samples


def _deviation(signal: Tensor) -> Tensor:
    return signal.std(-1, correction=0, keepdim=True)  # (..., 1)
