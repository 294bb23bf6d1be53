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

That is the formula `paper`. The formula `released` is what the authors published as code:

    (3') off_diag_AB = - mean over i < k of the same patient of log softmax_j s_AB(i, j) at j = k
         off_diag_BA = - mean over i < k of the same patient of log softmax_j s_AB(j, i) at j = k
    (4') L           = (diag_AB + diag_BA + off_diag_AB + off_diag_BA) / (T·P) of the last pair of views A < B alone

where P is the number of pairs of views, and T is 4, or 2 if no patient comes twice. Views other than the last two get
no gradient. Of two instances of one patient only the one that stands first in the batch is an anchor of (3'), so that
the order of the instances of a patient changes the loss. With two views, and a patient that comes twice, the mean over
a batch and the same batch in reverse is a quarter of the paper's L.

How both are computed: the means of diag_AB and off_diag_AB are weights w(i, k) on the K x K matrix, and those of the
other direction are w(k, i). With w(i) the row sums and lse the log-sum-exp, a pair of views costs

    sum_i w(i)·(lse_j s_AB(i, j) + lse_j s_AB(j, i)) - sum_ik (w(i, k) + w(k, i))·s_AB(i, k)
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal

import torch

from clocs_core import ClocsWarning

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["patient_nce"]

LEAST_NORM = 1e-8
"""A shorter embedding has no direction: its cosine with anything is 0, and so is its gradient."""


def patient_nce(
    views: Tensor,
    patient: Tensor,
    temperature: float | Tensor,
    variant: Literal["paper", "released"] = "paper",
) -> Tensor:
    """The loss of embeddings `views` (view, batch, dim) of instances of `patient` (batch,), as a scalar.

    patient: integers on the device of the embeddings; equal means the same patient.
    temperature: tau, positive; a tensor of one element may want a gradient, and its sign is not checked.
    variant: `paper`, which depends on the order of neither views nor batch; or `released`. Of two views that does not
    depend on their order either, but it does on the order in which the instances of one patient stand in the batch;
    of more than two it trains the last two only, and warns, unless torch.compile is at work.

    Computed in float32, or float64 where the embeddings are float64, autocast or not. No host sync, and no shape
    that depends on the data. Memory is of order pairs x batch².
    Raises ValueError for fewer than two views, an empty batch, ids that do not fit, tau <= 0, or another variant.
    """
    _refuse_bad_input(views, patient, temperature, variant)
    dtype = torch.promote_types(views.dtype, torch.float32)
    pairs = len(views) * (len(views) - 1) // 2
    if variant == "released" and pairs > 1:
        _warn_of_the_last_pair(len(views), pairs)
    with torch.autocast(views.device.type, enabled=False):
        if variant == "released":
            weight = _half_weights(patient, dtype) / pairs  # (batch, batch)
            return _loss_of_pairs(views[-2:].to(dtype), weight, temperature)
        return _loss_of_pairs(views.to(dtype), _pair_weights(patient, dtype), temperature)


def _loss_of_pairs(views: Tensor, weight: Tensor, temperature: float | Tensor) -> Tensor:
    """The mean over pairs of views of what a pair costs, by the weights (batch, batch) of one of its directions."""
    direction = _directions(views)  # (view, batch, dim)
    a, b = torch.triu_indices(len(views), len(views), offset=1, device=views.device)  # (pair,), (pair,)
    similarity = direction[a] @ direction[b].mT / temperature  # (pair, batch, batch)
    repulsion = (similarity.logsumexp(2) + similarity.logsumexp(1)) @ weight.sum(1)  # (pair,)
    attraction = similarity.flatten(1) @ (weight + weight.mT).flatten()  # (pair,)
    return (repulsion - attraction).mean()


def _directions(embedding: Tensor) -> Tensor:
    """Embeddings at length 1, gradient through the length included; zero where there is no direction."""
    square = embedding.square().sum(-1, keepdim=True)
    has_direction = square > LEAST_NORM**2
    # The inner `where` keeps 1/sqrt(0) out of the backward pass, where zero times infinity would be NaN.
    scale = torch.where(has_direction, torch.where(has_direction, square, 1.0).rsqrt(), 0.0)
    return embedding * scale


def _pair_weights(patient: Tensor, dtype: torch.dtype) -> Tensor:
    """The weights w(i, k) of the paper: 1/K where i = k, 1/N at the N other places of the same patient, else 0."""
    itself, others = _places(patient, dtype)
    return itself / len(patient) + others / others.sum().clamp(min=1)  # N = 0: no others, nothing to divide


def _half_weights(patient: Tensor, dtype: torch.dtype) -> Tensor:
    """The weights w(i, k) of the released code: as in the paper but above the diagonal only, divided by the terms."""
    itself, others = _places(patient, dtype)
    above = others.triu(1)
    count = above.sum()  # a tensor: whether a patient comes twice is not asked on the host
    terms = 2 + 2 * count.clamp(max=1)
    return (itself / len(patient) + above / count.clamp(min=1)) / terms


def _places(patient: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """1 where i = k, and 1 at the other places of the same patient, each (batch, batch)."""
    itself = torch.eye(len(patient), dtype=dtype, device=patient.device)
    return itself, (patient[:, None] == patient[None, :]).to(dtype) - itself


def _warn_of_the_last_pair(views: int, pairs: int) -> None:
    if torch.compiler.is_compiling():  # "Dynamo does not know how to trace the Python builtin `_warnings.warn`"
        return
    warnings.warn(
        f"Patient-NCE as released trains views {views - 2} and {views - 1} of 0 to {views - 1} only, which is one of "
        f"{pairs} pairs; the other views get no gradient. Use formula=paper to train all pairs.",
        ClocsWarning,
        stacklevel=3,  # whoever called patient_nce, so that Python tells it once for each such place
    )


def _refuse_bad_input(views: Tensor, patient: Tensor, temperature: float | Tensor, variant: str) -> None:
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
    if variant not in ("paper", "released"):
        raise ValueError(f"patient-NCE got the variant {variant!r}, expected 'paper' or 'released'")
