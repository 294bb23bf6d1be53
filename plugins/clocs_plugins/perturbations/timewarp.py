"""Time-warping, a transformation of Sarkar and Etemad (IEEE Transactions on Affective Computing, 2020), as in MT-SSL.

A signal of N samples is cut into P pieces of equal length. A random half of them gets the factor k, the others 1/k.
The cumulative sums of the factors f_1 ... f_P, divided by their total, give the pieces' ends in the warped signal:

    from  u_i = (N - 1)·i/P    to  v_i = (N - 1)·(f_1 + ... + f_i) / (f_1 + ... + f_P),    0 <= i <= P

Time in between is interpolated linearly. So the ends and the length of the signal do not change. A stretched piece is
k² times as long as a squeezed one, but k times as long as before only if the factors sum up to P.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from clocs_plugins.perturbations.pieces import by_kernels, warped

if TYPE_CHECKING:
    from torch import Generator, Tensor


def warp_time(signal: Tensor, generator: Generator, *, pieces: int, stretch: float) -> Tensor:
    """Stretch a random half of the pieces, rounded up, of signals (..., sample) and squeeze the others.

    The half is drawn for each signal. Values between samples are interpolated linearly.
    """
    chance = torch.rand((*signal.shape[:-1], pieces), generator=generator, device=signal.device)
    if by_kernels(signal, pieces):
        return warped(signal, chance, stretch)
    last = signal.shape[-1] - 1
    value = signal.to(torch.promote_types(signal.dtype, torch.float32))  # float16 cannot represent all integers to 2500
    time = _warped_time(_factors(chance, stretch, value.dtype), signal.shape[-1])  # (..., sample)
    before = time.floor().clamp(0, last)
    first = before.long()
    second = (first + 1).clamp(max=last)
    here, there = value.gather(-1, first), value.gather(-1, second)
    return (here + (time - before) * (there - here)).to(signal.dtype)


def _factors(chance: Tensor, stretch: float, dtype: torch.dtype) -> Tensor:
    pieces = chance.shape[-1]
    factors = torch.full((pieces,), 1 / stretch, dtype=dtype, device=chance.device)
    factors[: (pieces + 1) // 2] = stretch
    return factors[chance.argsort(-1)]  # (..., piece)


def _warped_time(factor: Tensor, samples: int) -> Tensor:
    """Return the original time (..., sample), in samples, of each sample of the warped signals.

    Computed as a shift of each sample: shifts are small and so keep their digits; without a warp they are exactly zero.
    """
    end = factor.cumsum(-1)
    old = torch.arange(factor.shape[-1] + 1, device=factor.device, dtype=factor.dtype) / factor.shape[-1]
    new = torch.nn.functional.pad(end / end[..., -1:], (1, 0))  # (..., piece + 1), from 0 to 1
    knot, shift = (samples - 1) * new, (samples - 1) * (old - new)
    sample = torch.arange(samples, device=factor.device, dtype=factor.dtype)
    sample = sample.expand(*factor.shape[:-1], samples).contiguous()  # searchsorted warns of strides
    piece = torch.searchsorted(knot[..., 1:-1].contiguous(), sample, right=True)  # (..., sample)
    length = knot.diff(dim=-1).clamp(min=torch.finfo(factor.dtype).tiny)  # a signal of one sample has length 0
    part = (sample - knot.gather(-1, piece)) / length.gather(-1, piece)
    return sample + torch.lerp(shift.gather(-1, piece), shift.gather(-1, piece + 1), part)
