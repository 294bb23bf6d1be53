"""Both losses in chunks of similarities, in PyTorch: for batches whose K x K matrices do not fit in memory.

Uses the closed form of weights.py. The repulsion is a log-sum-exp of every row and column, computed chunk by chunk and
again in the backward pass. The attraction uses sums of embeddings. Memory: a chunk, and views x batch x dim.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from clocs_plugins.contrastive_losses.cosines import directions

if TYPE_CHECKING:
    from torch import Tensor

    from clocs_plugins.contrastive_losses.weights import Groups, Strengths

AT_ONCE = 2**22
"""Similarities per chunk: 16 MB in float32. A quarter of that is slower at K = 4096, four times as much no faster."""


def chunked_loss(
    views: Tensor, temperature: float | Tensor, strengths: Strengths, groups: Groups | None, at_once: int = AT_ONCE
) -> Tensor:
    """Compute the loss of embeddings (view, batch, dim), a scalar. Without groups, a view also repels itself."""
    direction = directions(views)
    repulsion: Tensor = _Repulsion.apply(  # type: ignore[no-untyped-call]  # torch has no types for it
        direction, temperature, strengths.repel, groups is None, at_once
    )
    return repulsion - _attraction(direction, strengths, groups) / temperature


def _attraction(direction: Tensor, strengths: Strengths, groups: Groups | None) -> Tensor:
    """Sum the weighted cosines of the same instance and of the same patient in two views. Counts each pair twice."""
    elsewhere = direction.sum(0) - direction  # (view, batch, dim): the same instance in the other views
    found = strengths.same_instance * (direction * elsewhere).sum()
    if groups is not None:
        of_patient = torch.zeros_like(elsewhere).index_add(1, groups.first, elsewhere)  # stored at groups.first
        others = of_patient.index_select(1, groups.first) - elsewhere  # exactly 0 for a patient who occurs once
        found = found + strengths.same_patient * (direction * others).sum()
    return found / 2


class _Repulsion(torch.autograd.Function):
    """The sum over v != w and i of a_i·lse_j s_vw(i, j); with `alone`, j also runs over the other rows of view v."""

    @staticmethod
    def forward(
        ctx: Any, direction: Tensor, temperature: float | Tensor, repel: Tensor, alone: bool, at_once: int
    ) -> Tensor:
        views, batch = direction.shape[:2]
        lse = direction.new_full((views, views, batch), -torch.inf)  # [v, w]: rows of v over columns of w
        for v, w, rows, s in _chunks(direction, temperature, alone, at_once):  # s: (row, other view, column)
            lse[v, w:, rows] = s.logsumexp(2).T
            lse[v + 1 :, v] = torch.logaddexp(lse[v + 1 :, v], s[:, v + 1 - w :].logsumexp(0))
        if alone:
            lse = torch.logaddexp(lse, lse.diagonal(dim1=0, dim2=1).T[:, None])  # (view, 1, row): view with itself
        own = torch.eye(views, dtype=torch.bool, device=lse.device)[:, :, None]
        learnt = isinstance(temperature, torch.Tensor)
        ctx.save_for_backward(direction, repel, lse, own, *([temperature] if learnt else []))
        ctx.temperature, ctx.alone, ctx.at_once = None if learnt else temperature, alone, at_once
        return (torch.where(own, 0.0, lse) * repel).sum()

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        direction, repel, lse, own, *given = ctx.saved_tensors
        temperature = given[0] if given else ctx.temperature
        gradient: Tensor = _Gradient.apply(  # type: ignore[no-untyped-call]  # as above
            outer, direction, temperature, _drops(repel, lse, own), ctx.alone, ctx.at_once
        )
        of_temperature = None
        if given and ctx.needs_input_grad[1]:
            of_temperature = (-0.5 * (gradient * direction).sum() / temperature).reshape(temperature.shape)
        return gradient, of_temperature, None, None, None


class _Gradient(torch.autograd.Function):
    """The gradient of the repulsion. It is a separate function so that a second derivative is refused.

    torch's `once_differentiable` refuses it only if the gradient of the loss itself requires a gradient; otherwise it
    treats the embeddings as constants.
    """

    @staticmethod
    def forward(
        ctx: Any,
        outer: Tensor,
        direction: Tensor,
        temperature: float | Tensor,
        drop: Tensor,
        alone: bool,
        at_once: int,
    ) -> Tensor:
        gradient = torch.zeros_like(direction)
        with torch.autocast(direction.device.type, enabled=False):
            for v, w, rows, s in _chunks(direction, temperature, alone, at_once):
                g = (s + drop[v, w:, rows].T[:, :, None]).exp_().add_((s + drop[w:, v]).exp_())
                gradient[v, rows] += torch.tensordot(g, direction[w:], 2)
                # Within a view every instance is already a row, so only other views are added as columns.
                gradient[v + 1 :] += torch.tensordot(g[:, v + 1 - w :], direction[v, rows], [[0], [0]])
        return gradient * (outer / temperature)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        raise RuntimeError("impl='chunked' has a first derivative only. Use impl='reference' for a second one.")


def _drops(repel: Tensor, lse: Tensor, own: Tensor) -> Tensor:
    """Return the terms (view, view, row) to add to similarities so that exp gives the row's share of the gradient.

    Rows of one view repel each other in every pair of views that includes the view: their shares are added.
    """
    drop = torch.where(own, -torch.inf, repel.log() - lse)
    return torch.where(own, drop.logsumexp(1, keepdim=True), drop)


def _chunks(
    direction: Tensor, temperature: float | Tensor, alone: bool, at_once: int
) -> Iterator[tuple[int, int, slice, Tensor]]:
    """Yield similarities (row, other view, column) of some rows of view v with the views from w on, for all pairs.

    w is v + 1; with `alone` it is v, and the similarity of an instance with itself is minus infinity.
    """
    views, batch = direction.shape[:2]
    for v in range(views if alone else views - 1):
        w = v if alone else v + 1
        others = direction[w:].flatten(0, 1)  # (other view * column, dim)
        step = max(1, at_once // len(others))
        for first in range(0, batch, step):
            rows = slice(first, min(first + step, batch))
            s = (direction[v, rows] @ others.T / temperature).unflatten(1, (views - w, batch))
            if alone:
                s[:, 0].diagonal(first).fill_(-torch.inf)
            yield v, w, rows, s
