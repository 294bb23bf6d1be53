"""The loss of a whole batch in every process, by the GPU kernels of one process.

Each process gathers the embeddings of all, computes the loss of the whole batch with its gradient, and keeps the
gradient of its own instances. The backward pass sends nothing, and the K x K matrix is never in memory. Every process
computes the same, K² instead of the K² / W of row_owner.py, but in kernels that are many times quicker than chunks: on
an H200 a step of 256 instances takes 0.19 ms with them and 0.50 ms with chunks (benchmarks/ranks_step.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from clocs_plugins.contrastive_losses.choice import Implementation, choose

if TYPE_CHECKING:
    from torch import Tensor

    from clocs_core import Ranks

MOST = 2**14
"""Instances of a batch up to which `auto` computes all of it in every process: about 1 ms of an H200."""


def fits(impl: Implementation, views: Tensor, temperature: float | Tensor, ranks: Ranks) -> bool:
    """Return whether the kernels compute the loss of this batch. Raise as `choose` if they are asked for and cannot."""
    return choose(impl, views, temperature, 0) == "fused" and (impl == "fused" or ranks.whole <= MOST)


def share_of_whole(
    loss: Callable[[Tensor, float | Tensor], Tensor], views: Tensor, temperature: float | Tensor, ranks: Ranks
) -> Tensor:
    """Return the share of this process, from its embeddings (view, own, dim).

    loss(embeddings, temperature) computes the loss of the whole batch.
    """
    count = len(ranks.sizes)
    if isinstance(temperature, torch.Tensor) and temperature.requires_grad:
        temperature = temperature.view_as(temperature)  # a tensor of our own to hook
        temperature.register_hook(lambda gradient: gradient / count)  # all processes compute the whole of it
    whole: Tensor = loss(_GatherRows.apply(views, ranks), temperature)  # type: ignore[no-untyped-call]
    share: Tensor = _EqualShare.apply(whole, count)  # type: ignore[no-untyped-call]
    return share


class _EqualShare(torch.autograd.Function):
    """Divides the value; the gradient stays whole."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor, count: int) -> Tensor:
        return whole / count if count > 1 else whole.view_as(whole)  # every kernel counts in a step of 0.2 ms

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None]:
        return outer, None


class _GatherRows(torch.autograd.Function):
    """Joins the embeddings of all processes; backwards, takes the rows of the own instances."""

    @staticmethod
    def forward(ctx: Any, views: Tensor, ranks: Ranks) -> Tensor:
        ctx.own = ranks.own
        return ranks.gather(views, 1)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None]:
        return outer[:, ctx.own], None
