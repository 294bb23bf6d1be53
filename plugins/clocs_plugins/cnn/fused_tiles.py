"""What the kernels of the fused blocks share: windows, products, statistics of a share of the rows, sums of shares.

A row is a pair of neighbouring positions of the convolution, 2 q and 2 q + 1: what one pooled sample is made of. A
window is `kernel` samples of all channels, in memory one stretch wherever features lie as (signal, sample, channel).
Sizes ending in P are padded to a power of two, which triton asks for.
"""

# Kernels are not Python: arguments are pointers and numbers of a device, and capitals are known when they are compiled.
# ruff: noqa: ANN001, ANN201, N803
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

# What dropout writes instead of a pooled sample: far from any, but finite, as infinity times a slope of zero is NaN. It
# comes out as zero, and no gradient goes back through it.
DROPPED = tl.constexpr(-1e30)


def launch(kernel: Any, programs: int, *arguments: Any, stages: int = 1, **constants: Any) -> None:
    """Start a kernel. Every start is made here; most are not pipelined, as no program has more than a few tiles."""
    kernel[(programs,)](*arguments, num_stages=stages, **constants)


# ---------------------------------------------------------------------------------------------- reading and multiplying


@triton.jit
def load_channels(vector, C: tl.constexpr, CP: tl.constexpr):
    """One number for each channel (CP,), zero beyond the last of them."""
    channel = tl.arange(0, CP)
    return tl.load(vector + channel, mask=channel < C, other=0.0)


@triton.jit
def repeat_channels(vector, CP: tl.constexpr, TIMES: tl.constexpr):
    """One number for each channel (CP,), so many times one after the other."""
    return tl.reshape(tl.broadcast_to(vector[None, :], (TIMES, CP)), (TIMES * CP,))


@triton.jit
def load_filters(weight, FROM: tl.constexpr, K: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, CIP: tl.constexpr,
                 CHUNK: tl.constexpr, COP: tl.constexpr):  # fmt: skip
    """Filters (after, before, tap) as a matrix (CHUNK, COP); its rows are entries of a window: by tap, then channel."""
    entry = FROM + tl.arange(0, CHUNK)[:, None]
    tap, before, after = entry // CIP, entry % CIP, tl.arange(0, COP)[None, :]
    real = (tap < K) & (before < CI) & (after < CO)
    return tl.load(weight + (after * CI + before) * K + tap, mask=real, other=0.0)


@triton.jit
def load_windows(source, signal, position, inside, length, stride_n, stride_c, stride_l, mean, slope, shift, begin,
                 K: tl.constexpr, S: tl.constexpr, CI: tl.constexpr, CIP: tl.constexpr,
                 CHUNK: tl.constexpr, FIRST: tl.constexpr):  # fmt: skip
    """Entries (rows, CHUNK) of the windows at positions of signals, zero where there is none; the first is `begin`.

    Of the FIRST block: of signals with any strides. Of others: of what the block before pooled, (signal, sample,
    channel) without gaps, with its BatchNorm, ReLU and dropout made here, on the way in.
    """
    entry = begin + tl.arange(0, CHUNK)[None, :]
    tap, channel = entry // CIP, entry % CIP
    real = inside[:, None] & (tap < K) & (channel < CI)
    if FIRST:
        start = signal * stride_n + position * S * stride_l
        windows = tl.load(source + start[:, None] + tap * stride_l + channel * stride_c, mask=real, other=0.0)
    else:
        start = (signal * length + position * S) * CI
        # Where channels fill their padding, a window is one stretch, and the compiler sees that it can load by fours.
        within = entry if CI == CIP else tap * CI + channel
        pooled = tl.load(source + start[:, None] + within, mask=real, other=DROPPED)
        windows = activate(pooled, mean[None, :], slope[None, :], shift[None, :])
    return windows


@triton.jit
def activate(pooled, mean, slope, shift):
    """BatchNorm, ReLU and dropout of pooled samples. Dropout's scale is in slope and shift. NaN stays NaN."""
    value = (pooled - mean) * slope + shift
    return tl.where((pooled == DROPPED) | (value <= 0), 0.0, value)


@triton.jit
def multiply(left, right, onto, PRECISION: tl.constexpr):
    """onto + left right. TF32 is rounded here: left to itself, the hardware cuts, which is a bias of 1e-3."""
    if PRECISION == "tf32":
        left = ((left.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
        right = ((right.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return tl.dot(left, right, onto, input_precision=PRECISION)


# -------------------------------------------------------------------------------------------------- pooling, statistics


@triton.jit
def odd_wins(even, odd, side):
    """Whether the odd position of a pair is pooled. By the sign of gamma; the first of equals wins, as in MaxPool1d."""
    return ((side > 0) & (odd > even)) | ((side < 0) & (odd < even))


@triton.jit
def store_pooled(z0, z1, side, noise, threshold, pooled_out, at, real, DROP: tl.constexpr):
    """Write what is pooled of both positions of pairs, DROPPED where the noise says so."""
    best = tl.where(odd_wins(z0, z1, side), z1, z0)
    if DROP:
        best = tl.where(tl.load(noise + at, mask=real, other=0).to(tl.int32) < threshold, DROPPED, best)
    tl.store(pooled_out + at, best, mask=real)


@triton.jit
def add_tile(z0, z1, even, odd, first, rows, pairs, positions, count, mean, square, ROWS: tl.constexpr,
             AXIS: tl.constexpr):  # fmt: skip
    """Count, mean and squared deviations by channel, with those of one more tile, whose rows are along an axis.

    z is zero where there is no position. After Chan, Golub and LeVeque (1979): exact for any mean, where a sum of
    squares loses digits to a large one.
    """
    end = tl.minimum(first + ROWS, rows)
    lone = (end // pairs - first // pairs) * (2 * pairs - positions)  # pairs without an odd position
    here = (2 * (end - first) - lone).to(tl.float32)
    mean_here = tl.sum(z0 + z1, AXIS) / here
    away0 = tl.where(even, z0 - tl.expand_dims(mean_here, AXIS), 0.0)
    away1 = tl.where(odd, z1 - tl.expand_dims(mean_here, AXIS), 0.0)
    moved, both = mean_here - mean, count + here
    square += tl.sum(away0 * away0 + away1 * away1, AXIS) + moved * moved * (count * here / both)
    return both, mean + moved * (here / both), square


@triton.jit
def store_moments(partial, count, mean, square, C: tl.constexpr, CP: tl.constexpr):
    """Write a program's share of the statistics: means and squared deviations by program, then all the counts."""
    channel = tl.arange(0, CP)
    mine = partial + tl.program_id(0) * (2 * C) + channel
    tl.store(mine, mean, mask=channel < C)
    tl.store(mine + C, square, mask=channel < C)
    tl.store(partial + tl.num_programs(0) * (2 * C) + tl.program_id(0), count)


@triton.jit
def merge_moments(partial, parts, total, C: tl.constexpr, CP: tl.constexpr, PARTS: tl.constexpr):
    """Mean and biased variance (CP,) of a channel by the shares of all programs, merged as tiles are."""
    part, channel = tl.arange(0, PARTS), tl.arange(0, CP)[None, :]
    real = (part < parts)[:, None] & (channel < C)
    count = tl.load(partial + parts * 2 * C + part, mask=part < parts, other=0.0)[:, None]
    means = tl.load(partial + part[:, None] * (2 * C) + channel, mask=real, other=0.0)
    squares = tl.load(partial + part[:, None] * (2 * C) + C + channel, mask=real, other=0.0)
    mean = tl.sum(count * means, 0) / total
    away = means - mean[None, :]
    return mean, tl.sum(squares + count * away * away, 0) / total


@triton.jit
def add_shares(sums, parts, C: tl.constexpr, CP: tl.constexpr, PARTS: tl.constexpr):
    """Two sums for each channel (CP,) by the shares of all programs."""
    part, channel = tl.arange(0, PARTS)[:, None], tl.arange(0, CP)[None, :]
    real = (part < parts) & (channel < C)
    first = tl.load(sums + part * (2 * C) + channel, mask=real, other=0.0)
    second = tl.load(sums + part * (2 * C) + C + channel, mask=real, other=0.0)
    return tl.sum(first, 0), tl.sum(second, 0)
