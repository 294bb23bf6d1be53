"""The losses by the GPU kernels over several processes: each has the rows of its own instances, and all columns.

Each process gathers the embeddings of all, and computes the K² / W exponentials of its own rows. The sums of all rows
are gathered; then each process has the loss, and the weights of all rows and columns. An own embedding is a row here,
and a column in the rows of all processes. The backward pass computes both parts of its gradient, and sends nothing. No
K x K matrix is in memory.

On the wire are the embeddings, V·K·E numbers, and the sums, V·V·K numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import torch

from clocs_core import launching_on
from clocs_plugins.contrastive_losses.choice import Implementation, choose
from clocs_plugins.contrastive_losses.row_owner import MOST
from clocs_plugins.contrastive_losses.rows_and_columns import refuse_second_derivative

if TYPE_CHECKING:
    from torch import Tensor

    from clocs_core import Ranks
    from clocs_plugins.contrastive_losses.launches import Sizes


def fits(impl: Implementation, views: Tensor, temperature: float | Tensor, ranks: Ranks) -> bool:
    """Return whether the kernels compute the loss of this batch. Raise as `choose` if they are asked for and cannot.

    Above MOST bytes of embeddings, `auto` uses the ring instead.
    """
    size = len(views) * ranks.whole * views.shape[2] * views.element_size()
    return choose(impl, views, temperature, 0) == "fused" and (impl == "fused" or size <= MOST)


@attrs.frozen
class Kind:
    """The loss that is computed: its number in launches.py, the pairs of views, and whether float16 comes in halves."""

    number: int
    pairs: int
    two: bool


def share_of_rows(
    views: Tensor, patient: Tensor | None, temperature: float | Tensor, kind: Kind, ranks: Ranks
) -> Tensor:
    """Compute the share of this process in the loss, from its embeddings (view, own, dim); a scalar.

    patient: ids of the whole batch, or None for NT-Xent.
    """
    if isinstance(temperature, torch.Tensor):
        temperature = temperature.to(views.device)
    share: Tensor = _Share.apply(views, temperature, patient, kind, ranks)  # type: ignore[no-untyped-call]
    return share


class _Share(torch.autograd.Function):
    """An equal share of the loss; its gradient is that of the whole loss, for the own rows."""

    @staticmethod
    def forward(
        ctx: Any, views: Tensor, temperature: float | Tensor, patient: Tensor | None, kind: Kind, ranks: Ranks
    ) -> Tensor:
        # Triton may not be installed.
        from clocs_plugins.contrastive_losses.fused import as_whole_numbers, empty_results, sizes_of
        from clocs_plugins.contrastive_losses.launches import launch_loss, launch_own_sums, launch_packing

        everyone = ranks.gather(views, 1)  # (view, batch, dim)
        size = sizes_of(everyone, kind.number, kind.two, [], ranks.own)
        saved = empty_results(size, everyone)
        with launching_on(everyone):
            pulls = launch_packing(size, everyone, as_whole_numbers(patient), saved)
            own = launch_own_sums(size, saved[1], temperature)  # (view, view, own)
        sums = ranks.gather(own, 2)  # (view, view, batch)
        with launching_on(everyone):
            launch_loss(size, sums, pulls, temperature, 1 / kind.pairs, saved)
        learnt = isinstance(temperature, torch.Tensor)
        ctx.save_for_backward(views, everyone, *saved[1:], *([temperature] if learnt else []))
        ctx.temperature, ctx.size = None if learnt else temperature, size
        whole, processes = saved[0], len(ranks.sizes)  # every process has the whole loss
        return whole if processes == 1 else whole / processes  # a division by one would be a launch

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        views, everyone, packed, total, inverse, weight, scalars, others, count, *given = ctx.saved_tensors
        temperature = given[0] if given else ctx.temperature
        saved = (packed, total, inverse, weight, scalars, others, count)
        for_tau = bool(given) and ctx.needs_input_grad[1]
        gradient, of_tau = _Gradient.apply(  # type: ignore[no-untyped-call]
            outer, views, everyone, temperature, saved, ctx.size, for_tau
        )
        of_temperature = of_tau.to(temperature.dtype).reshape(temperature.shape) if for_tau else None
        return gradient, of_temperature, None, None, None


class _Gradient(torch.autograd.Function):
    """The gradients of the own rows `views` and of the temperature.

    It is a separate function so that a second derivative is refused.
    """

    @staticmethod
    def forward(
        ctx: Any,
        outer: Tensor,
        views: Tensor,
        everyone: Tensor,
        temperature: float | Tensor,
        saved: tuple[Tensor, ...],
        size: Sizes,
        for_tau: bool,
    ) -> tuple[Tensor, Tensor]:
        from clocs_plugins.contrastive_losses.fused import gradients_of  # Triton may not be installed

        if not size.own:  # no rows, no programs
            return torch.zeros_like(views), outer.new_zeros((), dtype=torch.float32)
        return gradients_of(size, outer, everyone, temperature, saved, for_tau)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative()
