"""Both losses over several processes, exactly: each process owns the rows of its instances.

Each process gets the directions of all instances, and computes the log-sum-exp of its rows over all columns. The
log-sum-exps are exchanged too. They are all that the backward pass needs: a process then knows how its instances act as
columns of everybody's rows, so that no gradient of an embedding is sent. The closed form is that of weights.py.

For a batch of K instances with V views of E numbers, a process receives V·K·E numbers and, if a gradient is needed,
V²·K log-sum-exps. Memory: those, and one chunk of similarities. Where V·K·E numbers are too many, ring.py has
a block of them at a time, and sends twice as much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from clocs_plugins.contrastive_losses.chunked import AT_ONCE
from clocs_plugins.contrastive_losses.cosines import directions
from clocs_plugins.contrastive_losses.ring import RingShare
from clocs_plugins.contrastive_losses.rows_and_columns import (
    Attract,
    add_view_itself,
    chunks,
    move_rows,
    refuse_second_derivative,
    repulsion_weights,
    with_itself,
)

if TYPE_CHECKING:
    from torch import Tensor

    from clocs_core import Ranks
    from clocs_plugins.contrastive_losses.weights import Groups, Strengths


MOST = 2**30
"""Bytes of the embeddings of all processes, above which no process gathers them."""


def row_owner_loss(
    views: Tensor,
    temperature: float | Tensor,
    strengths: Strengths,
    groups: Groups | None,
    ranks: Ranks,
    at_once: int = AT_ONCE,
) -> Tensor:
    """Compute the share of this process in the loss, from its embeddings (view, own, dim); a scalar.

    strengths, groups: of the whole batch. Without groups, a view also repels itself.
    """
    direction = directions(views)
    size = len(direction) * ranks.whole * direction.shape[2] * direction.element_size()
    way = _Share if size <= MOST else RingShare
    share: Tensor = way.apply(  # type: ignore[no-untyped-call]  # torch has no types for it
        direction, temperature, strengths, groups, ranks, at_once
    )
    return share


class _Share(torch.autograd.Function):
    """The own rows' share of the loss; its gradient is that of the whole loss, for the own rows."""

    @staticmethod
    def forward(
        ctx: Any,
        direction: Tensor,
        temperature: float | Tensor,
        strengths: Strengths,
        groups: Groups | None,
        ranks: Ranks,
        at_once: int,
    ) -> Tensor:
        alone, views = groups is None, len(direction)
        everyone = ranks.gather(direction, 1)  # (view, batch, dim)
        lse = direction.new_full((views, views, direction.shape[1]), -torch.inf)  # [v, w]: rows of v, columns of w
        for v, rows, s in chunks(direction, everyone, ranks.own.start, temperature, alone, at_once):
            lse[v, :, rows] = with_itself(s.logsumexp(2).T, v, alone)  # s: (row, view, column)
        if alone:
            lse = add_view_itself(lse)
        own = torch.eye(views, dtype=torch.bool, device=lse.device)[:, :, None]
        repel = strengths.repel[ranks.own]
        pull = _pull(everyone, strengths, groups)[:, ranks.own]  # (view, own, dim)
        repulsion = (torch.where(own, 0.0, lse) * repel).sum(dtype=torch.float64)
        if any(ctx.needs_input_grad):
            learnt = isinstance(temperature, torch.Tensor)
            weight, shift = repulsion_weights(ranks.gather(lse, 2), strengths.repel, own)
            ctx.save_for_backward(direction, everyone, weight, shift, *([temperature] if learnt else []))
            ctx.temperature, ctx.at_once = None if learnt else temperature, at_once
            ctx.attract = Attract(strengths, None if groups is None else groups.first, ranks.own)
        # In float64: both are of the size of 1 / temperature, and their difference may be far smaller.
        return (repulsion - (direction * pull).sum(dtype=torch.float64) / (2 * temperature)).to(direction.dtype)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        direction, everyone, weight, shift, *given = ctx.saved_tensors
        temperature = given[0] if given else ctx.temperature
        gradient: Tensor = _Gradient.apply(  # type: ignore[no-untyped-call]  # as above
            outer, direction, temperature, (everyone, weight, shift), ctx.attract, ctx.at_once
        )
        of_temperature = None
        if given and ctx.needs_input_grad[1]:
            of_temperature = (-0.5 * (gradient * direction).sum() / temperature).reshape(temperature.shape)
        return gradient, of_temperature, None, None, None, None


class _Gradient(torch.autograd.Function):
    """The gradient of the own rows. It is a separate function so that a second derivative is refused."""

    @staticmethod
    def forward(
        ctx: Any,
        outer: Tensor,
        direction: Tensor,
        temperature: float | Tensor,
        known: tuple[Tensor, ...],
        attract: Attract,
        at_once: int,
    ) -> Tensor:
        everyone, weight, shift = known
        whole, own = slice(0, everyone.shape[1]), (weight[:, :, attract.mine], shift[:, :, attract.mine])
        with torch.autocast(direction.device.type, enabled=False):
            moved = move_rows(direction, everyone, whole, own, (weight, shift), attract, temperature, at_once)
        return moved * (outer / temperature)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative()


def _pull(everyone: Tensor, strengths: Strengths, groups: Groups | None) -> Tensor:
    """Return the sum of all that each instance is drawn to, (view, batch, dim): its other views, and its patient's."""
    elsewhere = everyone.sum(0) - everyone  # (view, batch, dim): the same instance in the other views
    found = strengths.same_instance * elsewhere
    if groups is not None:
        of_patient = torch.zeros_like(elsewhere).index_add(1, groups.first, elsewhere)  # stored at groups.first
        others = of_patient.index_select(1, groups.first) - elsewhere
        found = found + strengths.same_patient * others
    return found
