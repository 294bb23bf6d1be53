"""The losses in Triton, as one operator that works with torch.compile and CUDA graphs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clocs_core import gpu_operator, launching_on
from clocs_plugins.contrastive_losses.early_start import starts_early
from clocs_plugins.contrastive_losses.launches import (
    NT_XENT,
    Sizes,
    launch_forward,
    launch_gradient,
)
from clocs_plugins.contrastive_losses.shapes import Shapes, choose_shapes, is_roomy


def contrast(
    views: Tensor,
    patient: Tensor | None,
    temperature: float | Tensor,
    *,
    kind: int,
    pairs: int,
    two: bool,
    shapes: Shapes | None = None,
) -> Tensor:
    """Compute the loss `kind` of embeddings (view, batch, dim), divided by `pairs`, as a float32 scalar.

    patient: ids (batch,), or None for NT-Xent. two: use float16 in two halves, which is nearly float32.
    shapes: tiles to use instead of those of the table.
    """
    tensor = temperature.to(views.device) if isinstance(temperature, Tensor) else None
    tau = 1.0 if isinstance(temperature, Tensor) else float(temperature)
    numbers = shapes.as_numbers() if shapes else []
    loss: Tensor
    loss, *_ = _contrast(views, as_whole_numbers(patient), tensor, tau, kind, 1 / pairs, two, numbers)
    return loss


def as_whole_numbers(patient: Tensor | None) -> Tensor | None:
    """Return ids of a type that the kernels read."""
    if patient is None or patient.dtype in (torch.int32, torch.int64):
        return patient
    return patient.to(torch.int64)


def sizes_of(views: Tensor, kind: int, two: bool, numbers: list[int], own: slice | None = None) -> Sizes:
    """Return the sizes of a call. numbers: those of its shapes, none for the table's. own: rows that are computed."""
    count, batch, dim = map(int, views.shape)  # int: torch.compile specialises on this size, as the tiles do
    first, rows = (0, batch) if own is None else (own.start, own.stop - own.start)
    if numbers:
        shapes = Shapes.from_numbers(numbers)
    else:
        roomy = is_roomy(views.device.type, views.device.index)
        shapes = choose_shapes(batch, dim, count, two=two, alone=kind == NT_XENT, roomy=roomy, own=rows)
    return Sizes(count, batch, dim, kind, two, shapes, starts_early(views.device), first, rows)


def empty_results(size: Sizes, like: Tensor) -> tuple[Tensor, ...]:
    """Allocate the loss and the tensors that the backward pass reads; the operator returns them all."""
    known = not size.alone
    return (
        like.new_empty((), dtype=torch.float32),  # the loss
        like.new_empty(size.packed(), dtype=torch.float16),  # embeddings at length 1
        like.new_empty((size.rows, size.columns), dtype=torch.float32),  # their sum over views
        like.new_empty((size.views, size.rows), dtype=torch.float32),  # 1/|x|
        like.new_empty((size.views, size.beside, size.rows), dtype=torch.float32),  # weights u
        like.new_empty(3, dtype=torch.float32),  # scalars
        like.new_empty((size.views, size.rows, size.columns) if known else 0, dtype=torch.float32),  # others
        like.new_empty(size.batch if known else 0, dtype=torch.int32),  # count
    )


@gpu_operator(
    "clocs::contrast",
    "(Tensor views, Tensor? patient, Tensor? temperature, float tau, int kind, float share, bool two, "
    "int[] shapes) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
)
def _contrast(
    views: Tensor,
    patient: Tensor | None,
    temperature: Tensor | None,
    tau: float,
    kind: int,
    share: float,
    two: bool,
    shapes: list[int],
) -> tuple[Tensor, ...]:
    size = sizes_of(views, kind, two, shapes)
    saved = empty_results(size, views)
    with launching_on(views):
        launch_forward(size, views, patient, tau if temperature is None else temperature, share, saved)
    return saved


@_contrast.register_fake
def _(
    views: Tensor,
    patient: Tensor | None,
    temperature: Tensor | None,
    tau: float,
    kind: int,
    share: float,
    two: bool,
    shapes: list[int],
) -> tuple[Tensor, ...]:
    return empty_results(sizes_of(views, kind, two, shapes), views)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    views, _, temperature, ctx.tau, ctx.kind, _, ctx.two, ctx.shapes = inputs
    ctx.save_for_backward(views, temperature, *output[1:])
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)  # otherwise torch allocates zeros as gradients of the others


def _backward(ctx: Any, outer: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
    views, temperature, *saved = ctx.saved_tensors
    if outer is None:
        return (None,) * 8
    for_tau = temperature is not None and ctx.needs_input_grad[2]
    gradient, of_tau = _contrast_backward(
        outer, views, temperature, *saved, ctx.tau, ctx.kind, ctx.two, ctx.shapes, for_tau
    )
    of_temperature = of_tau.to(temperature.dtype).reshape(temperature.shape) if for_tau else None
    return gradient, None, of_temperature, None, None, None, None, None


_contrast.register_autograd(_backward, setup_context=_remember)


@gpu_operator(
    "clocs::contrast_backward",
    "(Tensor outer, Tensor views, Tensor? temperature, Tensor packed, Tensor total, Tensor inverse, "
    "Tensor weight, Tensor scalars, Tensor others, Tensor count, float tau, int kind, bool two, int[] shapes, "
    "bool for_tau) -> (Tensor, Tensor)",
)
def _contrast_backward(
    outer: Tensor,
    views: Tensor,
    temperature: Tensor | None,
    packed: Tensor,
    total: Tensor,
    inverse: Tensor,
    weight: Tensor,
    scalars: Tensor,
    others: Tensor,
    count: Tensor,
    tau: float,
    kind: int,
    two: bool,
    shapes: list[int],
    for_tau: bool,
) -> tuple[Tensor, Tensor]:
    size = sizes_of(views, kind, two, shapes)
    known = tau if temperature is None else temperature
    return gradients_of(size, outer, views, known, (packed, total, inverse, weight, scalars, others, count), for_tau)


def gradients_of(
    size: Sizes, outer: Tensor, views: Tensor, tau: float | Tensor, saved: tuple[Tensor, ...], for_tau: bool
) -> tuple[Tensor, Tensor]:
    """Compute the gradients of the own rows, and that of the temperature if asked for, else an empty tensor.

    saved: `empty_results` without the loss, as the forward pass filled them.
    """
    packed, total, inverse, weight, scalars, others, count = saved
    gradient, of_tau = _gradients(views[:, size.first : size.first + size.own], for_tau)
    along = views.new_empty((size.views, size.own), dtype=torch.float32) if for_tau else None
    about = (total, inverse, others, count, scalars)
    with launching_on(views):
        launch_gradient(size, views, packed, weight, about, tau, outer, (gradient, along), of_tau)
    return gradient, of_tau


@_contrast_backward.register_fake
def _(outer: Tensor, views: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    return _gradients(views, rest[-1])


_contrast_backward.refuse_gradient()


def _gradients(views: Tensor, for_tau: bool) -> tuple[Tensor, Tensor]:
    gradient = torch.empty_like(views, memory_format=torch.contiguous_format)
    return gradient, views.new_empty(() if for_tau else 0, dtype=torch.float32)
