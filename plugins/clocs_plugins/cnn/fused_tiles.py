"""Helpers of the fused kernels: windows, products, statistics of a share of the rows, sums of shares.

A row is a pair of neighbouring positions of the convolution, 2 q and 2 q + 1, which gives one pooled sample. A window
is `kernel` samples of all channels; it is contiguous where features are stored as (signal, sample, channel). Sizes
ending in P are padded to a power of two, as triton requires.
"""

# Triton compiles kernels: arguments are device pointers and numbers, capitals are compile-time constants.
# ruff: noqa: ANN001, ANN201, N803
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

# Dropout writes this instead of a pooled sample: unlike any sample, but finite, because infinity times a slope of zero
# is NaN. It becomes zero in the output and gets no gradient.
DROPPED = tl.constexpr(-1e30)


def launch(kernel: Any, programs: int, *arguments: Any, stages: int = 1, **constants: Any) -> None:
    """Launch a kernel. Most are not pipelined, because no program has more than a few tiles."""
    kernel[(programs,)](*arguments, num_stages=stages, **constants)


# ---------------------------------------------------------------------------------------------- reading and multiplying


@triton.jit
def load_channels(vector, C: tl.constexpr, CP: tl.constexpr):
    """Load one number for each channel (CP,), zero beyond the last channel."""
    channel = tl.arange(0, CP)
    return tl.load(vector + channel, mask=channel < C, other=0.0)


@triton.jit
def repeat_channels(vector, CP: tl.constexpr, TIMES: tl.constexpr):
    """Repeat a vector (CP,) TIMES times."""
    return tl.reshape(tl.broadcast_to(vector[None, :], (TIMES, CP)), (TIMES * CP,))


@triton.jit
def load_filters(weight, FROM: tl.constexpr, K: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, CIP: tl.constexpr,
                 CHUNK: tl.constexpr, COP: tl.constexpr):  # fmt: skip
    """Load filters (after, before, tap) as (CHUNK, COP); its rows are entries of a window: by tap, then channel."""
    entry = FROM + tl.arange(0, CHUNK)[:, None]
    tap, before, after = entry // CIP, entry % CIP, tl.arange(0, COP)[None, :]
    real = (tap < K) & (before < CI) & (after < CO)
    return tl.load(weight + (after * CI + before) * K + tap, mask=real, other=0.0)


@triton.jit
def load_windows(source, signal, position, inside, length, stride_n, stride_c, stride_l, mean, slope, shift, begin,
                 K: tl.constexpr, S: tl.constexpr, CI: tl.constexpr, CIP: tl.constexpr,
                 CHUNK: tl.constexpr, FIRST: tl.constexpr):  # fmt: skip
    """Load entries (rows, CHUNK), from `begin` on, of the windows at positions of signals; zero where there is none.

    The FIRST block reads signals with any strides. Other blocks read the pooled samples of the block before,
    contiguous (signal, sample, channel), and apply its BatchNorm, ReLU and dropout here.
    """
    entry = begin + tl.arange(0, CHUNK)[None, :]
    tap, channel = entry // CIP, entry % CIP
    real = inside[:, None] & (tap < K) & (channel < CI)
    if FIRST:
        start = signal * stride_n + position * S * stride_l
        windows = tl.load(source + start[:, None] + tap * stride_l + channel * stride_c, mask=real, other=0.0)
    else:
        start = (signal * length + position * S) * CI
        # Without padded channels a window is contiguous, and the compiler sees that it can load four values at a time.
        within = entry if CI == CIP else tap * CI + channel
        pooled = tl.load(source + start[:, None] + within, mask=real, other=DROPPED)
        windows = activate(pooled, mean[None, :], slope[None, :], shift[None, :])
    return windows


@triton.jit
def activate(pooled, mean, slope, shift):
    """Apply BatchNorm, ReLU and dropout to pooled samples. slope and shift include dropout's scale. NaN stays NaN."""
    value = (pooled - mean) * slope + shift
    return tl.where((pooled == DROPPED) | (value <= 0), 0.0, value)


@triton.jit
def multiply(left, right, onto, PRECISION: tl.constexpr):
    """Compute onto + left right. TF32 is rounded here: the hardware would truncate, which is a bias of 1e-3."""
    if PRECISION == "tf32":
        left = ((left.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
        right = ((right.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return tl.dot(left, right, onto, input_precision=PRECISION)


# -------------------------------------------------------------------------------------------------- pooling, statistics


@triton.jit
def odd_wins(even, odd, side):
    """Return whether the odd position of a pair is pooled: by gamma's sign; the first of equals, as in MaxPool1d."""
    return ((side > 0) & (odd > even)) | ((side < 0) & (odd < even))


@triton.jit
def store_pooled(z0, z1, side, noise, threshold, pooled_out, at, real, DROP: tl.constexpr):
    """Store the pooled sample of each pair of positions, or DROPPED where the noise is below the threshold."""
    best = tl.where(odd_wins(z0, z1, side), z1, z0)
    if DROP:
        best = tl.where(tl.load(noise + at, mask=real, other=0).to(tl.int32) < threshold, DROPPED, best)
    tl.store(pooled_out + at, best, mask=real)


@triton.jit
def add_tile(z0, z1, even, odd, first, rows, pairs, positions, count, mean, square, ROWS: tl.constexpr,
             AXIS: tl.constexpr):  # fmt: skip
    """Merge one more tile, whose rows are along AXIS, into count, mean and squared deviations by channel.

    z is zero where there is no position. After Chan, Golub and LeVeque (1979): exact for any mean, whereas a sum of
    squares loses digits if the mean is large.
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
    """Store a program's share of the statistics: means and squared deviations by program, then all the counts."""
    channel = tl.arange(0, CP)
    mine = partial + tl.program_id(0) * (2 * C) + channel
    tl.store(mine, mean, mask=channel < C)
    tl.store(mine + C, square, mask=channel < C)
    tl.store(partial + tl.num_programs(0) * (2 * C) + tl.program_id(0), count)


@triton.jit
def merge_moments(partial, parts, total, C: tl.constexpr, CP: tl.constexpr, PARTS: tl.constexpr):
    """Merge the shares of all programs into mean and biased variance (CP,), as tiles are merged."""
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
    """Add up the shares of all programs: two sums for each channel (CP,)."""
    part, channel = tl.arange(0, PARTS)[:, None], tl.arange(0, CP)[None, :]
    real = (part < parts) & (channel < C)
    first = tl.load(sums + part * (2 * C) + channel, mask=real, other=0.0)
    second = tl.load(sums + part * (2 * C) + C + channel, mask=real, other=0.0)
    return tl.sum(first, 0), tl.sum(second, 0)
