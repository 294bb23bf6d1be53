"""Normalised temperature-scaled cross-entropy, NT-Xent: equation 1 of SimCLR. The plain version is the reference.

Chen, Kornblith, Norouzi and Hinton, "A Simple Framework for Contrastive Learning of Visual Representations", ICML
2020. Two views of K instances make 2K embeddings h. With i' the other view of i:

    s(i, k) = cos(h^i, h^k) / tau
    l(i)    = - log (exp s(i, i') / sum over k != i of exp s(i, k))
    L       = mean over all 2K anchors i of l(i)

Unlike in patient-NCE, the denominator has the other instances of both views, and patients are ignored: another frame of
the same patient repels like any other. SimCLR has two views; with more, L is the mean over all pairs of views.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from clocs_plugins.contrastive_losses.choice import choose
from clocs_plugins.contrastive_losses.chunked import chunked_loss
from clocs_plugins.contrastive_losses.cosines import directions
from clocs_plugins.contrastive_losses.fused_rows import Kind, fits, share_of_rows
from clocs_plugins.contrastive_losses.refusals import refuse_embeddings, refuse_precision, refuse_temperature
from clocs_plugins.contrastive_losses.row_owner import row_owner_loss
from clocs_plugins.contrastive_losses.weights import plain_strengths

if TYPE_CHECKING:
    from torch import Tensor

    from clocs_core import Ranks
    from clocs_plugins.contrastive_losses.choice import Implementation, Precision


def nt_xent(
    views: Tensor,
    temperature: float | Tensor,
    impl: Implementation = "auto",
    precision: Precision = "fp16",
    ranks: Ranks | None = None,
) -> Tensor:
    """Compute the loss of embeddings `views` (view, batch, dim). A batch of one has no negatives: its loss is 0.

    temperature: tau, positive; a tensor of one element may require a gradient, and its sign is not checked.
    impl: `reference`, with memory of order pairs x 4·batch²; `chunked`, the same in chunks; `fused`, on NVIDIA GPUs;
    or `auto`, the fastest that runs.
    precision: precision of the similarities in `fused`, `fp16` or `near-fp32`; the others use float32, or float64 for
    float64 embeddings, also under autocast.
    ranks: the processes that share the batch. The result is then the share of this one: by `fused` kernels or in chunks
    for the own rows; or with `reference` from the embeddings of all.

    No host sync, and no shape that depends on the data.
    Raise ValueError for fewer than two views, an empty batch, tau <= 0, and unknown names.
    """
    refuse_embeddings("NT-Xent", views, least=1 if ranks is None else 0)
    refuse_temperature("NT-Xent", temperature)
    refuse_precision("NT-Xent", precision)
    count, batch, _ = views.shape
    pairs = count * (count - 1) // 2
    if ranks is not None:
        return _over_ranks(views, temperature, pairs, (impl, precision), ranks)
    chosen = choose(impl, views, temperature, pairs * (2 * batch) ** 2)
    with torch.autocast(views.device.type, enabled=False):
        if chosen == "fused":
            return _fused(views, temperature, pairs, precision)
        wide = views.to(torch.promote_types(views.dtype, torch.float32))
        if chosen == "chunked":
            return chunked_loss(wide, temperature, plain_strengths(batch, pairs, wide), None)
        return _loss_of_pairs(wide, temperature)


def _over_ranks(
    views: Tensor,
    temperature: float | Tensor,
    pairs: int,
    how: tuple[Implementation, Precision],
    ranks: Ranks,
) -> Tensor:
    """Compute the share of this process. how: implementation and precision."""
    impl, precision = how
    with torch.autocast(views.device.type, enabled=False):
        if fits(impl, views, temperature, ranks):
            return _fused_rows(views, temperature, pairs, precision, ranks)
        wide = views.to(torch.promote_types(views.dtype, torch.float32))
        if impl == "reference":
            return _loss_of_pairs(ranks.gather_with_gradient(wide, 1), temperature) / len(ranks.sizes)
        return row_owner_loss(wide, temperature, plain_strengths(ranks.whole, pairs, wide), None, ranks)


def _fused(views: Tensor, temperature: float | Tensor, pairs: int, precision: Precision) -> Tensor:
    from clocs_plugins.contrastive_losses.fused import contrast  # Triton may not be installed
    from clocs_plugins.contrastive_losses.launches import NT_XENT  # Triton may not be installed

    return contrast(views, None, temperature, kind=NT_XENT, pairs=pairs, two=precision == "near-fp32")


def _fused_rows(views: Tensor, temperature: float | Tensor, pairs: int, precision: Precision, ranks: Ranks) -> Tensor:
    from clocs_plugins.contrastive_losses.launches import NT_XENT  # Triton may not be installed

    return share_of_rows(views, None, temperature, Kind(NT_XENT, pairs, precision == "near-fp32"), ranks)


def _loss_of_pairs(views: Tensor, temperature: float | Tensor) -> Tensor:
    count, batch = views.shape[:2]
    direction = directions(views)  # (view, batch, dim)
    a, b = torch.triu_indices(count, count, offset=1, device=views.device)  # (pair,), (pair,)
    both = torch.cat([direction[a], direction[b]], dim=1)  # (pair, 2 batch, dim)
    similarity = both @ both.mT / temperature  # (pair, 2 batch, 2 batch)
    # Exclude i itself before the sum: subtracting exp(1/tau) afterwards would leave the rounding of the largest term.
    itself = torch.eye(2 * batch, dtype=torch.bool, device=views.device)
    repulsion = similarity.masked_fill(itself, -torch.inf).logsumexp(2)  # (pair, 2 batch)
    attraction = similarity.diagonal(batch, 1, 2)  # (pair, batch): i and its partner at i + batch
    return repulsion.mean() - attraction.mean()
