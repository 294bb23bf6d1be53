"""The forward pass of the fused blocks.

    z[t, c] = sum over taps j and channels d of  w[c, d, j] x[3 t + j, d]              kernel 7, stride 3
    y[p, c] = dropout(relu(gamma (max(z[2 p, c], z[2 p + 1, c]) - mean) / deviation + beta))

Pooling comes first. With gamma positive, BatchNorm and ReLU never decrease, so the larger z gives the larger y. With
gamma negative the smaller z does; with gamma zero both are equal and the first counts, as in MaxPool1d. Mean and
variance are over all positions, also an odd last one, which pooling drops. Each block has one kernel: it convolves,
pools, drops and leaves shares of the statistics. Every program of the next kernel adds the shares up and normalises
while it loads. A last kernel normalises the last block. BatchNorm cancels the bias of a convolution; only the running
mean contains it.

In evaluation the running statistics, with the mean less the bias, are given as the only share; nothing is left for a
backward pass.
"""

# Triton compiles kernels: arguments are device pointers and numbers, capitals are compile-time constants.
# ruff: noqa: ANN001, ANN201, ANN202, N803
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from clocs_plugins.cnn import fused_geometry as geometry
from clocs_plugins.cnn.dropout_bits import Dropout
from clocs_plugins.cnn.fused_geometry import Block, Parameters, Plan
from clocs_plugins.cnn.fused_thin import convolve_thin_kernel
from clocs_plugins.cnn.fused_tiles import (
    activate,
    add_tile,
    launch,
    load_channels,
    load_filters,
    load_windows,
    merge_moments,
    multiply,
    repeat_channels,
    store_moments,
    store_pooled,
)


@triton.jit
def _settle(partial, parts, total, gamma, beta, bias, statistics, scale, eps, C: tl.constexpr, CP: tl.constexpr,
            PARTS: tl.constexpr, TRAINS: tl.constexpr):  # fmt: skip
    """Return mean, slope and shift (CP,) of a block's normalisation; in training, program 0 stores the statistics."""
    mean, variance = merge_moments(partial, parts, total, C, CP, PARTS)
    inverse = 1.0 / tl.sqrt(variance + eps)
    if TRAINS:  # noqa: SIM102  known when the kernel is compiled
        if tl.program_id(0) == 0:
            channel = tl.arange(0, CP)
            real = channel < C
            tl.store(statistics + channel, mean, mask=real)
            tl.store(statistics + C + channel, inverse, mask=real)
            tl.store(statistics + 2 * C + channel, mean + load_channels(bias, C, CP), mask=real)
            tl.store(statistics + 3 * C + channel, variance * (total / (total - 1.0)), mask=real)
    return mean, load_channels(gamma, C, CP) * inverse * scale, load_channels(beta, C, CP) * scale


@triton.jit
def convolve_kernel(
    source, stride_n, stride_c, stride_l,
    partial_before, parts_before, total_before, gamma_before, beta_before, bias_before, statistics_before, scale, eps,
    weight, gamma, noise, threshold, pooled_out, raw_out, partial_out, signals, length, positions,
    K: tl.constexpr, S: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, CIP: tl.constexpr, ENTRIES: tl.constexpr,
    CHUNK: tl.constexpr, COP: tl.constexpr, FIRST: tl.constexpr, DROP: tl.constexpr, PARTS_BEFORE: tl.constexpr,
    PRECISION: tl.constexpr, ROWS: tl.constexpr, TRAINS: tl.constexpr,
):  # fmt: skip
    """Convolve and pool; in training, store z, and leave count, mean and squared deviations of a share of the rows."""
    mean_in, slope_in, shift_in = 0.0, 0.0, 0.0
    if not FIRST:
        mean_c, slope_c, shift_c = _settle(
            partial_before, parts_before, total_before, gamma_before, beta_before, bias_before, statistics_before,
            scale, eps, CI, CIP, PARTS_BEFORE, TRAINS,
        )  # fmt: skip
        mean_in = repeat_channels(mean_c, CIP, CHUNK // CIP)
        slope_in = repeat_channels(slope_c, CIP, CHUNK // CIP)
        shift_in = repeat_channels(shift_c, CIP, CHUNK // CIP)
    side, channel = load_channels(gamma, CO, COP)[None, :], tl.arange(0, COP)[None, :]
    pairs, pooled = (positions + 1) // 2, positions // 2
    rows = signals * pairs
    count, mean, square = 0.0, tl.zeros((COP,), tl.float32), tl.zeros((COP,), tl.float32)
    for tile in range(tl.program_id(0), tl.cdiv(rows, ROWS), tl.num_programs(0)):
        row = tile * ROWS + tl.arange(0, ROWS)
        signal, pair = row // pairs, row % pairs
        even = row < rows
        odd = even & (pair < pooled)
        z0, z1 = tl.zeros((ROWS, COP), tl.float32), tl.zeros((ROWS, COP), tl.float32)
        for begin in tl.static_range(0, ENTRIES, CHUNK):
            filters = load_filters(weight, begin, K, CI, CO, CIP, CHUNK, COP)
            windows = load_windows(source, signal, 2 * pair, even, length, stride_n, stride_c, stride_l,
                                   mean_in, slope_in, shift_in, begin, K, S, CI, CIP, CHUNK, FIRST)  # fmt: skip
            z0 = multiply(windows, filters, z0, PRECISION)
            windows = load_windows(source, signal, 2 * pair + 1, odd, length, stride_n, stride_c, stride_l,
                                   mean_in, slope_in, shift_in, begin, K, S, CI, CIP, CHUNK, FIRST)  # fmt: skip
            z1 = multiply(windows, filters, z1, PRECISION)
        if TRAINS:
            count, mean, square = add_tile(z0, z1, even[:, None], odd[:, None], tile * ROWS, rows, pairs, positions,
                                           count, mean, square, ROWS, 0)  # fmt: skip
        real = odd[:, None] & (channel < CO)
        at = (signal * pooled + pair)[:, None] * CO + channel
        store_pooled(z0, z1, side, noise, threshold, pooled_out, at, real, DROP)
        if TRAINS:
            at = (signal * positions + 2 * pair)[:, None] * CO + channel
            tl.store(raw_out + at, z0, mask=even[:, None] & (channel < CO))
            tl.store(raw_out + at + CO, z1, mask=real)
    if TRAINS:
        store_moments(partial_out, count, mean, square, CO, COP)


@triton.jit
def normalise_kernel(
    pooled, partial, parts, total, gamma, beta, bias, statistics, scale, eps, output, signals, samples,
    C: tl.constexpr, CP: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, TRAINS: tl.constexpr,
):  # fmt: skip
    """Normalise the last block's pooled samples (signal, sample, channel); store them as (signal, channel, sample)."""
    mean, slope, shift = _settle(partial, parts, total, gamma, beta, bias, statistics, scale, eps, C, CP, PARTS,
                                 TRAINS)  # fmt: skip
    channel = tl.arange(0, CP)[None, :]
    for tile in range(tl.program_id(0), tl.cdiv(signals * samples, ROWS), tl.num_programs(0)):
        row = tile * ROWS + tl.arange(0, ROWS)
        real = (row < signals * samples)[:, None] & (channel < C)
        value = tl.load(pooled + row[:, None] * C + channel, mask=real, other=0.0)
        value = activate(value, mean[None, :], slope[None, :], shift[None, :])
        at = (row // samples)[:, None] * (C * samples) + channel * samples + (row % samples)[:, None]
        tl.store(output + at, value, mask=real)


class _Shares(NamedTuple):
    """The shares of a block's statistics that the programs of its kernel left; the next kernel merges them."""

    partial: Tensor
    programs: int
    total: float  # positions in the batch
    own: Parameters
    statistics: Tensor  # buffer for the merged statistics
    trains: bool = True

    @property
    def arguments(self) -> tuple[Tensor | int | float | None, ...]:
        """Arguments of `_settle`."""
        return (self.partial, self.programs, self.total, self.own.gamma, self.own.beta, self.own.bias, self.statistics)


def run_forward(
    signal: Tensor, parameters: Sequence[Parameters], plan: Plan, noise: Tensor, dropout: Dropout, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the output (n, channel, sample), the statistics of all blocks, and the buffer for the backward pass."""
    kept, statistics = signal.new_empty(plan.kept_size), signal.new_empty(plan.statistics_size)
    source, shares = signal, None
    for number, (block, own) in enumerate(zip(plan.blocks, parameters, strict=True)):
        pooled, bits = kept[plan.pooled_at[number] :], noise[plan.noise_at[number] :]
        if number == 0 and plan.thin:
            partial, programs = _convolve_thin(source, block, own, bits, dropout, pooled)
        else:
            raw = kept[plan.raw_at[number] :]
            partial, programs = _convolve(source, block, own, shares, bits, dropout, eps, pooled, raw)
        total = float(block.signals * block.positions)
        shares = _Shares(partial, programs, total, own, statistics[plan.statistics_at[number] :])
        source = pooled
    assert shares is not None
    return _normalise(source, plan.blocks[-1], shares, dropout.scale, eps), statistics, kept


def run_evaluation(
    signal: Tensor, parameters: Sequence[Parameters], plan: Plan, moments: Sequence[Tensor], eps: float
) -> Tensor:
    """Return the output (n, channel, sample) in evaluation.

    moments: of each block, the running mean less the bias, the running variance, and a one.
    """
    dropout, source, shares = Dropout(0, 1.0), signal, None
    for number, (block, own, known) in enumerate(zip(plan.blocks, parameters, moments, strict=True)):
        pooled = signal.new_empty(block.signals * block.pooled * block.after)
        if number == 0 and plan.thin:
            _convolve_thin(source, block, own, pooled, dropout, pooled, trains=False)
        else:
            _convolve(source, block, own, shares, pooled, dropout, eps, pooled, pooled, trains=False)
        source, shares = pooled, _Shares(known, 1, 1.0, own, known, trains=False)
    assert shares is not None
    return _normalise(source, plan.blocks[-1], shares, 1.0, eps)


def _convolve_thin(
    signal: Tensor, block: Block, own: Parameters, noise: Tensor, dropout: Dropout, pooled: Tensor, trains: bool = True
) -> tuple[Tensor, int]:
    programs = geometry.cut(block.signals * block.pairs, geometry.THIN_CONVOLVE.rows, block.after)
    partial = signal.new_empty(programs * (2 * block.after + 1)) if trains else pooled
    launch(
        convolve_thin_kernel, programs,
        signal, *signal.stride(), own.weight, own.gamma, noise, dropout.threshold, pooled, partial, block.signals,
        block.positions,
        K=block.kernel, S=block.stride, CI=block.before, CO=block.after, COP=geometry.power_of_two(block.after),
        DROP=dropout.scale > 1, ROWS=geometry.THIN_CONVOLVE.rows, TRAINS=trains, num_warps=geometry.THIN_CONVOLVE.warps,
    )  # fmt: skip
    return partial, programs


def _convolve(
    source: Tensor, block: Block, own: Parameters, before: _Shares | None, noise: Tensor, dropout: Dropout, eps: float,
    pooled: Tensor, raw: Tensor, trains: bool = True,
) -> tuple[Tensor, int]:  # fmt: skip
    tile = geometry.tile_for(geometry.CONVOLVE, block)
    programs = geometry.cut(block.signals * block.pairs, tile.rows, block.after)
    partial = source.new_empty(programs * (2 * block.after + 1)) if trains else pooled
    strides = source.stride() if before is None else (0, 0, 0)
    shares = before or _Shares(partial, 1, 0.0, own, partial)  # the first block does not read them
    launch(
        convolve_kernel, programs,
        source, *strides, *shares.arguments, dropout.scale, eps,
        own.weight, own.gamma, noise, dropout.threshold, pooled, raw, partial,
        block.signals, block.length, block.positions,
        K=block.kernel, S=block.stride, CI=block.before, CO=block.after, CIP=block.before_padded,
        ENTRIES=block.window_padded, CHUNK=geometry.chunk_for(block, geometry.CONVOLVE_CHUNK),
        COP=block.after_padded, FIRST=before is None, DROP=dropout.scale > 1,
        PARTS_BEFORE=geometry.power_of_two(shares.programs), PRECISION=geometry.CONVOLVE_PRECISION, ROWS=tile.rows,
        TRAINS=trains, num_warps=tile.warps,
    )  # fmt: skip
    return partial, programs


def _normalise(pooled: Tensor, block: Block, shares: _Shares, scale: float, eps: float) -> Tensor:
    output = pooled.new_empty(block.signals, block.after, block.pooled)
    tile = geometry.ELEMENTWISE
    launch(
        normalise_kernel, geometry.cut(block.signals * block.pooled, tile.rows, block.after),
        pooled, *shares.arguments, scale, eps, output, block.signals, block.pooled,
        C=block.after, CP=geometry.power_of_two(block.after), PARTS=geometry.power_of_two(shares.programs),
        ROWS=tile.rows, TRAINS=shares.trains, num_warps=tile.warps,
    )  # fmt: skip
    return output
