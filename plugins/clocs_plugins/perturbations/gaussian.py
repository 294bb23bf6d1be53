"""Gaussian noise, the first perturbation of the CLOCS paper (ICML 2021), appendix B."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Generator, Tensor

# "For the Chapman dataset, sigma = 10, whereas for the PTB-XL dataset, sigma = 0.01": µV and mV, the same voltage.
# Keys are case-folded, which also maps the two characters for µ (U+00B5, U+03BC) to one.
TEN_MICROVOLTS = {"nv": 1e4, "uv": 10.0, "μv": 10.0, "mv": 0.01, "v": 1e-5}

OTHERWISE = 0.07
"""Fraction of a signal's standard deviation: 10 µV of the 141 µV of Chapman's median lead (420 leads of 35 recordings).
"""


def gaussian(
    unit: str, sigma: float | None = None, relative: float | None = None
) -> Callable[[Tensor, Generator], Tensor]:
    """Build noise for signals of `unit`: of `sigma` in that unit, or `relative` to each signal, or as in the paper.

    The paper's 10 µV apply to every unit of voltage. Any other unit (counts, normalised, "") says nothing about
    magnitude, so there the noise is 0.07 of each signal's standard deviation, which is about as much.
    """
    if relative is not None:
        return partial(add_relative_gaussian, fraction=relative)
    if sigma is None:
        sigma = TEN_MICROVOLTS.get(unit.strip().casefold())
    if sigma is None:
        return partial(add_relative_gaussian, fraction=OTHERWISE)
    return partial(add_gaussian, sigma=sigma)


def add_gaussian(signal: Tensor, generator: Generator, *, sigma: float) -> Tensor:
    """Add noise from N(0, sigma) to signals (..., sample); sigma is in their unit."""
    return signal + sigma * _noise(signal, generator)


def add_relative_gaussian(signal: Tensor, generator: Generator, *, fraction: float) -> Tensor:
    """Add noise of a fraction of each signal's standard deviation to signals (..., sample); flat ones stay flat."""
    deviation = signal.std(-1, correction=0, keepdim=True)  # (..., 1)
    return signal + fraction * deviation * _noise(signal, generator)


def _noise(signal: Tensor, generator: Generator) -> Tensor:
    return torch.randn(signal.shape, generator=generator, device=signal.device, dtype=signal.dtype)
