"""Normalised temperature-scaled cross-entropy, NT-Xent: equation 1 of SimCLR.

Chen, Kornblith, Norouzi and Hinton, "A Simple Framework for Contrastive Learning of Visual Representations", ICML
2020. Two views of K instances make 2K embeddings h. With i' the other view of i:

    s(i, k) = cos(h^i, h^k) / tau
    l(i)    = - log (exp s(i, i') / sum over k != i of exp s(i, k))
    L       = mean over all 2K anchors i of l(i)

Unlike patient-NCE, the denominator has the other instances of both views, and patients play no part: another frame of
the same patient repels like any other. SimCLR has two views; of more, L is the mean over all pairs of views.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["nt_xent"]

LEAST_NORM = 1e-8
"""A shorter embedding has no direction: its cosine with anything is 0, and so is its gradient."""


def nt_xent(views: Tensor, temperature: float | Tensor) -> Tensor:
    """The loss of embeddings `views` (view, batch, dim) as a scalar.

    temperature: tau, positive; a tensor of one element may want a gradient, and its sign is not checked.

    Computed in float32, or float64 where the embeddings are float64, autocast or not. No host sync, and no shape
    that depends on the data. Memory is of order pairs x 4·batch². A batch of one has no negatives: its loss is 0.
    Raises ValueError for fewer than two views, an empty batch, or tau <= 0.
    """
    _refuse_bad_input(views, temperature)
    count, batch = views.shape[:2]
    with torch.autocast(views.device.type, enabled=False):
        direction = _directions(views.to(torch.promote_types(views.dtype, torch.float32)))  # (view, batch, dim)
        a, b = torch.triu_indices(count, count, offset=1, device=views.device)  # (pair,), (pair,)
        both = torch.cat([direction[a], direction[b]], dim=1)  # (pair, 2 batch, dim)
        similarity = both @ both.mT / temperature  # (pair, 2 batch, 2 batch)
        # Left out before the sum: subtracting exp(1/tau) after it would leave the rounding of the largest term.
        itself = torch.eye(2 * batch, dtype=torch.bool, device=views.device)
        repulsion = similarity.masked_fill(itself, -torch.inf).logsumexp(2)  # (pair, 2 batch)
        attraction = similarity.diagonal(batch, 1, 2)  # (pair, batch): i and its partner at i + batch
        return repulsion.mean() - attraction.mean()


def _directions(embedding: Tensor) -> Tensor:
    """Embeddings at length 1, gradient through the length included; zero where there is no direction."""
    square = embedding.square().sum(-1, keepdim=True)
    has_direction = square > LEAST_NORM**2
    # The inner `where` keeps 1/sqrt(0) out of the backward pass, where zero times infinity would be NaN.
    scale = torch.where(has_direction, torch.where(has_direction, square, 1.0).rsqrt(), 0.0)
    return embedding * scale


def _refuse_bad_input(views: Tensor, temperature: float | Tensor) -> None:
    shape = tuple(views.shape)
    if len(shape) != 3 or shape[0] < 2 or shape[1] < 1:
        raise ValueError(
            f"NT-Xent got embeddings of shape {shape}, expected (view, batch, dim) with at least two views "
            "and one instance"
        )
    if not isinstance(temperature, torch.Tensor) and not 0 < temperature < float("inf"):
        raise ValueError(f"NT-Xent got the temperature {temperature}, expected a positive, finite number")
