"""Sizes of the fused blocks: what a block makes of a batch, where results lie, and how kernels cut the work.

No triton here, so that shapes can be worked out where it is not installed.
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
    """What is learnt in one block."""

    weight: Tensor  # (after, before, kernel)
    gamma: Tensor  # (after,), as those below
    beta: Tensor
    bias: Tensor | None = None  # which the backward pass has no use for


class Tile(NamedTuple):
    """How many rows a program has in hand at a time, and how many warps work on them.

    A row is a pair of positions, which is one pooled sample.
    """

    rows: int
    warps: int


# These were chosen by compiling for sm_80, sm_90 and sm_100 without spills. The keys are padded lengths of a window,
# kernel times channels: 32 and 128 in the second and the third block of the paper.
CONVOLVE = {16: Tile(64, 4), 32: Tile(64, 4), 64: Tile(64, 4), 128: Tile(16, 4), 256: Tile(16, 4)}
DIFFERENTIATE = {16: Tile(64, 4), 32: Tile(64, 4), 64: Tile(32, 4), 128: Tile(16, 4), 256: Tile(16, 8)}
FILTER_ROWS = {16: 64, 32: 64, 64: 32, 128: 32, 256: 16}  # of the programs there that work on the filters
THIN_CONVOLVE, THIN_DIFFERENTIATE = Tile(256, 4), Tile(512, 4)  # the first block
ELEMENTWISE = Tile(64, 4)

# How many programs share the rows of a kernel at most: about twice the SMs of an H200. Each leaves one share of every
# sum, and all programs of the next kernel read all shares. Where a share is a few channels, there may be more programs:
# as many as leave so many values.
PROGRAMS = 256
SHARED_VALUES = 4096

# Products of float32 on tensor cores. Forward in six parts of bfloat16: 1e-6 of the exact one, as float32 itself. Less
# would make another sample the largest of its pool now and then, whose gradient then goes elsewhere: with three parts
# of bfloat16, 1e-5, a hundredth of a gradient. Backward nothing is compared, and three parts of bfloat16 are enough.
CONVOLVE_PRECISION = "bf16x6"  # "tf32x3" is as exact and as fast, and needs more registers
PRECISION = "bf16x3"

# Entries of a window that a program multiplies at a time: more need more registers than there are.
CONVOLVE_CHUNK = 32
DIFFERENTIATE_CHUNK = 64

LONGEST_WINDOW = 256  # entries, padded; what the tables above know
WIDEST = 64  # channels
THIN_WINDOW = 16  # entries; up to here they are multiplied one by one in the first block

_ALIGNED = 32  # values: everything starts at a multiple of 64 bytes, so that the compiler may load by fours


class Block(NamedTuple):
    """One block over one batch. Lengths are in samples of its own input, (signals, before, length)."""

    signals: int
    length: int
    before: int  # channels
    after: int  # channels
    kernel: int
    stride: int

    @property
    def positions(self) -> int:
        """Samples of the convolution. BatchNorm's statistics are of all of them."""
        return (self.length - self.kernel) // self.stride + 1

    @property
    def pooled(self) -> int:
        """Samples after pooling, which drops an odd last position."""
        return self.positions // 2

    @property
    def pairs(self) -> int:
        """Pairs of positions, the last of which may lack its odd one."""
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
        """Entries of a window, padded: tensor cores want 16 at least."""
        return max(16, power_of_two(self.kernel) * self.before_padded)

    @property
    def after_padded(self) -> int:
        """Output channels, padded: tensor cores want 16 at least where they are summed over."""
        return max(16, power_of_two(self.after))


class Plan(NamedTuple):
    """Where the results for a batch lie in the buffers of the fused blocks. Places and sizes are in values."""

    blocks: tuple[Block, ...]
    thin: bool  # the first block has its own kernels
    pooled_at: tuple[int, ...]  # in the buffer that is kept for the backward pass, as (signal, sample, channel)
    raw_at: tuple[int, ...]  # there too: every position, before pooling; not of a thin block, which makes them anew
    kept_size: int
    noise_at: tuple[int, ...]  # the random bits of every pooled value
    noise_size: int
    statistics_at: tuple[int, ...]  # mean, 1 / deviation, mean with bias, unbiased variance, each by channel
    statistics_size: int
    gradient_at: tuple[int, ...]  # of weight, bias, gamma and beta of the first block, then of the second, …
    gradient_size: int


def make_plan(signal: Tensor, weights: Sequence[Tensor], stride: int, fold_first: bool) -> Plan:
    """The plan for signals (n, channel, sample) and filters (after, before, kernel).

    fold_first: the signals get a gradient.
    """
    signals, _, length = map(int, signal.shape)  # where shapes are symbols, for these sizes: so are the tiles
    filters = tuple((int(one.shape[0]), int(one.shape[1]), int(one.shape[2])) for one in weights)
    plan = _plan if torch.compiler.is_compiling() else _kept_plan  # a compiler looks through a cache, and warns of it
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


_kept_plan = lru_cache(maxsize=64)(_plan)  # a step asks five times; a run has two sizes of a batch or three


def _follow(signals: int, length: int, filters: Iterable[tuple[int, int, int]], stride: int) -> Iterable[Block]:
    for after, before, kernel in filters:
        block = Block(signals, length, before, after, kernel, stride)
        length = block.pooled
        yield block


def _places(sizes: Iterable[int]) -> tuple[tuple[int, ...], int]:
    """Where things of so many values begin, one after the other, and where the last one ends."""
    *starts, end = accumulate((-(-size // _ALIGNED) * _ALIGNED for size in sizes), initial=0)
    return tuple(starts), end


def fits(block: Block) -> bool:
    """Whether a block is one that the kernels are made for. Places in memory are counted in 32 bits."""
    samples = block.signals * max(block.length * block.before, block.positions * block.after)
    columns = power_of_two(block.stride) * block.before_padded
    return (
        block.pooled > 0
        and block.after <= WIDEST
        and max(block.window_padded, columns) <= LONGEST_WINDOW
        and samples < 1 << 31
    )


def tile_for(table: dict[int, T], block: Block) -> T:
    """What a table has for the windows of a block."""
    return table[min(max(table), block.window_padded)]


def chunk_for(block: Block, most: int) -> int:
    """How many entries of a window a program multiplies at a time: whole samples, of all their channels."""
    return min(block.window_padded, max(most, block.before_padded))


def cut(rows: int, tile_rows: int, channels: int) -> int:
    """How many programs work on rows and leave sums by channel: each on as many tiles as the others, if that can be."""
    tiles = max(1, -(-rows // tile_rows))
    each = -(-tiles // max(PROGRAMS, SHARED_VALUES // channels))
    return -(-tiles // each)


def power_of_two(number: int) -> int:
    """The smallest power of two that is not below a positive number."""
    return 1 << (number - 1).bit_length()
