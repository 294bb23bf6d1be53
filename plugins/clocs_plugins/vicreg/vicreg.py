"""Variance-invariance-covariance regularisation, as a pure function.

Bardes, Ponce and LeCun, "VICReg: Variance-Invariance-Covariance Regularization for Self-Supervised Learning", ICLR
2022. For embeddings Z and Z' of two views, n instances of d dimensions, with the means over the batch:

    (1)  v(Z)     = 1/d · sum_j max(0, gamma - sqrt(Var(z^j) + epsilon))                Var divides by n - 1
    (3)  C(Z)     = 1/(n - 1) · sum_i (z_i - mean)(z_i - mean)^T
    (4)  c(Z)     = 1/d · sum_(j != k) C(Z)_jk²
    (5)  s(Z, Z') = 1/(n·d) · sum_i |z_i - z'_i|²
    (6)  loss     = lambda·s(Z, Z') + mu·[v(Z) + v(Z')] + nu·[c(Z) + c(Z')]

With more than two views the loss is the mean of (6) over pairs: s as a mean over pairs, v and c as twice a mean over
views.

The paper and its code differ. Equation (5) has no 1/d, but algorithm 1 and the released code use torch's mean squared
error, which has it, and the weights 25, 25, 1 are meant for that. Lambda times d gives the equation as printed; on
simulated ECGs it collapses: the loss stays at 2·mu·(gamma - sqrt(epsilon)), the loss of constant embeddings. The
released code halves the variance term, the paper does not; half of mu gives the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


def vicreg(
    z: Tensor,
    invariance: float = 25.0,
    variance: float = 25.0,
    covariance: float = 1.0,
    *,
    gamma: float = 1.0,
    epsilon: float = 1e-4,
    pairs: Sequence[tuple[int, int]] = (),
) -> Tensor:
    """Compute the loss of embeddings `z` (view, batch, dim), a scalar.

    invariance, variance, covariance: lambda, mu and nu. gamma: the deviation that every dimension should have.
    pairs: pairs of views to compare; empty: all pairs.

    A batch of one has no variance and no covariance. There the divisor is 1 instead of n - 1 = 0, so v is a constant,
    gamma - sqrt(epsilon), c is 0, and only the invariance has a gradient.
    Computed in float32, or in float64 for float64 embeddings, also under autocast. No host sync, and no shape that
    depends on the data. Memory is of order views x dim².
    Raise ValueError for fewer than two views, or an empty batch.
    """
    _refuse_bad_input(z)
    pairs = pairs or tuple(combinations(range(len(z)), 2))
    with torch.autocast(z.device.type, enabled=False):
        z = z.to(torch.promote_types(z.dtype, torch.float32))
        centred = z - z.mean(1, keepdim=True)  # (view, batch, dim)
        of_view = variance * _lack_of_variance(centred, gamma, epsilon) + covariance * _redundancy(centred)  # (view,)
        each, own = z.unbind(), of_view.unbind()  # indexing these tuples copies no index to the device
        costs = [invariance * (each[a] - each[b]).square().mean() + own[a] + own[b] for a, b in pairs]
        return torch.stack(costs).mean()


def _lack_of_variance(centred: Tensor, gamma: float, epsilon: float) -> Tensor:
    """Compute the term v of each view (view,). epsilon keeps the root away from zero, where it has no gradient."""
    deviation = (centred.square().sum(1) / _freedom(centred) + epsilon).sqrt()  # (view, dim)
    return (gamma - deviation).clamp(min=0).mean(-1)


def _redundancy(centred: Tensor) -> Tensor:
    """Compute the term c of each view (view,)."""
    dim = centred.shape[2]
    matrix = centred.mT @ centred / _freedom(centred)  # (view, dim, dim)
    itself = torch.eye(dim, dtype=torch.bool, device=centred.device)
    return matrix.masked_fill(itself, 0.0).square().sum((1, 2)) / dim


def _freedom(centred: Tensor) -> int:
    return max(centred.shape[1] - 1, 1)


def _refuse_bad_input(z: Tensor) -> None:
    shape = tuple(z.shape)
    if len(shape) != 3 or shape[0] < 2 or min(shape) < 1:
        raise ValueError(
            f"VICReg got embeddings of shape {shape}, expected (view, batch, dim) with at least two views, one "
            "instance and one dimension"
        )
