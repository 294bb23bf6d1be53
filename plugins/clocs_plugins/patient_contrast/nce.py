"""Patient-specific noise contrastive estimation, the plain version: it is the specification.

Kiyasseh, Zhu and Clifton, "CLOCS: Contrastive Learning of Cardiac Signals Across Space, Time, and Patients",
ICML 2021. For a pair of views A, B of K instances, h the embeddings and i, j, k positions in the batch:

    (1)  s_AB(i, k)  = cos(h_A^i, h_B^k) / tau
    (2)  diag_AB     = - mean over i of                              log softmax_j s_AB(i, j) at j = i
    (3)  off_diag_AB = - mean over all i != k of the same patient of log softmax_j s_AB(i, j) at j = k
    (4)  L           = mean over pairs of views A < B of diag_AB + diag_BA + off_diag_AB + off_diag_BA

The denominator runs over all j of the other view, those of the same patient included. (3) is zero when no
patient comes twice. The paper writes (3) as an expectation over "i, k in P" and says no more; it is read here as
one mean over all ordered pairs. So a single repeated patient in a batch weighs as much as the whole diagonal.

How it is computed: both means are weights w(i, k) on the K x K matrix, 1/K on the diagonal and 1/N at the N other
places of the same patient. As w is symmetric, with w(i) its row sums and lse the log-sum-exp, a pair of views costs

    sum_i w(i)·(lse_j s_AB(i, j) + lse_j s_AB(j, i)) - 2·sum_ik w(i, k)·s_AB(i, k)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["patient_nce"]

LEAST_NORM = 1e-8
"""A shorter embedding has no direction: its cosine with anything is 0, and so is its gradient."""


def patient_nce(views: Tensor, patient: Tensor, temperature: float | Tensor) -> Tensor:
    """The loss of embeddings `views` (view, batch, dim) of instances of `patient` (batch,), as a scalar.

    patient: integers on the device of the embeddings; equal means the same patient.
    temperature: tau, positive; a tensor of one element may want a gradient, and its sign is not checked.

    Computed in float32, or float64 where the embeddings are float64, autocast or not. No host sync, and no shape
    that depends on the data. Memory is of order pairs x batch².
    Raises ValueError for fewer than two views, an empty batch, ids that do not fit, or tau <= 0.
    """
    _refuse_bad_input(views, patient, temperature)
    dtype = torch.promote_types(views.dtype, torch.float32)
    count = len(views)
    with torch.autocast(views.device.type, enabled=False):
        direction = _directions(views.to(dtype))  # (view, batch, dim)
        a, b = torch.triu_indices(count, count, offset=1, device=views.device)  # (pair,), (pair,)
        similarity = direction[a] @ direction[b].mT / temperature  # (pair, batch, batch)
        weight = _pair_weights(patient, dtype)  # (batch, batch)
        repulsion = (similarity.logsumexp(2) + similarity.logsumexp(1)) @ weight.sum(1)  # (pair,)
        attraction = similarity.flatten(1) @ weight.flatten()  # (pair,)
        return (repulsion - 2 * attraction).mean()


def _directions(embedding: Tensor) -> Tensor:
    """Embeddings at length 1, gradient through the length included; zero where there is no direction."""
    square = embedding.square().sum(-1, keepdim=True)
    has_direction = square > LEAST_NORM**2
    # The inner `where` keeps 1/sqrt(0) out of the backward pass, where zero times infinity would be NaN.
    scale = torch.where(has_direction, torch.where(has_direction, square, 1.0).rsqrt(), 0.0)
    return embedding * scale


def _pair_weights(patient: Tensor, dtype: torch.dtype) -> Tensor:
    """The weights w(i, k): 1/K where i = k, 1/N at the N other places of the same patient, else 0."""
    itself = torch.eye(len(patient), dtype=dtype, device=patient.device)
    others = (patient[:, None] == patient[None, :]).to(dtype) - itself
    return itself / len(patient) + others / others.sum().clamp(min=1)  # N = 0: no others, nothing to divide


def _refuse_bad_input(views: Tensor, patient: Tensor, temperature: float | Tensor) -> None:
    shape, ids = tuple(views.shape), tuple(patient.shape)
    if len(shape) != 3 or shape[0] < 2 or shape[1] < 1:
        raise ValueError(
            f"patient-NCE got embeddings of shape {shape}, expected (view, batch, dim) with at least two views "
            "and one instance"
        )
    if ids != shape[1:2]:
        raise ValueError(f"patient-NCE got patient ids of shape {ids}, expected {shape[1:2]}: one per instance")
    if patient.is_floating_point() or patient.is_complex():
        raise ValueError(f"patient-NCE got patient ids of type {patient.dtype}, expected integers")
    if not isinstance(temperature, torch.Tensor) and not 0 < temperature < float("inf"):
        raise ValueError(f"patient-NCE got the temperature {temperature}, expected a positive, finite number")
