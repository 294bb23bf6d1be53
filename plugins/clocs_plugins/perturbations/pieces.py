"""Cut signals into pieces on a GPU: the launches of pieces_kernels.py, and where they can be used."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clocs_core import can_run_triton, launching_on

NUMBERS = 4096
"""Pieces times samples of a program, 32 for each thread."""
MOST_PIECES = 64


def by_kernels(signal: Tensor, pieces: int) -> bool:
    """Return whether the kernels can perturb these signals: on a GPU, without a gradient, not in float64."""
    suits = signal.is_cuda and signal.dtype != torch.float64 and not signal.requires_grad
    return suits and signal.numel() > 0 and pieces <= MOST_PIECES and can_run_triton(signal.device)


def permuted(signal: Tensor, chance: Tensor) -> Tensor:
    """Return signals (..., sample) with their pieces in the order of `chance` (..., piece)."""
    from clocs_plugins.perturbations.pieces_kernels import permute_kernel  # Triton may not be installed

    return _launch(permute_kernel, signal, chance)


def warped(signal: Tensor, chance: Tensor, stretch: float) -> Tensor:
    """Return signals (..., sample) with the pieces stretched that have a low `chance` (..., piece), others squeezed."""
    from clocs_plugins.perturbations.pieces_kernels import warp_kernel  # Triton may not be installed

    return _launch(warp_kernel, signal, chance, stretch)


def _launch(kernel: Any, signal: Tensor, chance: Tensor, *options: float) -> Tensor:
    pieces, samples = chance.shape[-1], signal.shape[-1]
    result = torch.empty_like(signal, memory_format=torch.contiguous_format)
    padded = 1 << (pieces - 1).bit_length()
    block = max(16, NUMBERS // padded)
    with launching_on(signal):
        kernel[(signal.numel() // samples, -(-samples // block))](
            signal.contiguous(), chance, result, samples, *options, PIECES=pieces, PADDED=padded, BLOCK=block
        )
    return result
