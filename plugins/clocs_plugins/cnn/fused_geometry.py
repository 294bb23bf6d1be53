"""Sizes of the fused blocks: shapes of a block's results, places in the buffers, and tiles of the kernels.

This module does not import triton, so that shapes can be computed where it is not installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


class Parameters(NamedTuple):
    """The trained parameters of one block."""

    weight: Tensor  # (after, before, kernel)
    gamma: Tensor  # (after,), as those below
    beta: Tensor
    bias: Tensor | None = None  # not used in the backward pass


class Tile(NamedTuple):
    """Rows that a program processes at a time, and its warps.

    A row is a pair of positions, which gives one pooled sample.
    """

    rows: int
    warps: int


# Chosen by compiling for sm_80, sm_90 and sm_100 without spills. The keys are padded lengths of a window, kernel times
# channels: 32 and 128 in the second and the third block of the paper.
CONVOLVE = {16: Tile(64, 4), 32: Tile(64, 4), 64: Tile(64, 4), 128: Tile(16, 4), 256: Tile(16, 4)}
DIFFERENTIATE = {16: Tile(64, 4), 32: Tile(64, 4), 64: Tile(32, 4), 128: Tile(16, 4), 256: Tile(16, 8)}
FILTER_ROWS = {16: 64, 32: 64, 64: 32, 128: 32, 256: 16}  # rows of DIFFERENTIATE's programs for the filters
THIN_CONVOLVE, THIN_DIFFERENTIATE = Tile(256, 4), Tile(512, 4)  # the first block
ELEMENTWISE = Tile(64, 4)

# Most programs of a kernel: about twice the SMs of an H200. Each program leaves one share of every sum, and all
# programs of the next kernel read all shares. With few channels there may be more programs, up to SHARED_VALUES values
# in all shares.
PROGRAMS = 256
SHARED_VALUES = 4096

# Products of float32 on tensor cores. Forward in six parts of bfloat16: within 1e-6 of the exact one, as float32
# itself. Lower precision sometimes changes which sample is the largest of its pool, and its gradient then goes
# elsewhere: with three parts of bfloat16, 1e-5, the gradient is off by a hundredth. Backward compares nothing, and
# three parts of bfloat16 are enough.
CONVOLVE_PRECISION = "bf16x6"  # "tf32x3" is as exact and as fast, and needs more registers
PRECISION = "bf16x3"

# Entries of a window that a program multiplies at a time: more would need more registers than there are.
CONVOLVE_CHUNK = 32
DIFFERENTIATE_CHUNK = 64

LONGEST_WINDOW = 256  # entries, padded; the largest key of the tables above
WIDEST = 64  # channels
THIN_WINDOW = 16  # entries; the first block multiplies up to this many one by one

_ALIGNED = 32  # values: everything starts at a multiple of 64 bytes, so that the compiler may load four at a time


class Block(NamedTuple):
    """The sizes of one block over one batch. Its input is (signals, before, length)."""

    signals: int
    length: int
    before: int  # channels
    after: int  # channels
    kernel: int
    stride: int

    @property
    def positions(self) -> int:
        """Samples of the convolution. BatchNorm's statistics cover all of them."""
        return (self.length - self.kernel) // self.stride + 1

    @property
    def pooled(self) -> int:
        """Samples after pooling, which drops an odd last position."""
        return self.positions // 2

    @property
    def pairs(self) -> int:
        """Pairs of positions; the last pair may lack its odd position."""
        return (self.positions + 1) // 2

    @property
    def spans(self) -> int:
        """Stretches of 2 * stride samples that cover the input: never fewer than pairs."""
        return -(-self.length // (2 * self.stride))

    @property
    def before_padded(self) -> int:
        """Channels of a window, padded to a power of two."""
        return power_of_two(self.before)

    @property
    def window_padded(self) -> int:
        """Entries of a window, padded: tensor cores need at least 16."""
        return max(16, power_of_two(self.kernel) * self.before_padded)

    @property
    def after_padded(self) -> int:
        """Output channels, padded: tensor cores need at least 16 to sum over."""
        return max(16, power_of_two(self.after))


class Plan(NamedTuple):
    """Places of the results for a batch in the buffers of the fused blocks. Places and sizes are in values."""

    blocks: tuple[Block, ...]
    thin: bool  # whether the first block uses the kernels of fused_thin
    pooled_at: tuple[int, ...]  # in the buffer kept for the backward pass, as (signal, sample, channel)
    raw_at: tuple[int, ...]  # in the same buffer: every position, before pooling; a thin block recomputes them
    kept_size: int
    noise_at: tuple[int, ...]  # random bits of every pooled value
    noise_size: int
    statistics_at: tuple[int, ...]  # mean, 1 / deviation, mean with bias, unbiased variance, each by channel
    statistics_size: int
    gradient_at: tuple[int, ...]  # weight, bias, gamma and beta of the first block, then of the second, …
    gradient_size: int


def make_plan(signal: Tensor, weights: Sequence[Tensor], stride: int, fold_first: bool) -> Plan:
    """Return the plan for signals (n, channel, sample) and filters (after, before, kernel).

    fold_first: whether the signals need a gradient.
    """
    signals, _, length = map(int, signal.shape)  # int: symbolic shapes become these sizes, as the tiles need
    filters = tuple((int(one.shape[0]), int(one.shape[1]), int(one.shape[2])) for one in weights)
    plan = _plan if torch.compiler.is_compiling() else _kept_plan  # torch.compile traces through caches with a warning
    return plan(signals, length, filters, stride, fold_first)


def _plan(signals: int, length: int, filters: tuple[tuple[int, int, int], ...], stride: int, fold_first: bool) -> Plan:
    blocks = tuple(_follow(signals, length, filters, stride))
    first = blocks[0]
    thin = not fold_first and first.kernel * first.before <= THIN_WINDOW
    pooled = [block.signals * block.pooled * block.after for block in blocks]
    raw = [block.signals * block.positions * block.after for block in blocks]
    if thin:
        raw[0] = 0
    kept_at, kept_size = _places(pooled + raw)
    noise_at, noise_size = _places(pooled)
    statistics_at, statistics_size = _places(4 * block.after for block in blocks)
    sizes = [(block.after * block.before * block.kernel, *(block.after,) * 3) for block in blocks]
    gradient_at, gradient_size = _places(size for four in sizes for size in four)
    return Plan(
        blocks,
        thin,
        kept_at[: len(blocks)],
        kept_at[len(blocks) :],
        kept_size,
        noise_at,
        noise_size,
        statistics_at,
        statistics_size,
        gradient_at,
        gradient_size,
    )


_kept_plan = lru_cache(maxsize=64)(_plan)  # a step calls it five times; a run has two or three batch sizes


def _follow(signals: int, length: int, filters: Iterable[tuple[int, int, int]], stride: int) -> Iterable[Block]:
    for after, before, kernel in filters:
        block = Block(signals, length, before, after, kernel, stride)
        length = block.pooled
        yield block


def _places(sizes: Iterable[int]) -> tuple[tuple[int, ...], int]:
    """Return the aligned starts of consecutive pieces of these sizes, and the end of the last one."""
    *starts, end = accumulate((-(-size // _ALIGNED) * _ALIGNED for size in sizes), initial=0)
    return tuple(starts), end


def fits(block: Block) -> bool:
    """Return whether the kernels support a block. They index memory with 32 bits."""
    samples = block.signals * max(block.length * block.before, block.positions * block.after)
    columns = power_of_two(block.stride) * block.before_padded
    return (
        block.pooled > 0
        and block.after <= WIDEST
        and max(block.window_padded, columns) <= LONGEST_WINDOW
        and samples < 1 << 31
    )


def tile_for(table: dict[int, T], block: Block) -> T:
    """Return a table's entry for the windows of a block."""
    return table[min(max(table), block.window_padded)]


def chunk_for(block: Block, most: int) -> int:
    """Return how many entries of a window a program multiplies at a time: whole samples with all channels."""
    return min(block.window_padded, max(most, block.before_padded))


def cut(rows: int, tile_rows: int, channels: int) -> int:
    """Return the number of programs for `rows`, so that all have about the same number of tiles."""
    tiles = max(1, -(-rows // tile_rows))
    each = -(-tiles // max(PROGRAMS, SHARED_VALUES // channels))
    return -(-tiles // each)


def power_of_two(number: int) -> int:
    """Return the smallest power of two that is not below a positive number."""
    return 1 << (number - 1).bit_length()
