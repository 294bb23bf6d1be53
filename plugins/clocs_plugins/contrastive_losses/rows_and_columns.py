"""Similarities of own rows with some columns, in chunks, and the weights of repulsion that follow from their sums.

Both ways to compute the losses over several processes use them: row_owner.py has all columns, ring.py one block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, NoReturn, TypeAlias

import torch
from torch import Tensor

from clocs_plugins.contrastive_losses.weights import Strengths

Statistics: TypeAlias = tuple[Tensor, Tensor]
"""The two tensors of `repulsion_weights`: weight and shift."""


def repulsion_weights(lse: Tensor, repel: Tensor, own: Tensor) -> Statistics:
    """Return w and m, each (view, view, batch), such that w·exp(s - m) is what similarity s of a row is repelled by.

    Rows of one view repel each other in every pair of views that includes the view: their shares are added.
    The weight is not part of the exponent: the rounding of log w - m would be that of 1/tau.
    """
    least = torch.where(own, torch.inf, lse).amin(1, keepdim=True)  # (view, 1, batch)
    within = torch.where(own, 0.0, repel * (least - lse).exp()).sum(1, keepdim=True)
    return torch.where(own, within, repel), torch.where(own, least, lse)


def chunks(
    direction: Tensor, columns: Tensor, start: int, temperature: float | Tensor, alone: bool, at_once: int
) -> Iterator[tuple[int, slice, Tensor]]:
    """Yield similarities (row, view, column) of some own rows of view v with columns (view, column, dim) of others.

    With `alone` also with those of view v, where the similarity of an instance with itself is minus infinity.
    start: place of the first own row, counted from the first column.
    """
    for v in range(len(direction)):
        others = beside(columns, v, alone)
        own, shape = direction.shape[1], others.shape[:2]
        step = max(1, at_once // shape.numel())
        for first in range(0, own, step):
            rows = slice(first, min(first + step, own))
            s = (direction[v, rows] @ others.flatten(0, 1).T / temperature).unflatten(1, shape)
            if alone:
                s[:, v].diagonal(start + first).fill_(-torch.inf)
            yield v, rows, s


class Attract(NamedTuple):
    """How strongly own rows are drawn to columns.

    first: as in Groups; None where patients do not count. mine: place of the own instances in the batch.
    """

    strengths: Strengths
    first: Tensor | None
    mine: slice

    def weights(self, place: slice, rows: slice, zero: Tensor) -> Tensor:
        """Return the weights (row, column) of some own rows and the columns at `place`, alike for each other view."""
        count = rows.stop - rows.start
        if self.first is None:
            y = zero.new_zeros((count, place.stop - place.start))
        else:
            same = self.first[self.mine][rows, None] == self.first[None, place]
            y = torch.where(same, self.strengths.same_patient, zero)
        itself = y.diagonal(self.mine.start - place.start + rows.start)
        itself.copy_(self.strengths.same_instance.expand_as(itself))
        return y


def move_rows(
    direction: Tensor,
    columns: Tensor,
    place: slice,
    of_rows: Statistics,
    of_columns: Statistics,
    attract: Attract,
    temperature: float | Tensor,
    at_once: int,
) -> Tensor:
    """Return what moves the own rows (view, own, dim): as rows, and as columns of the rows of `columns`.

    columns: directions (view, column, dim), those of `place` in the batch. of_rows, of_columns: `repulsion_weights` of
    the own rows (view, view, own), and of the columns in their own rows (view, view, column).
    """
    alone, moved = attract.first is None, torch.zeros_like(direction)
    attraction, of = direction, None  # of: the rows of `attraction`, which all views have in common
    for v, rows, s in chunks(direction, columns, attract.mine.start - place.start, temperature, alone, at_once):
        if rows != of:
            attraction, of = attract.weights(place, rows, s.new_zeros(())), rows  # (row, column)
        weight, shift = (beside(one[v][:, rows], v, alone).T[:, :, None] for one in of_rows)  # (row, view, 1)
        others, their_shift = (beside(one[:, v], v, alone) for one in of_columns)  # (view, column)
        drawn = _less_repulsion(attraction, s, (weight, shift), (others, their_shift), v if alone else None)
        moved[v, rows] -= torch.tensordot(drawn, beside(columns, v, alone), 2)
    return moved


def _less_repulsion(
    attraction: Tensor, s: Tensor, of_rows: Statistics, of_columns: Statistics, itself: int | None
) -> Tensor:
    """Return weights of attraction (row, column) less those of repulsion, which has similarities s (row, view, column).

    of_rows, of_columns: weights and shifts of `repulsion_weights`: those of the row (row, view, 1), and those of the
    column in its own rows (view, column). itself: the view of the rows, where it is among the columns: not attracted.

    Subtracted from the weights rather than from their sums: the terms of an instance that is told apart well nearly
    cancel, and the sums would have the rounding of the terms.
    """
    drawn = attraction[:, None]  # (row, 1, column)
    if itself is not None:
        drawn = drawn.repeat(1, s.shape[1], 1)
        drawn[:, itself] = 0
    (weight, shift), (others, their_shift) = of_rows, of_columns
    drawn = torch.addcmul(drawn, (s - shift).exp_(), weight, value=-1)  # (row, view, column)
    return drawn.addcmul_((s - their_shift).exp_(), others, value=-1)


def beside(of_views: Tensor, v: int, alone: bool) -> Tensor:
    """Return the views (view, ...) that view v is compared with; a copy only if v lies between them."""
    if alone:
        return of_views
    if v in (0, len(of_views) - 1):
        return of_views[1:] if v == 0 else of_views[:-1]
    return torch.cat([of_views[:v], of_views[v + 1 :]])


def with_itself(beside: Tensor, v: int, alone: bool) -> Tensor:
    """Return (view, row) with minus infinity in the place of view v, where `beside` left it out."""
    return beside if alone else torch.cat([beside[:v], torch.full_like(beside[:1], -torch.inf), beside[v:]])


def add_view_itself(lse: Tensor) -> Tensor:
    """Add the columns of the row's own view to each pair of views. lse: (view, view, row)."""
    return torch.logaddexp(lse, lse.diagonal(dim1=0, dim2=1).T[:, None])  # (view, 1, row)


def refuse_second_derivative() -> NoReturn:
    """Raise RuntimeError."""
    raise RuntimeError(
        "Over several processes the loss has a first derivative only. Use impl='reference' for a second one."
    )
