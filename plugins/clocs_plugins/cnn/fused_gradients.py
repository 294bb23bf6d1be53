"""The kernels of the backward pass of the fused blocks; `fused_thin` has those of the first block of an encoder.

g is the gradient of BatchNorm's output at the pooled position: that of y where y passed the ReLU and was not dropped.
With M the number of positions:

    dbeta = sum g        dgamma = sum g zn        zn = (z - mean) / deviation
    dz = gamma / deviation (g - dbeta / M - zn dgamma / M)          every position, pooled or not
    dw[c, d, j] = sum over t of dz[t, c] x[3 t + j, d]
    dx[l, d] = sum over the t whose window holds l, of dz[t, c] w[c, d, l - 3 t]

An input sample gathers from the positions whose window holds it, so no two programs add to the same value, and the same
input gives the same bits. Each program leaves one share of the sums over the batch; the programs of the next kernel add
the shares up in a fixed order. The gradient of a block needs dbeta and dgamma first. So the kernel that computes dx,
which is the gradient of the block before, leaves the shares of that block's sums.
"""

# Triton compiles kernels: arguments are device pointers and numbers, capitals are compile-time constants.
# ruff: noqa: ANN001, ANN201, ANN202, N803
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

import triton
import triton.language as tl

from clocs_plugins.cnn.fused_tiles import (
    DROPPED,
    add_shares,
    load_channels,
    load_windows,
    multiply,
    odd_wins,
    repeat_channels,
)


@triton.jit
def _pass_back(gradient, pooled, mean, inverse, slope, shift, scale):
    """Compute g and g zn from the gradient of dropout's output; all in the shape of `pooled`."""
    shut = (pooled == DROPPED) | ((pooled - mean) * slope + shift <= 0)
    g = tl.where(shut, 0.0, gradient * scale)
    return g, tl.where(shut, 0.0, g * ((pooled - mean) * inverse))


@triton.jit
def open_kernel(
    gradient, stride_n, stride_c, stride_l, pooled, statistics, gamma, beta, scale, g_out, sums_out, signals, samples,
    C: tl.constexpr, CP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Compute g of the last block from the gradient of its output, and a share of the sums of g and g zn."""
    mean, inverse = load_channels(statistics, C, CP)[None, :], load_channels(statistics + C, C, CP)[None, :]
    slope, shift = load_channels(gamma, C, CP)[None, :] * inverse * scale, load_channels(beta, C, CP)[None, :] * scale
    channel = tl.arange(0, CP)[None, :]
    sum_g, sum_gz = tl.zeros((CP,), tl.float32), tl.zeros((CP,), tl.float32)
    for tile in range(tl.program_id(0), tl.cdiv(signals * samples, ROWS), tl.num_programs(0)):
        row = tile * ROWS + tl.arange(0, ROWS)
        real = (row < signals * samples)[:, None] & (channel < C)
        at = (row // samples)[:, None] * stride_n + channel * stride_c + (row % samples)[:, None] * stride_l
        best = tl.load(pooled + row[:, None] * C + channel, mask=real, other=DROPPED)
        given = tl.load(gradient + at, mask=real, other=0.0)
        g, gz = _pass_back(given, best, mean, inverse, slope, shift, scale)
        tl.store(g_out + row[:, None] * C + channel, g, mask=real)
        sum_g += tl.sum(g, 0)
        sum_gz += tl.sum(gz, 0)
    _store_sums(sums_out, tl.program_id(0), sum_g, sum_gz, C, CP)


@triton.jit
def _store_sums(sums, number, sum_g, sum_gz, C: tl.constexpr, CP: tl.constexpr):
    channel = tl.arange(0, CP)
    mine = sums + number * (2 * C) + channel
    tl.store(mine, sum_g, mask=channel < C)
    tl.store(mine + C, sum_gz, mask=channel < C)


@triton.jit
def _load_dz(raw, g, signal, pair, even, odd, positions, side, mean, slope, level, tilt, CO: tl.constexpr,
             COP: tl.constexpr):  # fmt: skip
    """Compute dz (rows, COP) of both positions of pairs, zero where there is no position."""
    channel = tl.arange(0, COP)[None, :]
    real, pooled = odd[:, None] & (channel < CO), positions // 2
    at = raw + (signal * positions + 2 * pair)[:, None] * CO + channel
    z0 = tl.load(at, mask=even[:, None] & (channel < CO), other=0.0)
    z1 = tl.load(at + CO, mask=real, other=0.0)
    won = tl.load(g + (signal * pooled + pair)[:, None] * CO + channel, mask=real, other=0.0) * slope
    by_odd = odd_wins(z0, z1, side)
    dz0 = tl.where(by_odd, 0.0, won) - level - (z0 - mean) * tilt
    dz1 = tl.where(by_odd, won, 0.0) - level - (z1 - mean) * tilt
    return tl.where(even[:, None], dz0, 0.0), tl.where(odd[:, None], dz1, 0.0)


@triton.jit
def _load_taps(weight, AHEAD: tl.constexpr, K: tl.constexpr, S: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr,
               CIP: tl.constexpr, COP: tl.constexpr, SP: tl.constexpr):  # fmt: skip
    """Load the weights (COP, SP CIP) between a position and the S samples AHEAD strides on: by sample, then channel."""
    after, entry = tl.arange(0, COP)[:, None], tl.arange(0, SP * CIP)[None, :]
    tap, before = AHEAD * S + entry // CIP, entry % CIP
    real = (entry // CIP < S) & (tap < K) & (before < CI) & (after < CO)
    return tl.load(weight + (after * CI + before) * K + tap, mask=real, other=0.0)


@triton.jit
def _fold(dx0, dx1, dz0, dz1, weight, BACK: tl.constexpr, K: tl.constexpr, S: tl.constexpr, CI: tl.constexpr,
          CO: tl.constexpr, CIP: tl.constexpr, COP: tl.constexpr, SP: tl.constexpr,
          PRECISION: tl.constexpr):  # fmt: skip
    """Add to both strides (rows, SP CIP) of spans of samples the gradients from the pairs BACK pairs before."""
    if 2 * BACK * S < K:
        taps = _load_taps(weight, 2 * BACK, K, S, CI, CO, CIP, COP, SP)
        dx0 = multiply(dz0, taps, dx0, PRECISION)
        dx1 = multiply(dz1, taps, dx1, PRECISION)
    if (2 * BACK + 1) * S < K:
        taps = _load_taps(weight, 2 * BACK + 1, K, S, CI, CO, CIP, COP, SP)
        dx1 = multiply(dz0, taps, dx1, PRECISION)
    if BACK > 0:
        taps = _load_taps(weight, 2 * BACK - 1, K, S, CI, CO, CIP, COP, SP)
        dx0 = multiply(dz1, taps, dx0, PRECISION)
    return dx0, dx1


@triton.jit
def _differentiate_filters(
    number, programs, chunk, source, stride_n, stride_c, stride_l, mean_in, slope_in, shift_in,
    raw, g, side, mean, slope, level, tilt, weight_partial, signals, length, positions,
    K: tl.constexpr, S: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, CIP: tl.constexpr, ENTRIES: tl.constexpr,
    CHUNK: tl.constexpr, COP: tl.constexpr, FIRST: tl.constexpr, PRECISION: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Compute a share of the gradient of a chunk of the filters, by tap and channel. Rows are pairs of positions."""
    mean_w, slope_w, shift_w = 0.0, 0.0, 0.0
    if not FIRST:
        mean_w = repeat_channels(mean_in, CIP, CHUNK // CIP)
        slope_w = repeat_channels(slope_in, CIP, CHUNK // CIP)
        shift_w = repeat_channels(shift_in, CIP, CHUNK // CIP)
    pairs = (positions + 1) // 2
    dw = tl.zeros((CHUNK, COP), tl.float32)
    for tile in range(number, tl.cdiv(signals * pairs, ROWS), programs):
        row = tile * ROWS + tl.arange(0, ROWS)
        signal, pair = row // pairs, row % pairs
        even = row < signals * pairs
        odd = even & (2 * pair + 1 < positions)
        dz0, dz1 = _load_dz(raw, g, signal, pair, even, odd, positions, side, mean, slope, level, tilt, CO, COP)
        windows = load_windows(source, signal, 2 * pair, even, length, stride_n, stride_c, stride_l,
                               mean_w, slope_w, shift_w, chunk * CHUNK, K, S, CI, CIP, CHUNK, FIRST)  # fmt: skip
        dw = multiply(tl.trans(windows), dz0, dw, PRECISION)
        windows = load_windows(source, signal, 2 * pair + 1, odd, length, stride_n, stride_c, stride_l,
                               mean_w, slope_w, shift_w, chunk * CHUNK, K, S, CI, CIP, CHUNK, FIRST)  # fmt: skip
        dw = multiply(tl.trans(windows), dz1, dw, PRECISION)
    entry = chunk * CHUNK + tl.arange(0, CHUNK)[:, None]
    place = entry * COP + tl.arange(0, COP)[None, :]
    tl.store(weight_partial + number * (ENTRIES * COP) + place, dw)


@triton.jit
def _differentiate_input(
    number, programs, source, mean_in, inverse_in, slope_in, shift_in, scale,
    weight, raw, g, side, mean, slope, level, tilt, source_gradient, sums_out, signals, length, positions,
    K: tl.constexpr, S: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, CIP: tl.constexpr, COP: tl.constexpr,
    SP: tl.constexpr, FIRST: tl.constexpr, PRECISION: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Compute the gradient of the input. Rows are spans of 2 S samples; each pair of positions begins one.

    The FIRST block's input is the signals. In other blocks the gradient becomes g of the block before, and the kernel
    leaves a share of that block's sums.
    """
    entry = tl.arange(0, SP * CIP)[None, :]
    ahead, before = entry // CIP, entry % CIP
    spans = (length + 2 * S - 1) // (2 * S)
    sum_g, sum_gz = tl.zeros((SP * CIP,), tl.float32), tl.zeros((SP * CIP,), tl.float32)
    for tile in range(number, tl.cdiv(signals * spans, ROWS), programs):
        row = tile * ROWS + tl.arange(0, ROWS)
        signal, span = row // spans, row % spans
        inside = row < signals * spans
        dx0, dx1 = tl.zeros((ROWS, SP * CIP), tl.float32), tl.zeros((ROWS, SP * CIP), tl.float32)
        for back in tl.static_range((K - 1 + S) // (2 * S) + 1):
            pair = span - back
            even = inside & (pair >= 0) & (2 * pair < positions)
            odd = inside & (pair >= 0) & (2 * pair + 1 < positions)
            dz0, dz1 = _load_dz(raw, g, signal, pair, even, odd, positions, side, mean, slope, level, tilt, CO, COP)
            dx0, dx1 = _fold(dx0, dx1, dz0, dz1, weight, back, K, S, CI, CO, CIP, COP, SP, PRECISION)
        for half in tl.static_range(2):
            dx = dx0 if half == 0 else dx1
            start = (2 * span + half) * S
            real = inside[:, None] & (ahead < S) & (before < CI) & (start[:, None] + ahead < length)
            if FIRST:
                at = (signal * (CI * length) + start)[:, None] + before * length + ahead
                tl.store(source_gradient + at, dx, mask=real)
            else:
                at = ((signal * length + start) * CI)[:, None] + (entry if CI == CIP else ahead * CI + before)
                best = tl.load(source + at, mask=real, other=DROPPED)
                g_in, gz_in = _pass_back(
                    dx, best, repeat_channels(mean_in, CIP, SP)[None, :], repeat_channels(inverse_in, CIP, SP)[None, :],
                    repeat_channels(slope_in, CIP, SP)[None, :], repeat_channels(shift_in, CIP, SP)[None, :], scale,
                )  # fmt: skip
                tl.store(source_gradient + at, g_in, mask=real)
                sum_g += tl.sum(g_in, 0)
                sum_gz += tl.sum(gz_in, 0)
    if not FIRST:
        sum_g, sum_gz = tl.sum(tl.reshape(sum_g, (SP, CIP)), 0), tl.sum(tl.reshape(sum_gz, (SP, CIP)), 0)
        _store_sums(sums_out, number, sum_g, sum_gz, CI, CIP)


@triton.jit
def differentiate_kernel(
    source, stride_n, stride_c, stride_l, statistics_before, gamma_before, beta_before,
    weight, gamma, statistics, raw, g, sums, parts, scale, total,
    gamma_gradient, beta_gradient, weight_partial, source_gradient, sums_out, signals, length, positions,
    input_programs, filter_programs,
    K: tl.constexpr, S: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, CIP: tl.constexpr, ENTRIES: tl.constexpr,
    CHUNK: tl.constexpr, COP: tl.constexpr, SP: tl.constexpr, FIRST: tl.constexpr, FOLD: tl.constexpr,
    PARTS: tl.constexpr, PRECISION: tl.constexpr, INPUT_ROWS: tl.constexpr, FILTER_ROWS: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of gamma, beta, filters and, if FOLD, of the input from g of a block.

    Different programs compute the last two: together they would need more registers than there are.
    """
    dbeta, dgamma = add_shares(sums, parts, CO, COP, PARTS)
    number = tl.program_id(0)
    if number == 0:
        after = tl.arange(0, COP)
        tl.store(gamma_gradient + after, dgamma, mask=after < CO)
        tl.store(beta_gradient + after, dbeta, mask=after < CO)
    mean, inverse = load_channels(statistics, CO, COP)[None, :], load_channels(statistics + CO, CO, COP)[None, :]
    side = load_channels(gamma, CO, COP)[None, :]
    slope = side * inverse
    level, tilt = slope * dbeta[None, :] / total, slope * inverse * dgamma[None, :] / total
    mean_in, inverse_in, slope_in, shift_in = 0.0, 0.0, 0.0, 0.0
    if not FIRST:
        mean_in = load_channels(statistics_before, CI, CIP)
        inverse_in = load_channels(statistics_before + CI, CI, CIP)
        slope_in = load_channels(gamma_before, CI, CIP) * inverse_in * scale
        shift_in = load_channels(beta_before, CI, CIP) * scale
    if FOLD:  # noqa: SIM102 - FOLD is a compile-time constant, the other condition is not
        if number < input_programs:
            _differentiate_input(
                number, input_programs, source, mean_in, inverse_in, slope_in, shift_in, scale,
                weight, raw, g, side, mean, slope, level, tilt, source_gradient, sums_out, signals, length, positions,
                K, S, CI, CO, CIP, COP, SP, FIRST, PRECISION, INPUT_ROWS,
            )  # fmt: skip
    number -= input_programs
    if number >= 0:
        _differentiate_filters(
            number % filter_programs, filter_programs, number // filter_programs,
            source, stride_n, stride_c, stride_l, mean_in, slope_in, shift_in,
            raw, g, side, mean, slope, level, tilt, weight_partial, signals, length, positions,
            K, S, CI, CO, CIP, ENTRIES, CHUNK, COP, FIRST, PRECISION, FILTER_ROWS,
        )  # fmt: skip


@triton.jit
def collect_kernel(partial, gradient, BLOCKS: tl.constexpr, COLUMNS: tl.constexpr):
    """Add up the programs' shares of the gradients of all filters; set the gradients of the biases to zero."""
    for number in tl.static_range(len(BLOCKS)):
        _collect_block(
            partial + BLOCKS[number][0], gradient + BLOCKS[number][1], gradient + BLOCKS[number][2], BLOCKS[number][3],
            BLOCKS[number][4], BLOCKS[number][5], BLOCKS[number][6], BLOCKS[number][7], BLOCKS[number][8],
            BLOCKS[number][9], BLOCKS[number][10], BLOCKS[number][11], COLUMNS,
        )  # fmt: skip


@triton.jit
def _collect_block(partial, weight_gradient, bias_gradient, BEGIN: tl.constexpr, SIZE: tl.constexpr,
                   SHARES: tl.constexpr, PARTS: tl.constexpr, K: tl.constexpr, CI: tl.constexpr, CIP: tl.constexpr,
                   CO: tl.constexpr, COP: tl.constexpr, COLUMNS: tl.constexpr):  # fmt: skip
    first = tl.program_id(0) * COLUMNS - BEGIN
    if (first >= 0) & (first < SIZE):
        column, part = first + tl.arange(0, COLUMNS), tl.arange(0, PARTS)[:, None]
        mine = (part < SHARES) & (column < SIZE)[None, :]
        total = tl.sum(tl.load(partial + part * SIZE + column[None, :], mask=mine, other=0.0), 0)
        entry, after = column // COP, column % COP
        tap, before = entry // CIP, entry % CIP
        real = (tap < K) & (before < CI) & (after < CO)
        tl.store(weight_gradient + (after * CI + before) * K + tap, total, mask=real)
        if first == 0:
            channel = tl.arange(0, COP)
            tl.store(bias_gradient + channel, tl.zeros((COP,), tl.float32), mask=channel < CO)
