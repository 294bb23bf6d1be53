"""Helpers of the kernels of and after the tiles: exponents, and the gradients of embeddings.

With g of the tiles, the strengths d and f of loss_kernels.py, X and o of packing.py, and h at length 1,

    dL/dh_vi = beta·(g_vi - d·(X_i - h_vi) - f·o_vi),  r_vi = h_vi·dL/dh_vi
    dL/dx_vi = (dL/dh_vi - r_vi·h_vi) / |x_vi|,        dL/dtau = - sum_vi r_vi / (2·tau)
"""
# Triton compiles these functions; it does not read Python's types.
# ruff: noqa: ANN001, ANN201, N803, SIM108
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

import triton
import triton.language as tl

from clocs_plugins.contrastive_losses.early_start import take_turn

LARGEST = tl.constexpr(60.0)
"""Natural exponent of the largest e. With 1/tau <= 67, the smallest row sum and 2^14 over it fit in float32 too."""


@triton.jit
def exponent(temperature, TENSOR: tl.constexpr):
    """Return 1/tau and the shift, as natural exponents."""
    if TENSOR:
        tau = tl.load(temperature).to(tl.float32)
    else:
        tau = temperature
    beta = 1.0 / tau
    return beta, tl.maximum(beta - LARGEST, 0.0)


@triton.jit
def load_pulls(
    row,
    view,
    packed,
    views,
    total,
    inverse,
    others,
    count,
    scalars,
    batch,
    rows_padded,
    view_count,
    dim,
    view_stride,
    row_stride,
    dim_stride,
    PATIENTS: tl.constexpr,
    DIM: tl.constexpr,
    TWO: tl.constexpr,
):
    """Return d·(X - h) + f·o and x/|x| (row, dim), and 1/|x| (row,) of some rows."""
    place = tl.arange(0, DIM)
    view = view.to(tl.int64)
    there = (row < batch)[:, None] & (place < dim)[None, :]
    padded = (view * rows_padded + row)[:, None] * DIM + place[None, :]
    h = tl.load(packed + padded, mask=there, other=0.0).to(tl.float32)
    if TWO:
        plane = view_count.to(tl.int64) * rows_padded * DIM
        h += tl.load(packed + plane + padded, mask=there, other=0.0).to(tl.float32)
    whole = tl.load(total + row.to(tl.int64)[:, None] * DIM + place[None, :], mask=there, other=0.0)
    pull = tl.load(scalars + 1) * (whole - h)
    if PATIENTS:
        repeated = tl.load(count + row, mask=row < batch, other=0) > 1
        pull += tl.load(scalars + 2) * tl.load(others + padded, mask=there & repeated[:, None], other=0.0)
    scale = tl.load(inverse + view * rows_padded + row, mask=row < batch, other=0.0)
    x_at = view * view_stride + row.to(tl.int64)[:, None] * row_stride + place.to(tl.int64)[None, :] * dim_stride
    x = tl.load(views + x_at, mask=there, other=0.0).to(tl.float32)
    return pull, x * scale[:, None], scale  # x is not rounded to float16, so that the gradient is orthogonal to it


@triton.jit
def store_slopes(
    g,
    pull,
    direction,
    scale,
    row,
    view,
    scalars,
    beta,
    outer,
    gradient,
    along,
    own,
    dim,
    FOR_TAU: tl.constexpr,
    DIM: tl.constexpr,
):
    """Subtract the attraction from g (row, dim), differentiate the normalisation, and store the gradient of x.

    `outer` is the gradient of the loss. `along` gets r if the temperature requires a gradient. Both results have `own`
    rows of each view, and `row` counts from the first of them.
    """
    place = tl.arange(0, DIM)
    slope = (g * tl.load(scalars) - pull) * (beta * tl.load(outer).to(tl.float32))
    r = tl.sum(direction * slope, axis=1)
    result = (slope - r[:, None] * direction) * scale[:, None]
    to = (view.to(tl.int64) * own + row)[:, None] * dim + place[None, :]
    there = (row < own)[:, None] & (place < dim)[None, :]
    tl.store(gradient + to, result.to(gradient.dtype.element_ty), mask=there)
    if FOR_TAU:
        tl.store(along + view.to(tl.int64) * own + row, r, mask=row < own)


@triton.jit(do_not_specialize=["batch", "view_count", "dim", "first", "own"])
def gather_kernel(
    parts,
    packed,
    views,
    total,
    inverse,
    others,
    count,
    scalars,
    temperature,
    outer,
    gradient,
    along,
    batch,
    rows_padded,
    view_count,
    dim,
    first,
    own,
    own_padded,
    view_stride,
    row_stride,
    dim_stride,
    PARTS: tl.constexpr,
    SOME: tl.constexpr,
    TENSOR: tl.constexpr,
    PATIENTS: tl.constexpr,
    FOR_TAU: tl.constexpr,
    ROWS: tl.constexpr,
    DIM: tl.constexpr,
    TWO: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Add up the parts of g and compute the gradient from them. SOME: of `own` rows from `first` on.

    `parts` may be `gradient` itself; each program reads it before it writes.
    """
    take_turn(EARLY)
    mine = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row = mine
    if SOME:
        row += first
    view = tl.program_id(1)
    at = (view.to(tl.int64) * own_padded + mine)[:, None] * DIM + tl.arange(0, DIM)[None, :]
    g = tl.zeros((ROWS, DIM), tl.float32)
    for part in tl.static_range(PARTS):
        found = parts + part * (view_count.to(tl.int64) * own_padded * DIM) + at
        g += tl.load(found, mask=(mine < own)[:, None], other=0.0)
    pull, direction, size = load_pulls(
        row, view, packed, views, total, inverse, others, count, scalars, batch, rows_padded, view_count, dim,
        view_stride, row_stride, dim_stride, PATIENTS, DIM, TWO,
    )  # fmt: skip
    beta, _ = exponent(temperature, TENSOR)
    store_slopes(g, pull, direction, size, mine, view, scalars, beta, outer, gradient, along, own, dim, FOR_TAU, DIM)
