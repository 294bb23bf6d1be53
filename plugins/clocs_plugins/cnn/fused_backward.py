"""Launch the backward pass of the fused blocks. Formulas: fused_gradients.py.

One kernel differentiates the ReLU and the dropout of the last block, one differentiates each block, from the last to
the first, and one collects the gradients of all filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from clocs_plugins.cnn import fused_geometry as geometry
from clocs_plugins.cnn.fused_geometry import Block, Parameters, Plan
from clocs_plugins.cnn.fused_gradients import collect_kernel, differentiate_kernel, open_kernel
from clocs_plugins.cnn.fused_thin import differentiate_thin_kernel
from clocs_plugins.cnn.fused_tiles import launch

_COLUMNS = 32  # columns of the filters' gradient per program of collect_kernel


class _Share(NamedTuple):
    """The shares of one block's filter gradient: one (entries, after), padded, per program."""

    programs: int
    entries: int
    after: int


class _Sums(NamedTuple):
    """g of a block, and the share of its sums that each program left."""

    g: Tensor
    partial: Tensor
    programs: int


def run_backward(
    gradient: Tensor,
    signal: Tensor,
    parameters: Sequence[Parameters],
    plan: Plan,
    statistics: Tensor,
    kept: Tensor,
    scale: float,
    fold_first: bool,
) -> tuple[Tensor, Tensor]:
    """Compute the gradients of all parameters, in one buffer, and of the signals (empty unless fold_first)."""
    made, shares = signal.new_empty(plan.gradient_size), [_share(plan, number) for number in range(len(plan.blocks))]
    sizes = [share.programs * share.entries * share.after for share in shares]
    partial, partial_at = signal.new_empty(sum(sizes)), [sum(sizes[:number]) for number in range(len(sizes))]
    known = [statistics[start:] for start in plan.statistics_at]
    pooled = [kept[start:] for start in plan.pooled_at]
    sums = _open(gradient, plan.blocks[-1], parameters[-1], pooled[-1], known[-1], scale)
    for number in reversed(range(len(plan.blocks))):
        block, own, share = plan.blocks[number], parameters[number], shares[number]
        _, _, gamma_at, beta_at = plan.gradient_at[4 * number : 4 * number + 4]
        outputs = made[gamma_at:], made[beta_at:], partial[partial_at[number] :]
        if number == 0 and plan.thin:
            _differentiate_thin(signal, block, own, known[0], sums, share, outputs)
            continue
        raw = kept[plan.raw_at[number] :]
        before = (signal, parameters[0], known[0])  # the first block does not read the last two
        if number:
            before = (pooled[number - 1], parameters[number - 1], known[number - 1])
        sums = _differentiate(
            before, block, own, known[number], raw, sums, share, outputs, scale, number == 0, fold_first
        )
    _collect(partial, partial_at, made, plan, shares)
    return made, sums.g.view(signal.shape) if fold_first else signal.new_empty(0)


def _open(gradient: Tensor, block: Block, own: Parameters, pooled: Tensor, statistics: Tensor, scale: float) -> _Sums:
    tile = geometry.ELEMENTWISE
    programs = geometry.cut(block.signals * block.pooled, tile.rows, block.after)
    g = gradient.new_empty(block.signals * block.pooled * block.after)
    partial = gradient.new_empty(programs * 2 * block.after)
    launch(
        open_kernel, programs,
        gradient, *gradient.stride(), pooled, statistics, own.gamma, own.beta, scale, g, partial, block.signals,
        block.pooled,
        C=block.after, CP=geometry.power_of_two(block.after), ROWS=tile.rows, num_warps=tile.warps,
    )  # fmt: skip
    return _Sums(g, partial, programs)


def _share(plan: Plan, number: int) -> _Share:
    block = plan.blocks[number]
    if number == 0 and plan.thin:
        programs = geometry.cut(block.signals * block.pairs, geometry.THIN_DIFFERENTIATE.rows, block.after)
        entries = geometry.power_of_two(block.kernel) * block.before_padded
        return _Share(programs, entries, geometry.power_of_two(block.after))
    rows = geometry.tile_for(geometry.FILTER_ROWS, block)
    programs = geometry.cut(block.signals * block.pairs, rows, block.window_padded)
    return _Share(programs, block.window_padded, block.after_padded)


def _differentiate_thin(
    signal: Tensor,
    block: Block,
    own: Parameters,
    statistics: Tensor,
    sums: _Sums,
    share: _Share,
    outputs: tuple[Tensor, Tensor, Tensor],
) -> None:
    launch(
        differentiate_thin_kernel, share.programs,
        signal, *signal.stride(), own.weight, own.gamma, statistics, *sums, float(block.signals * block.positions),
        *outputs, block.signals, block.positions,
        K=block.kernel, S=block.stride, CI=block.before, CO=block.after, CIP=block.before_padded, COP=share.after,
        ENTRIES=share.entries, PARTS=geometry.power_of_two(sums.programs), ROWS=geometry.THIN_DIFFERENTIATE.rows,
        num_warps=geometry.THIN_DIFFERENTIATE.warps,
    )  # fmt: skip


def _differentiate(
    before: tuple[Tensor, Parameters, Tensor],
    block: Block,
    own: Parameters,
    statistics: Tensor,
    raw: Tensor,
    sums: _Sums,
    share: _Share,
    outputs: tuple[Tensor, Tensor, Tensor],
    scale: float,
    first: bool,
    fold_first: bool,
) -> _Sums:
    """Launch differentiate_kernel; return g and sums of the block before, or the gradient of the signals."""
    source, own_before, statistics_before = before
    fold = fold_first or not first
    tile = geometry.tile_for(geometry.DIFFERENTIATE, block)
    programs = geometry.cut(block.signals * block.spans, tile.rows, block.before) if fold else 0
    chunk = geometry.chunk_for(block, geometry.DIFFERENTIATE_CHUNK)
    g = source.new_empty(block.signals * block.length * block.before if fold else 0)
    partial = source.new_empty(programs * 2 * block.before)
    launch(
        differentiate_kernel, programs + share.programs * (share.entries // chunk),
        source, *(source.stride() if first else (0, 0, 0)), statistics_before, own_before.gamma, own_before.beta,
        own.weight, own.gamma, statistics, raw, *sums, scale, float(block.signals * block.positions),
        *outputs, g, partial, block.signals, block.length, block.positions, programs, share.programs,
        K=block.kernel, S=block.stride, CI=block.before, CO=block.after, CIP=block.before_padded,
        ENTRIES=share.entries, CHUNK=chunk, COP=share.after, SP=geometry.power_of_two(block.stride), FIRST=first,
        FOLD=fold, PARTS=geometry.power_of_two(sums.programs), PRECISION=geometry.PRECISION,
        INPUT_ROWS=tile.rows, FILTER_ROWS=geometry.tile_for(geometry.FILTER_ROWS, block), num_warps=tile.warps,
    )  # fmt: skip
    return _Sums(g, partial, programs)


def _collect(partial: Tensor, partial_at: Sequence[int], made: Tensor, plan: Plan, shares: Sequence[_Share]) -> None:
    """Launch collect_kernel, which gets the sizes of all blocks as compile-time constants."""
    about, begin = [], 0
    for number, (block, share) in enumerate(zip(plan.blocks, shares, strict=True)):
        weight_at, bias_at, *_ = plan.gradient_at[4 * number :]
        size = share.entries * share.after
        places = (partial_at[number], weight_at, bias_at, begin, size)
        sizes = (block.kernel, block.before, block.before_padded, block.after, share.after)
        about.append((*places, share.programs, geometry.power_of_two(share.programs), *sizes))
        begin += -(-size // _COLUMNS) * _COLUMNS
    launch(collect_kernel, begin // _COLUMNS, partial, made, BLOCKS=tuple(about), COLUMNS=_COLUMNS, num_warps=8)
