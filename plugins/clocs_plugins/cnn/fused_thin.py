"""Kernels for the first block of an encoder: windows of a few values, which are multiplied one by one.

Seven samples of one lead and four channels are too few for tensor cores, which would mostly multiply padding. Here each
thread has one row: it loads the samples of both windows, which overlap, and adds one product after the other in
float32. The signals get no gradient here. Formulas: fused_forward.py and fused_gradients.py.
"""

# Triton compiles kernels: arguments are device pointers and numbers, capitals are compile-time constants.
# ruff: noqa: ANN001, ANN201, ANN202, N803
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

import triton
import triton.language as tl

from clocs_plugins.cnn.fused_tiles import (
    add_shares,
    add_tile,
    load_channels,
    odd_wins,
    store_moments,
    store_pooled,
)


@triton.jit
def _convolve_pairs(here, weight, even, odd, stride_c, stride_l, K: tl.constexpr, S: tl.constexpr, CI: tl.constexpr,
                    CO: tl.constexpr, COP: tl.constexpr, ROWS: tl.constexpr):  # fmt: skip
    """Convolve both positions (COP, ROWS) of pairs whose first samples are `here`; zero where there is no position."""
    z0, z1 = tl.zeros((COP, ROWS), tl.float32), tl.zeros((COP, ROWS), tl.float32)
    for before in tl.static_range(CI):
        for ahead in tl.static_range(K + S):
            if ahead < K or ahead >= S:
                at = here + ahead * stride_l + before * stride_c
                sample = tl.load(at, mask=even if ahead < K else odd, other=0.0)[None, :]
                if ahead < K:
                    z0 += _load_tap(weight, before, ahead, K, CI, CO, COP) * sample
                if ahead >= S:
                    z1 += _load_tap(weight, before, ahead - S, K, CI, CO, COP) * sample
    return z0, tl.where(odd[None, :], z1, 0.0)


@triton.jit
def _load_tap(weight, before, tap, K: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, COP: tl.constexpr):
    """Load one tap of one channel in every filter (COP, 1)."""
    after = tl.arange(0, COP)[:, None]
    return tl.load(weight + (after * CI + before) * K + tap, mask=after < CO, other=0.0)


@triton.jit
def convolve_thin_kernel(
    source, stride_n, stride_c, stride_l, weight, gamma, noise, threshold, pooled_out, partial_out, signals, positions,
    K: tl.constexpr, S: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, COP: tl.constexpr, DROP: tl.constexpr,
    ROWS: tl.constexpr, TRAINS: tl.constexpr,
):  # fmt: skip
    """Convolve and pool signals; in training, leave count, mean and squared deviations of a share of the rows."""
    side, after = load_channels(gamma, CO, COP)[:, None], tl.arange(0, COP)[:, None]
    pairs, pooled = (positions + 1) // 2, positions // 2
    rows = signals * pairs
    count, mean, square = 0.0, tl.zeros((COP,), tl.float32), tl.zeros((COP,), tl.float32)
    for tile in range(tl.program_id(0), tl.cdiv(rows, ROWS), tl.num_programs(0)):
        row = tile * ROWS + tl.arange(0, ROWS)
        signal, pair = row // pairs, row % pairs
        even = row < rows
        odd = even & (pair < pooled)
        here = source + signal * stride_n + pair * (2 * S) * stride_l
        z0, z1 = _convolve_pairs(here, weight, even, odd, stride_c, stride_l, K, S, CI, CO, COP, ROWS)
        if TRAINS:
            count, mean, square = add_tile(z0, z1, even[None, :], odd[None, :], tile * ROWS, rows, pairs, positions,
                                           count, mean, square, ROWS, 1)  # fmt: skip
        at = (signal * pooled + pair)[None, :] * CO + after
        store_pooled(z0, z1, side, noise, threshold, pooled_out, at, odd[None, :] & (after < CO), DROP)
    if TRAINS:
        store_moments(partial_out, count, mean, square, CO, COP)


@triton.jit
def differentiate_thin_kernel(
    source, stride_n, stride_c, stride_l, weight, gamma, statistics, g, sums, parts, total,
    gamma_gradient, beta_gradient, weight_partial, signals, positions,
    K: tl.constexpr, S: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, CIP: tl.constexpr, COP: tl.constexpr,
    ENTRIES: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of gamma and beta, and a share of the filters' gradient, from g of the first block."""
    dbeta, dgamma = add_shares(sums, parts, CO, COP, PARTS)
    if tl.program_id(0) == 0:
        channel = tl.arange(0, COP)
        tl.store(gamma_gradient + channel, dgamma, mask=channel < CO)
        tl.store(beta_gradient + channel, dbeta, mask=channel < CO)
    mean, inverse = load_channels(statistics, CO, COP)[:, None], load_channels(statistics + CO, CO, COP)[:, None]
    side = load_channels(gamma, CO, COP)[:, None]
    slope = side * inverse
    level, tilt = slope * dbeta[:, None] / total, slope * inverse * dgamma[:, None] / total

    pairs, pooled = (positions + 1) // 2, positions // 2
    after, entry = tl.arange(0, COP)[:, None], tl.arange(0, ENTRIES)[None, :]
    dw = tl.zeros((COP, ENTRIES), tl.float32)
    for tile in range(tl.program_id(0), tl.cdiv(signals * pairs, ROWS), tl.num_programs(0)):
        row = tile * ROWS + tl.arange(0, ROWS)
        signal, pair = row // pairs, row % pairs
        even = row < signals * pairs
        odd = even & (pair < pooled)
        here = source + signal * stride_n + pair * (2 * S) * stride_l
        z0, z1 = _convolve_pairs(here, weight, even, odd, stride_c, stride_l, K, S, CI, CO, COP, ROWS)
        at = (signal * pooled + pair)[None, :] * CO + after
        won = tl.load(g + at, mask=odd[None, :] & (after < CO), other=0.0) * slope
        by_odd = odd_wins(z0, z1, side)
        dz0 = tl.where(by_odd, 0.0, won) - level - (z0 - mean) * tilt
        dz1 = tl.where(by_odd, won, 0.0) - level - (z1 - mean) * tilt
        for before in tl.static_range(CI):
            for tap in tl.static_range(K):  # samples are zero where there is no position, so dz needs no mask
                at = here + tap * stride_l + before * stride_c
                share = tl.load(at, mask=even, other=0.0)[None, :] * dz0
                share += tl.load(at + S * stride_l, mask=odd, other=0.0)[None, :] * dz1
                dw += tl.where(entry == tap * CIP + before, tl.sum(share, 1)[:, None], 0.0)
    tl.store(weight_partial + tl.program_id(0) * (ENTRIES * COP) + entry * COP + after, dw)
