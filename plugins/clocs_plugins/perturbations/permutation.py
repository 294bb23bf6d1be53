"""Permutation, a transformation of Sarkar and Etemad (IEEE Transactions on Affective Computing, 2020), as in MT-SSL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from clocs_plugins.perturbations.pieces import by_kernels, permuted

if TYPE_CHECKING:
    from torch import Generator, Tensor


def permute(signal: Tensor, generator: Generator, *, pieces: int) -> Tensor:
    """Cut signals (..., sample) into pieces and join them in random order, drawn for each signal.

    Piece i begins at sample floor(i·samples/pieces), so lengths differ by at most one; with more pieces than samples
    some are empty. Every sample is kept once.
    """
    samples, device = signal.shape[-1], signal.device
    chance = torch.rand((*signal.shape[:-1], pieces), generator=generator, device=device)
    if by_kernels(signal, pieces):
        return permuted(signal, chance)
    borders = torch.arange(pieces + 1, device=device) * samples // pieces  # (piece + 1,)
    begin, length = borders[:-1], borders.diff()  # (piece,), (piece,)
    order = chance.argsort(-1)  # (..., piece): the piece that comes first, second, ...
    length_in_order = length[order]
    begin_in_order = length_in_order.cumsum(-1) - length_in_order  # (..., piece)
    moved = torch.empty_like(order).scatter(-1, order, begin_in_order - begin[order])  # (..., piece), in samples
    sample = torch.arange(samples, device=device)
    piece = torch.bucketize(sample, borders[1:], right=True)  # (sample,)
    return signal.scatter(-1, sample + moved[..., piece], signal)  # (..., sample)
