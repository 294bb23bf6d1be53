"""Patient-specific noise contrastive estimation. The plain version here is the reference.

Kiyasseh, Zhu and Clifton, "CLOCS: Contrastive Learning of Cardiac Signals Across Space, Time, and Patients",
ICML 2021. For a pair of views A, B of K instances, h the embeddings and i, j, k positions in the batch:

    (1)  s_AB(i, k)  = cos(h_A^i, h_B^k) / tau
    (2)  diag_AB     = - mean over i of                              log softmax_j s_AB(i, j) at j = i
    (3)  off_diag_AB = - mean over all i != k of the same patient of log softmax_j s_AB(i, j) at j = k
    (4)  L           = mean over pairs of views A < B of diag_AB + diag_BA + off_diag_AB + off_diag_BA

The denominator runs over all j of the other view, including those of the same patient. (3) is zero when no patient
occurs twice. The paper writes (3) as an expectation over "i, k in P" without details; here it is one mean over all
ordered pairs. So a single repeated patient in a batch weighs as much as the whole diagonal.

That is the formula `paper`. The formula `released` is that of the authors' code:

    (3') off_diag_AB = - mean over i < k of the same patient of log softmax_j s_AB(i, j) at j = k
         off_diag_BA = - mean over i < k of the same patient of log softmax_j s_AB(j, i) at j = k
    (4') L           = (diag_AB + diag_BA + off_diag_AB + off_diag_BA) / (T·P) of the last pair of views A < B alone

where P is the number of pairs of views, and T is 4, or 2 if no patient occurs twice. Views other than the last two get
no gradient. If a patient has two instances, only the first in the batch is an anchor of (3'), so the order of a
patient's instances changes the loss. With two views, and a patient that occurs twice, the mean over a batch and the
same batch in reverse is a quarter of the paper's L.

Computation: the means of diag_AB and off_diag_AB are weights w(i, k) on the K x K matrix, and those of the other
direction are w(k, i). With w(i) the row sums and lse the log-sum-exp, a pair of views costs

    sum_i w(i)·(lse_j s_AB(i, j) + lse_j s_AB(j, i)) - sum_ik (w(i, k) + w(k, i))·s_AB(i, k)
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal

import torch

from clocs_core import ClocsWarning
from clocs_plugins.contrastive_losses.choice import choose
from clocs_plugins.contrastive_losses.chunked import chunked_loss
from clocs_plugins.contrastive_losses.cosines import directions
from clocs_plugins.contrastive_losses.fused_rows import Kind, fits, share_of_rows
from clocs_plugins.contrastive_losses.refusals import (
    refuse_embeddings,
    refuse_ids,
    refuse_precision,
    refuse_temperature,
)
from clocs_plugins.contrastive_losses.row_owner import row_owner_loss
from clocs_plugins.contrastive_losses.weights import group_patients, patient_strengths

if TYPE_CHECKING:
    from torch import Tensor

    from clocs_core import Ranks
    from clocs_plugins.contrastive_losses.choice import Implementation, Precision


def patient_nce(
    views: Tensor,
    patient: Tensor,
    temperature: float | Tensor,
    variant: Literal["paper", "released"] = "paper",
    impl: Implementation = "auto",
    precision: Precision = "fp16",
    ranks: Ranks | None = None,
) -> Tensor:
    """Compute the loss of embeddings `views` (view, batch, dim) of instances of `patient` (batch,), a scalar.

    patient: integers on the device of the embeddings; equal means the same patient.
    temperature: tau, positive; a tensor of one element may require a gradient, and its sign is not checked.
    variant: `paper`, independent of the order of views and batch; or `released`. With two views `released` does not
    depend on their order either, but on the order of a patient's instances in the batch; with more than two it trains
    the last two only, and warns, except under torch.compile.
    impl: `reference`, with memory of order pairs x batch²; `chunked`, the same in chunks; `fused`, on NVIDIA GPUs; or
    `auto`, the fastest that runs.
    precision: precision of the similarities in `fused`, `fp16` or `near-fp32`; the others use float32, or float64 for
    float64 embeddings, also under autocast.
    ranks: the processes that share the batch. The result is then the share of this one: by `fused` kernels or in chunks
    for the own rows; or with `reference` from the embeddings of all.

    No host sync, and no shape that depends on the data.
    Raise ValueError for fewer than two views, an empty batch, ids of another shape or device, tau <= 0, and unknown
    names.
    """
    refuse_embeddings("patient-NCE", views, least=1 if ranks is None else 0)
    refuse_ids("patient-NCE", patient, views)
    refuse_temperature("patient-NCE", temperature)
    refuse_precision("patient-NCE", precision)
    if variant not in ("paper", "released"):
        raise ValueError(f"patient-NCE got the variant {variant!r}, expected 'paper' or 'released'")
    pairs = len(views) * (len(views) - 1) // 2
    if variant == "released":
        if pairs > 1:
            _warn_of_the_last_pair(len(views), pairs)
        views = views[-2:]
    if ranks is not None:
        how = impl, precision
        return _over_ranks(views, patient, temperature, variant == "released", pairs, how, ranks)
    chosen = choose(impl, views, temperature, (pairs if variant == "paper" else 1) * views.shape[1] ** 2)
    with torch.autocast(views.device.type, enabled=False):
        if chosen == "fused":
            return _fused(views, patient, temperature, variant == "released", pairs, precision)
        wide = views.to(torch.promote_types(views.dtype, torch.float32))
        if chosen == "chunked":
            groups = group_patients(patient)
            strengths = patient_strengths(groups, variant == "released", pairs, wide.dtype)
            return chunked_loss(wide, temperature, strengths, groups)
        if variant == "released":
            return _loss_of_pairs(wide, _half_weights(patient, wide.dtype) / pairs, temperature)
        return _loss_of_pairs(wide, _pair_weights(patient, wide.dtype), temperature)


def _over_ranks(
    views: Tensor,
    patient: Tensor,
    temperature: float | Tensor,
    released: bool,
    pairs: int,
    how: tuple[Implementation, Precision],
    ranks: Ranks,
) -> Tensor:
    """Compute the share of this process. released, pairs: as in `_fused`. how: implementation and precision."""
    impl, precision = how
    ids = ranks.patients(patient)
    with torch.autocast(views.device.type, enabled=False):
        if fits(impl, views, temperature, ranks):
            return _fused_rows(views, ids, temperature, released, pairs, precision, ranks)
        wide = views.to(torch.promote_types(views.dtype, torch.float32))
        if impl == "reference":
            weight = _half_weights(ids, wide.dtype) / pairs if released else _pair_weights(ids, wide.dtype)
            return _loss_of_pairs(ranks.gather_with_gradient(wide, 1), weight, temperature) / len(ranks.sizes)
        groups = group_patients(ids)
        strengths = patient_strengths(groups, released, pairs, wide.dtype)
        return row_owner_loss(wide, temperature, strengths, groups, ranks)


def _fused(
    views: Tensor, patient: Tensor, temperature: float | Tensor, released: bool, pairs: int, precision: Precision
) -> Tensor:
    from clocs_plugins.contrastive_losses.fused import contrast  # Triton may not be installed
    from clocs_plugins.contrastive_losses.launches import PAPER, RELEASED  # Triton may not be installed

    kind = RELEASED if released else PAPER
    return contrast(views, patient, temperature, kind=kind, pairs=pairs, two=precision == "near-fp32")


def _fused_rows(
    views: Tensor,
    patient: Tensor,
    temperature: float | Tensor,
    released: bool,
    pairs: int,
    precision: Precision,
    ranks: Ranks,
) -> Tensor:
    from clocs_plugins.contrastive_losses.launches import PAPER, RELEASED  # Triton may not be installed

    kind = Kind(RELEASED if released else PAPER, pairs, precision == "near-fp32")
    return share_of_rows(views, patient, temperature, kind, ranks)


def _loss_of_pairs(views: Tensor, weight: Tensor, temperature: float | Tensor) -> Tensor:
    """Compute the mean cost of pairs of views, from the weights (batch, batch) of one direction."""
    direction = directions(views)  # (view, batch, dim)
    a, b = torch.triu_indices(len(views), len(views), offset=1, device=views.device)  # (pair,), (pair,)
    similarity = direction[a] @ direction[b].mT / temperature  # (pair, batch, batch)
    repulsion = (similarity.logsumexp(2) + similarity.logsumexp(1)) @ weight.sum(1)  # (pair,)
    attraction = similarity.flatten(1) @ (weight + weight.mT).flatten()  # (pair,)
    return (repulsion - attraction).mean()


def _pair_weights(patient: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the paper's weights w(i, k): 1/K where i = k, 1/N at the N other places of the same patient, else 0."""
    itself, others = _places(patient, dtype)
    return itself / len(patient) + others / others.sum().clamp(min=1)  # clamp: no division by zero if N = 0


def _half_weights(patient: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the weights w(i, k) of the released code: the paper's above the diagonal only, divided by the terms."""
    itself, others = _places(patient, dtype)
    above = others.triu(1)
    count = above.sum()  # a tensor: no host sync to see whether a patient occurs twice
    terms = 2 + 2 * count.clamp(max=1)
    return (itself / len(patient) + above / count.clamp(min=1)) / terms


def _places(patient: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return 1 where i = k, and 1 at the other places of the same patient, each (batch, batch)."""
    itself = torch.eye(len(patient), dtype=dtype, device=patient.device)
    return itself, (patient[:, None] == patient[None, :]).to(dtype) - itself


def _warn_of_the_last_pair(views: int, pairs: int) -> None:
    if torch.compiler.is_compiling():  # "Dynamo does not know how to trace the Python builtin `_warnings.warn`"
        return
    warnings.warn(
        f"Patient-NCE as released trains views {views - 2} and {views - 1} of 0 to {views - 1} only, which is one of "
        f"{pairs} pairs; the other views get no gradient. Use formula=paper to train all pairs.",
        ClocsWarning,
        stacklevel=3,  # the caller of patient_nce, so that Python warns once for each such place
    )
