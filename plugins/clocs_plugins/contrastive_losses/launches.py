"""Launch the kernels of each pass, with their numbers of programs and the memory between them.

A forward pass launches `pack`, `others` (patient-NCE only), `sums` and `loss`, and adds up the parts of the loss if
several programs computed it. A backward pass launches `gradient`, then `gather` unless one program had all the tiles
of a few rows, and a sum for the temperature if that requires a gradient. There is no host sync, no shape depends on
the data, and there are no atomic additions.

Of several processes, each has the sums and the gradients of its own rows only: `own_sums` takes the place of `sums`,
and `loss` reads the sums of all processes.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import attrs
import torch
from torch import Tensor

from clocs_plugins.contrastive_losses.gradient_helpers import gather_kernel
from clocs_plugins.contrastive_losses.loss_kernels import add_kernel, loss_kernel
from clocs_plugins.contrastive_losses.own_sums import own_sums_kernel
from clocs_plugins.contrastive_losses.packing import groups_kernel, others_kernel, pack_kernel
from clocs_plugins.contrastive_losses.row_sums import fold_kernel
from clocs_plugins.contrastive_losses.shapes import Shapes, padded, power_of_two
from clocs_plugins.contrastive_losses.tiles import gradient_kernel, sums_kernel

PAPER, RELEASED, NT_XENT = 0, 1, 2  # as loss_kernels.py numbers them
COUNTED = 8192
"""Up to this batch, ids are sorted by comparing all of them: 67 million comparisons are faster than ten launches."""
FEW = 2048
"""Up to this batch size a kernel spends more time waiting for memory than computing."""
MOST_PARTS = 2**27
"""Parts of row sums kept at a time, 512 MB. With more, pairs of views take turns."""
PROGRAMS = 528
"""Programs wanted for the sums of own rows, four per multiprocessor of an H200. Fewer blocks are computed in parts."""
WORTH_PARTS = 8
"""With fewer tiles than this, one program sums a whole row: a kernel that adds up parts costs as much as some tiles."""
ROOM = 4096
"""Largest tile of gradients, in numbers, that leaves a program registers to compute the gradient of x as well."""
ELEMENTS = 2048
"""Numbers that a program of 128 threads holds at once in kernels that only read and write: 16 per thread."""


Pulls: TypeAlias = tuple[Tensor | None, Tensor, Tensor | None]
"""Tensors that the loss reads: `ahead`, `diagonal` and `pulled` of packing.py, None where patients do not count."""


@attrs.frozen
class Sizes:
    """The sizes of one call, and the settings that every launch needs."""

    views: int
    batch: int
    dim: int
    kind: int
    two: bool
    shapes: Shapes
    early: bool  # whether a kernel may start before the last one has ended, and then wait for it
    first: int  # first row of the batch whose sums and gradients are computed
    own: int  # number of such rows

    @property
    def rows(self) -> int:
        """Rows of a view, padded to whole tiles."""
        return self.shapes.padded_rows(self.batch, some=self.some)

    @property
    def some(self) -> bool:
        """Whether only some rows are computed: other processes have the others."""
        return self.own < self.batch

    @property
    def own_rows(self) -> int:
        """Own rows of a view, padded to whole tiles of the gradient."""
        tile = self.shapes.gradient.rows
        return math.ceil(self.own / tile) * tile if self.some else self.rows

    @property
    def columns(self) -> int:
        """Numbers of an embedding, padded to a power of two."""
        return padded(self.dim)

    @property
    def column_blocks(self) -> int:
        """Number of parts of the sum over a row."""
        return math.ceil(self.batch / self.shapes.sums.columns)

    @property
    def beside(self) -> int:
        """Number of views that a view is compared with."""
        return self.views if self.alone else self.views - 1

    @property
    def pairs(self) -> int:
        """Pairs of views, each counted once, including each view with itself if it is compared with itself."""
        return self.views * (self.views + (1 if self.alone else -1)) // 2

    @property
    def alone(self) -> bool:
        """Whether a view is compared with itself and patients are ignored: NT-Xent."""
        return self.kind == NT_XENT

    def packed(self) -> tuple[int, ...]:
        """Return the shape of the embeddings that the tiles read: (half, view, row, dim)."""
        return (2 if self.two else 1, self.views, self.rows, self.columns)


def launch_forward(
    size: Sizes,
    views: Tensor,
    patient: Tensor | None,
    tau: float | Tensor,
    share: float,
    saved: tuple[Tensor, ...],
) -> None:
    """Launch the forward pass, into `saved`."""
    pulls = launch_packing(size, views, patient, saved)
    row_parts, column_sums, folded = _sums(size, saved[1], tau)
    _loss(size, (row_parts, column_sums, *pulls), tau, share, saved, folded)


def launch_packing(size: Sizes, views: Tensor, patient: Tensor | None, saved: tuple[Tensor, ...]) -> Pulls:
    """Launch the kernels before the tiles, into `saved`."""
    _, packed, total, inverse, _, _, others, count = saved
    diagonal = views.new_empty(size.batch, dtype=torch.float32)
    ahead = pulled = None
    if patient is None:
        _pack(size, views, None, (packed, total, inverse, diagonal), (None,) * 4)
    else:
        order, first, ahead = (torch.empty_like(count) for _ in range(3))
        pulled = views.new_empty((size.views, size.batch), dtype=torch.float32)
        _pack(size, views, patient, (packed, total, inverse, diagonal), (order, first, count, ahead))
        # Few patients occur twice, so most programs are idle: in large batches each has two instances and one warp.
        rows, warps = (1, 4) if size.batch <= FEW else (2, 1)
        others_kernel[(math.ceil(size.batch / rows), size.views)](
            packed, total, order, first, count, others, pulled, size.batch, size.rows, size.views,
            DIM=size.columns, TWO=size.two, AT_ONCE=max(1, ELEMENTS // 2 // size.columns), ROWS=rows,
            EARLY=size.early, num_warps=warps, launch_pdl=size.early,
        )  # fmt: skip
    return ahead, diagonal, pulled


def launch_own_sums(size: Sizes, packed: Tensor, tau: float | Tensor) -> Tensor:
    """Return the sums of the own rows (view, other view, own)."""
    tile, blocks = size.shapes.sums, math.ceil(size.own / size.shapes.sums.columns)
    tiles = math.ceil(size.batch / tile.rows)
    wanted = PROGRAMS // max(1, size.views * size.beside * blocks)
    parts = max(1, min(wanted, tiles // 2)) if tiles >= WORTH_PARTS else 1
    each = math.ceil(tiles / parts)
    parts = math.ceil(tiles / each)
    sums = packed.new_empty((parts, size.views, size.views, size.own), dtype=torch.float32)
    if blocks:
        own_sums_kernel[(size.views**2, blocks, parts)](
            packed, tau, sums, size.batch, size.rows, size.views, size.first, size.own, each,
            SELF=size.alone, TENSOR=isinstance(tau, Tensor), ROWS=tile.rows, COLUMNS=tile.columns, DIM=size.columns,
            TWO=size.two, EARLY=size.early, num_warps=tile.warps, num_stages=tile.stages, launch_pdl=size.early,
        )  # fmt: skip
    return sums.sum(0) if parts > 1 else sums[0]


def launch_loss(
    size: Sizes, sums: Tensor, pulls: Pulls, tau: float | Tensor, share: float, saved: tuple[Tensor, ...]
) -> None:
    """Launch the loss and the weights of the whole batch from the sums (view, other view, batch) of all processes."""
    padded = sums.contiguous()
    if size.rows > size.batch:
        padded = sums.new_empty((size.views, size.views, size.rows))
        padded[:, :, : size.batch] = sums
    _loss(size, (None, padded, *pulls), tau, share, saved, folded=True)


def _pack(
    size: Sizes,
    views: Tensor,
    patient: Tensor | None,
    result: tuple[Tensor, ...],
    groups: tuple[Tensor | None, ...],
) -> None:
    at_once = min(power_of_two(size.views), max(1, 4 * ELEMENTS // size.columns))
    elements = ELEMENTS if size.batch > FEW else ELEMENTS // 2  # small batches: more programs hide the memory latency
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


def _sums(size: Sizes, packed: Tensor, tau: float | Tensor) -> tuple[Tensor, Tensor, bool]:
    """Return row sums in parts, column sums, and whether the row sums were already added up to save memory."""
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
    size: Sizes,
    given: tuple[Tensor | None, ...],
    tau: float | Tensor,
    share: float,
    saved: tuple[Tensor, ...],
    folded: bool,
) -> None:
    loss, _, _, _, weight, scalars, _, _ = saved
    rows = math.gcd(size.rows, 256 if size.column_blocks <= 64 else 64)  # fewer if each adds up many parts
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


def launch_gradient(
    size: Sizes,
    views: Tensor,
    packed: Tensor,
    weight: Tensor,
    about: tuple[Tensor, ...],
    tau: float | Tensor,
    outer: Tensor,
    result: tuple[Tensor, Tensor | None],
    of_tau: Tensor,
) -> None:
    """Launch the backward pass: tiles, the gradient from their sums, and the sum for the temperature.

    result: buffers for the gradient and, if the temperature requires one, for its part along x, summed in `of_tau`.
    """
    tile, parts = size.shapes.gradient, size.shapes.parts
    whole = parts == 1 and tile.rows * size.columns <= ROOM
    summed = None if whole else _room_for_sums(size, result[0], parts)
    tiles = size.beside * (size.rows // tile.columns)
    sizes = (size.batch, size.rows, size.views, size.dim)
    own = (size.first, size.own, size.own_rows)
    for_tau, tensor = result[1] is not None, isinstance(tau, Tensor)
    gradient_kernel[(size.own_rows // tile.rows, size.views, parts)](
        packed, tau, weight, summed, views, *about, outer, *result, *sizes, math.ceil(tiles / parts), *own,
        *views.stride(),
        SELF=size.alone, ONE_OTHER=size.views == 2 and not size.alone, PADDED=size.rows != size.batch, SOME=size.some,
        TENSOR=tensor, WHOLE=whole, FOR_TAU=for_tau,
        ROWS=tile.rows, COLUMNS=tile.columns, DIM=size.columns, TWO=size.two, EARLY=size.early,
        num_warps=tile.warps, num_stages=tile.stages, launch_pdl=size.early,
    )  # fmt: skip
    if not whole:
        rows = max(1, ELEMENTS // size.columns)
        gather_kernel[(math.ceil(size.own / rows), size.views)](
            summed, packed, views, *about, tau, outer, *result, *sizes, *own, *views.stride(),
            PARTS=parts, SOME=size.some, TENSOR=tensor, PATIENTS=not size.alone, FOR_TAU=for_tau,
            ROWS=rows, DIM=size.columns, TWO=size.two, EARLY=size.early, launch_pdl=size.early,
        )  # fmt: skip
    along = result[1]
    if along is not None:
        add_kernel[(1,)](
            along, of_tau, tau, along.numel(), FOR_TAU=True, TENSOR=True, AT_ONCE=4096,
            EARLY=size.early, launch_pdl=size.early,
        )  # fmt: skip


def _room_for_sums(size: Sizes, gradient: Tensor, parts: int) -> Tensor:
    """Return memory for the sums g of the tiles (part, view, row, dim)."""
    shape = (parts, size.views, size.own_rows, size.columns)
    # Sums without parts or padding go into the memory of the gradient and are changed in place.
    in_place = gradient.dtype == torch.float32 and gradient[None].shape == shape
    return gradient[None] if in_place else gradient.new_empty(shape, dtype=torch.float32)
