"""Both losses over several processes without all columns in one: blocks of columns go around, from each to the next.

The rows are owned as in row_owner.py. The instances of the processes go around twice. In the first round each process
adds up the log-sum-exp of its rows over the columns that come by. In the second the row statistics come along, so that
it computes the gradient of its rows too, as rows and as columns of everybody's rows. The backward pass sends nothing.

For a batch of K instances with V views of E numbers over W processes, a process sends (W - 1)·V·K/W·E numbers in each
round, and 2·V²·K/W more per turn of the second. Memory: two blocks of V·K/W·E numbers, and one chunk of similarities.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

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


class RingShare(torch.autograd.Function):
    """The own rows' share of the loss, and its gradient, which is computed with it."""

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
        """Return the share. Where a gradient is needed, the instances go around twice."""
        alone, (views, own, _) = groups is None, direction.shape
        lse = direction.new_full((views, views, own), -torch.inf)  # [v, w]: rows of v, columns of w
        attraction = _Attraction(direction, groups, ranks)
        for place, columns in _around(direction, ranks):
            for v, rows, s in chunks(direction, columns, ranks.own.start - place.start, temperature, alone, at_once):
                lse[v, :, rows] = torch.logaddexp(lse[v, :, rows], with_itself(s.logsumexp(2).T, v, alone))
            attraction.add(place, columns)
        if alone:
            lse = add_view_itself(lse)
        diagonal = torch.eye(views, dtype=torch.bool, device=lse.device)[:, :, None]
        repel = strengths.repel[ranks.own]
        pull = attraction.pull(strengths)  # (view, own, dim)
        repulsion = (torch.where(diagonal, 0.0, lse) * repel).sum(dtype=torch.float64)
        if any(ctx.needs_input_grad):
            statistics = repulsion_weights(lse, repel, diagonal)
            attract = Attract(strengths, None if groups is None else groups.first, ranks.own)
            gradient = _gradient(direction, statistics, temperature, ranks, attract, at_once)
            learnt = isinstance(temperature, torch.Tensor)
            ctx.save_for_backward(direction, gradient / temperature, *([temperature] if learnt else []))
        # In float64: both are of the size of 1 / temperature, and their difference may be far smaller.
        return (repulsion - (direction * pull).sum(dtype=torch.float64) / (2 * temperature)).to(direction.dtype)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the directions and of a learnt temperature."""
        direction, gradient, *temperature = ctx.saved_tensors
        scaled: Tensor = _Scaled.apply(outer, gradient, direction)  # type: ignore[no-untyped-call]  # torch has no types for it
        of_temperature = None
        if temperature and ctx.needs_input_grad[1]:
            of_temperature = (-0.5 * (scaled * direction).sum() / temperature[0]).reshape(temperature[0].shape)
        return scaled, of_temperature, None, None, None, None


class _Scaled(torch.autograd.Function):
    """The gradient, times that of what follows. It depends on the directions, and has no derivative by them."""

    @staticmethod
    def forward(ctx: Any, outer: Tensor, gradient: Tensor, direction: Tensor) -> Tensor:
        return outer * gradient

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative()


def _gradient(
    direction: Tensor,
    statistics: tuple[Tensor, Tensor],
    temperature: float | Tensor,
    ranks: Ranks,
    attract: Attract,
    at_once: int,
) -> Tensor:
    """Return what moves the own rows (view, own, dim): as rows, and as columns of everybody's rows."""
    moved = torch.zeros_like(direction)
    for place, columns, weight, shift in _around_with(direction, statistics, ranks):
        moved += move_rows(direction, columns, place, statistics, (weight, shift), attract, temperature, at_once)
    return moved


def _around(direction: Tensor, ranks: Ranks) -> Iterator[tuple[slice, Tensor]]:
    """Yield the place and the directions (view, column, dim) of each process in turn."""
    for place, rows in ranks.around(direction.transpose(0, 1)):
        yield place, rows.transpose(0, 1)


def _around_with(
    direction: Tensor, statistics: tuple[Tensor, Tensor], ranks: Ranks
) -> Iterator[tuple[slice, Tensor, Tensor, Tensor]]:
    """Yield the place, the directions and both row statistics (view, view, column) of each process in turn."""
    views, _, dim = direction.shape
    by_row = (direction.transpose(0, 1), *(one.movedim(2, 0) for one in statistics))
    packed = torch.cat([one.flatten(1) for one in by_row], dim=1)  # (own, view * dim + 2 * view * view)
    for place, rows in ranks.around(packed):
        columns, *both = rows.split([views * dim, views * views, views * views], dim=1)
        weight, shift = (one.unflatten(1, (views, views)).movedim(0, 2) for one in both)
        yield place, columns.unflatten(1, (views, dim)).transpose(0, 1), weight, shift


class _Attraction:
    """Adds up what the own instances are drawn to: their other views, and those of their patients' other instances.

    Patients are named by `groups.first`. Those of the own instances are sorted, and instances that come by are added at
    the place of their patient there, if it has one.
    """

    def __init__(self, direction: Tensor, groups: Groups | None, ranks: Ranks) -> None:
        self.elsewhere = direction.sum(0) - direction  # (view, own, dim): the same instance in the other views
        self.first = None if groups is None else groups.first
        if self.first is not None:
            self.patient = self.first[ranks.own]  # (own,)
            self.sorted = self.patient.sort().values
            self.of_patient = torch.zeros_like(direction)  # stored at the first of equal values in `sorted`

    def add(self, place: slice, columns: Tensor) -> None:
        """Add the instances of another process, or the own."""
        if self.first is None or not len(self.sorted):
            return
        patient = self.first[place]  # (column,)
        at = torch.searchsorted(self.sorted, patient).clamp(max=len(self.sorted) - 1)
        known = (self.sorted[at] == patient)[:, None]
        self.of_patient.index_add_(1, at, (columns.sum(0) - columns) * known)

    def pull(self, strengths: Strengths) -> Tensor:
        """Return the weighted sum (view, own, dim) of all that each own instance is drawn to."""
        found = strengths.same_instance * self.elsewhere
        if self.first is None or not len(self.sorted):
            return found
        others = self.of_patient[:, torch.searchsorted(self.sorted, self.patient)] - self.elsewhere
        return found + strengths.same_patient * others
