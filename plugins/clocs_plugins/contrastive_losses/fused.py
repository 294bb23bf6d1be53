"""The losses in Triton, as one operator that torch.compile and CUDA graphs take as it is.

A forward pass launches `pack`, `others` (patient-NCE only), `sums` and `loss`, and adds the parts of the loss up
where more than one program had it. A backward pass launches `gradient`, then `gather` unless one program had all the
tiles of a few rows, and adds up for the temperature if that wants a gradient. Nothing waits for the device, no shape
depends on the data, and nothing is added atomically.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import attrs
import torch
from torch import Tensor

from clocs_plugins.contrastive_losses.early_start import starts_early
from clocs_plugins.contrastive_losses.finish import add_kernel, fold_kernel, gather_kernel, loss_kernel
from clocs_plugins.contrastive_losses.packing import groups_kernel, others_kernel, pack_kernel
from clocs_plugins.contrastive_losses.shapes import Shapes, choose_shapes, is_roomy, padded, power_of_two
from clocs_plugins.contrastive_losses.tiles import gradient_kernel, sums_kernel

__all__ = ["NT_XENT", "PAPER", "RELEASED", "contrast"]

PAPER, RELEASED, NT_XENT = 0, 1, 2  # as finish.py numbers them
COUNTED = 8192
"""Up to this batch, ids are sorted by comparing all of them: 67 million comparisons are faster than ten launches."""
FEW = 2048
"""Up to this batch a kernel waits more for memory than it computes."""
MOST_PARTS = 2**27
"""How many parts of row sums are kept at a time, 512 MB. Where there are more, pairs of views take turns."""
ROOM = 4096
"""Numbers of a tile of gradients, beside which a program has registers for what makes the gradient of x of them."""
ELEMENTS = 2048
"""What a program of 128 threads has at once in kernels that only read and write: 16 numbers a thread."""


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
    """The loss of one kind of embeddings (view, batch, dim), divided by `pairs`, as a float32 scalar.

    patient: ids (batch,), or None for NT-Xent. two: float16 in two halves, which is nearly float32.
    shapes: other tiles than those of the table.
    """
    if patient is not None and patient.dtype not in (torch.int32, torch.int64):
        patient = patient.to(torch.int64)
    tensor = temperature.to(views.device) if isinstance(temperature, Tensor) else None
    tau = 1.0 if isinstance(temperature, Tensor) else float(temperature)
    numbers = shapes.as_numbers() if shapes else []
    loss: Tensor
    loss, *_ = _contrast(views, patient, tensor, tau, kind, 1 / pairs, two, numbers)
    return loss


@attrs.frozen
class _Sizes:
    """The sizes of one call, and the settings that every launch needs."""

    views: int
    batch: int
    dim: int
    kind: int
    two: bool
    shapes: Shapes
    early: bool  # whether a kernel may start before the last one has ended, to wait for it there

    @property
    def rows(self) -> int:
        return self.shapes.padded_rows(self.batch)

    @property
    def columns(self) -> int:
        return padded(self.dim)

    @property
    def column_blocks(self) -> int:
        return math.ceil(self.batch / self.shapes.sums.columns)

    @property
    def beside(self) -> int:
        """How many views a view is compared with."""
        return self.views if self.alone else self.views - 1

    @property
    def pairs(self) -> int:
        return self.views * (self.views + (1 if self.alone else -1)) // 2

    @property
    def alone(self) -> bool:
        """Whether a view is compared with itself, and no patient is known."""
        return self.kind == NT_XENT

    def packed(self) -> tuple[int, ...]:
        return (2 if self.two else 1, self.views, self.rows, self.columns)


def _sizes(views: Tensor, kind: int, two: bool, numbers: list[int]) -> _Sizes:
    count, batch, dim = map(int, views.shape)  # under torch.compile, for this size: so are the tiles
    if numbers:
        shapes = Shapes.from_numbers(numbers)
    else:
        roomy = is_roomy(views.device.type, views.device.index)
        shapes = choose_shapes(batch, dim, count, two=two, alone=kind == NT_XENT, roomy=roomy)
    return _Sizes(count, batch, dim, kind, two, shapes, starts_early(views.device))


def _saved(size: _Sizes, like: Tensor) -> tuple[Tensor, ...]:
    """Memory for the loss, and for what the backward pass reads: as much as the operator returns."""
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


@torch.library.custom_op(
    "clocs::contrast",
    mutates_args=(),
    schema="(Tensor views, Tensor? patient, Tensor? temperature, float tau, int kind, float share, bool two, "
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
    size = _sizes(views, kind, two, shapes)
    saved = _saved(size, views)
    with _launching_on(views):
        _forward(size, views, patient, tau if temperature is None else temperature, share, saved)
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
    return _saved(_sizes(views, kind, two, shapes), views)


def _forward(
    size: _Sizes,
    views: Tensor,
    patient: Tensor | None,
    tau: float | Tensor,
    share: float,
    saved: tuple[Tensor, ...],
) -> None:
    """Launch the forward pass, into `saved`."""
    loss, packed, total, inverse, weight, scalars, others, count = saved
    diagonal = views.new_empty(size.batch, dtype=torch.float32)
    ahead = pulled = None
    if patient is None:
        _pack(size, views, None, (packed, total, inverse, diagonal), (None,) * 4)
    else:
        order, first, ahead = (torch.empty_like(count) for _ in range(3))
        pulled = views.new_empty((size.views, size.batch), dtype=torch.float32)
        _pack(size, views, patient, (packed, total, inverse, diagonal), (order, first, count, ahead))
        # Few patients come twice, so most programs have nothing to do: of many, two instances and one warp for each.
        rows, warps = (1, 4) if size.batch <= FEW else (2, 1)
        others_kernel[(math.ceil(size.batch / rows), size.views)](
            packed, total, order, first, count, others, pulled, size.batch, size.rows, size.views,
            DIM=size.columns, TWO=size.two, AT_ONCE=max(1, ELEMENTS // 2 // size.columns), ROWS=rows,
            EARLY=size.early, num_warps=warps, launch_pdl=size.early,
        )  # fmt: skip
    row_parts, column_sums, folded = _sums(size, packed, tau)
    _loss(size, (row_parts, column_sums, ahead, diagonal, pulled), tau, share, (weight, scalars, loss), folded)


def _pack(
    size: _Sizes,
    views: Tensor,
    patient: Tensor | None,
    result: tuple[Tensor, ...],
    groups: tuple[Tensor | None, ...],
) -> None:
    at_once = min(power_of_two(size.views), max(1, 4 * ELEMENTS // size.columns))
    elements = ELEMENTS if size.batch > FEW else ELEMENTS // 2  # more programs, since one alone has long to wait
    rows = max(1, min(16, elements // (at_once * size.columns)))
    ids = patient if size.batch <= COUNTED else None
    pack_kernel[(math.ceil(size.rows / rows),)](
        views, ids, *result, *((None,) * 4 if ids is None else groups),
        size.batch, size.rows, size.views, size.dim, *views.stride(), 0 if ids is None else ids.stride(0),
        ROWS=rows, VIEWS=at_once, DIM=size.columns, TWO=size.two,
        SORT=ids is not None, RELEASED=size.kind == RELEASED, AT_ONCE=256, EARLY=size.early, launch_pdl=size.early,
    )  # fmt: skip
    if patient is not None and ids is None:
        sorted_ids, sorted_order = patient.contiguous().sort(stable=True)
        groups_kernel[(math.ceil(size.batch / 128),)](
            sorted_ids, sorted_order, *groups, size.batch, size.batch.bit_length(),
            RELEASED=size.kind == RELEASED, PLACES=128, EARLY=size.early, launch_pdl=size.early,
        )  # fmt: skip


def _sums(size: _Sizes, packed: Tensor, tau: float | Tensor) -> tuple[Tensor, Tensor, bool]:
    """Row sums in parts, column sums, and whether the row sums were added up already, for want of memory."""
    tile, blocks = size.shapes.sums, size.column_blocks
    group = min(size.pairs, max(1, MOST_PARTS // (blocks * size.rows)))
    folded = group < size.pairs
    row_parts = packed.new_empty((group, blocks, size.rows), dtype=torch.float32)
    column_sums = packed.new_empty((size.views, size.views, size.rows), dtype=torch.float32)
    for first in range(0, size.pairs, group):
        sums_kernel[(size.views**2, blocks)](
            packed, tau, row_parts, column_sums, size.batch, size.rows, size.views, blocks, first, group,
            SELF=size.alone, TENSOR=isinstance(tau, Tensor), ROWS=tile.rows, COLUMNS=tile.columns, DIM=size.columns,
            TWO=size.two, EARLY=size.early, num_warps=tile.warps, num_stages=tile.stages, launch_pdl=size.early,
        )  # fmt: skip
        if folded:
            rows = math.gcd(size.rows, 256)
            fold_kernel[(size.views**2, size.rows // rows)](
                row_parts, column_sums, size.rows, size.views, blocks, first, group,
                SELF=size.alone, TILE_ROWS=tile.rows, TILE_COLUMNS=tile.columns, ROWS=rows, AT_ONCE=16,
                EARLY=size.early, launch_pdl=size.early,
            )  # fmt: skip
    return row_parts, column_sums, folded


def _loss(
    size: _Sizes,
    given: tuple[Tensor | None, ...],
    tau: float | Tensor,
    share: float,
    result: tuple[Tensor, ...],
    folded: bool,
) -> None:
    weight, scalars, loss = result
    rows = math.gcd(size.rows, 256 if size.column_blocks <= 64 else 64)  # fewer, where each adds many parts up
    tasks = size.pairs * (size.rows // rows)
    programs = min(tasks, 1024)
    parts = loss if programs == 1 else loss.new_empty(programs)
    loss_kernel[(programs,)](
        *given, tau, share, weight, scalars, parts, size.batch, size.rows, size.views, size.column_blocks, size.pairs,
        KIND=size.kind, FOLDED=folded, TENSOR=isinstance(tau, Tensor), TILE_ROWS=size.shapes.sums.rows,
        TILE_COLUMNS=size.shapes.sums.columns, ROWS=rows, AT_ONCE=min(power_of_two(size.column_blocks), 4096 // rows),
        COUNT_AT_ONCE=min(power_of_two(size.batch), 1024), EARLY=size.early, launch_pdl=size.early,
    )  # fmt: skip
    if programs > 1:
        add_kernel[(1,)](
            parts, loss, None, programs, FOR_TAU=False, TENSOR=False, AT_ONCE=256,
            EARLY=size.early, launch_pdl=size.early,
        )  # fmt: skip


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    views, _, temperature, ctx.tau, ctx.kind, _, ctx.two, ctx.shapes = inputs
    ctx.save_for_backward(views, temperature, *output[1:])
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)  # or torch fills a gradient of zeros for each of the others


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


@torch.library.custom_op(
    "clocs::contrast_backward",
    mutates_args=(),
    schema="(Tensor outer, Tensor views, Tensor? temperature, Tensor packed, Tensor total, Tensor inverse, "
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
    size = _sizes(views, kind, two, shapes)
    gradient, of_tau = _gradients(views, for_tau)
    known = tau if temperature is None else temperature
    along = views.new_empty((size.views, size.batch), dtype=torch.float32) if for_tau else None
    about = (total, inverse, others, count, scalars)
    with _launching_on(views):
        _gradient(size, views, packed, weight, about, known, outer, (gradient, along))
        if along is not None:
            add_kernel[(1,)](
                along, of_tau, known, along.numel(), FOR_TAU=True, TENSOR=True, AT_ONCE=4096,
                EARLY=size.early, launch_pdl=size.early,
            )  # fmt: skip
    return gradient, of_tau


@_contrast_backward.register_fake
def _(outer: Tensor, views: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    return _gradients(views, rest[-1])


def _gradients(views: Tensor, for_tau: bool) -> tuple[Tensor, Tensor]:
    gradient = torch.empty_like(views, memory_format=torch.contiguous_format)
    return gradient, views.new_empty(() if for_tau else 0, dtype=torch.float32)


def _gradient(
    size: _Sizes,
    views: Tensor,
    packed: Tensor,
    weight: Tensor,
    about: tuple[Tensor, ...],
    tau: float | Tensor,
    outer: Tensor,
    result: tuple[Tensor, Tensor | None],
) -> None:
    """Launch the tiles of the gradient, and what makes the gradient of their sums. Into `result`."""
    tile, parts = size.shapes.gradient, size.shapes.parts
    whole = parts == 1 and tile.rows * size.columns <= ROOM
    summed = None if whole else _room_for_sums(size, result[0], parts)
    tiles = size.beside * (size.rows // tile.columns)
    sizes = (size.batch, size.rows, size.views, size.dim)
    for_tau, tensor = result[1] is not None, isinstance(tau, Tensor)
    gradient_kernel[(size.rows // tile.rows, size.views, parts)](
        packed, tau, weight, summed, views, *about, outer, *result, *sizes, math.ceil(tiles / parts), *views.stride(),
        SELF=size.alone, ONE_OTHER=size.views == 2 and not size.alone, PADDED=size.rows != size.batch,
        TENSOR=tensor, WHOLE=whole, FOR_TAU=for_tau,
        ROWS=tile.rows, COLUMNS=tile.columns, DIM=size.columns, TWO=size.two, EARLY=size.early,
        num_warps=tile.warps, num_stages=tile.stages, launch_pdl=size.early,
    )  # fmt: skip
    if not whole:
        rows = max(1, ELEMENTS // size.columns)
        gather_kernel[(math.ceil(size.batch / rows), size.views)](
            summed, packed, views, *about, tau, outer, *result, *sizes, *views.stride(),
            PARTS=parts, TENSOR=tensor, PATIENTS=not size.alone, FOR_TAU=for_tau,
            ROWS=rows, DIM=size.columns, TWO=size.two, EARLY=size.early, launch_pdl=size.early,
        )  # fmt: skip


def _room_for_sums(size: _Sizes, gradient: Tensor, parts: int) -> Tensor:
    """The sums g of the tiles, as (part, view, row, dim)."""
    shape = (parts, *size.packed()[1:])
    # What needs no addition and no padding is put where the gradient will be, and changed there.
    in_place = gradient.dtype == torch.float32 and gradient[None].shape == shape
    return gradient[None] if in_place else gradient.new_empty(shape, dtype=torch.float32)


def _launching_on(tensor: Tensor) -> AbstractContextManager[Any]:
    """Triton launches on the current device, which need not be the tensor's."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()
