"""Kernels of the K x K tiles. No K x K matrix is stored, and patient ids are not read.

With h the embeddings at length 1, beta = 1/tau, and a shift that keeps the exponentials in float32:

    e_ij     = exp(beta·h_vi·h_wj - shift)
    sums     for every pair of views v < w (and v = w without i = j, for NT-Xent) the sums of e over j, and over i
    gradient g_vi = sum over w, j of e_ij·(u_i + u'_j)·h_wj, where u = weight / sum of e of a row, u' of a column

Cosines are bounded, so one shift serves all rows: no running maximum, and one exponential for both directions.
Exponents are of base 2, as in the hardware. Padded rows of h are zeros.
"""
# Triton compiles these functions and does not read Python's types; SIM102 would join compile-time and run-time ifs.
# ruff: noqa: ANN001, ANN201, N803, SIM102
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

import triton
import triton.language as tl

from clocs_plugins.contrastive_losses.early_start import take_turn
from clocs_plugins.contrastive_losses.gradient_helpers import exponent, load_pulls, store_slopes
from clocs_plugins.contrastive_losses.packing import halves

LOG2E = tl.constexpr(1.4426950408889634)
MOST = tl.constexpr(65504.0)
"""The largest number of float16."""


@triton.jit
def pair_number(v, w, view_count, SELF: tl.constexpr):
    """Return the number of the pair of views v < w, or v <= w with SELF, counted row by row."""
    if SELF:
        return v * view_count - v * (v - 1) // 2 + (w - v)
    else:
        return v * (view_count - 1) - v * (v - 1) // 2 + (w - v - 1)


@triton.jit
def pair_of(number, view_count, SELF: tl.constexpr):
    """Return the views v and w of the pair with this number."""
    v = 0
    beginning = view_count if SELF else view_count - 1  # pairs whose first view is v
    while number >= beginning:
        number -= beginning
        beginning -= 1
        v += 1
    return v, v + number if SELF else v + number + 1


@triton.jit
def weights_of(weight, v, w, rows_padded, view_count, SELF: tl.constexpr):
    """Return the address of the weights of rows of v for rows of w. Without SELF, there are none for v = w."""
    if SELF:
        return weight + tl.cast(v * view_count + w, tl.int64) * rows_padded
    else:
        return weight + tl.cast(v * (view_count - 1) + w - (w > v), tl.int64) * rows_padded


@triton.jit
def load_rows(at, plane, ROWS: tl.constexpr, DIM: tl.constexpr, TWO: tl.constexpr):
    """Load a tile (row, dim) of packed embeddings, and its second half if there is one."""
    tile = at + tl.arange(0, ROWS)[:, None] * DIM + tl.arange(0, DIM)[None, :]
    h = tl.load(tile)
    rest = h
    if TWO:
        rest = tl.load(tile + plane)
    return h, rest


@triton.jit
def cosines(a, a_rest, b, b_rest, TWO: tl.constexpr):
    """Compute cosines (row, column) of two tiles. With two halves, the product of the small ones is omitted: 2^-22."""
    s = tl.dot(a, tl.trans(b))
    if TWO:
        s = tl.dot(a, tl.trans(b_rest), s)
        s = tl.dot(a_rest, tl.trans(b), s)
    return s


@triton.jit
def exponentials(at, plane, b, b_rest, scale, bias, ROWS: tl.constexpr, DIM: tl.constexpr, TWO: tl.constexpr):
    """Compute e of ROWS rows and the columns b."""
    a, a_rest = load_rows(at, plane, ROWS, DIM, TWO)
    return tl.exp2(tl.fma(cosines(a, a_rest, b, b_rest, TWO), scale, bias[None, :]))


@triton.jit(do_not_specialize=["batch", "view_count", "column_blocks", "first_pair", "pairs"])
def sums_kernel(
    packed,
    temperature,
    row_parts,
    column_sums,
    batch,
    rows_padded,
    view_count,
    column_blocks,
    first_pair,
    pairs,
    SELF: tl.constexpr,
    TENSOR: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DIM: tl.constexpr,
    TWO: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Sum e over rows and columns. A program has COLUMNS columns of view w and iterates over the rows of view v.

    Column sums stay in registers. Row sums of the tile are one of `column_blocks` parts, to be added in order:
    row_parts (pair, column block, row). column_sums[w, v] (view, view, row) belong to the pair v < w. For v = w only
    i > j is added, to both sums, since e_ij = e_ji.
    """
    take_turn(EARLY)
    v, w, block = tl.program_id(0) // view_count, tl.program_id(0) % view_count, tl.program_id(1)
    if SELF:
        if v > w:
            return
    else:
        if v >= w:
            return
    pair = pair_number(v, w, view_count, SELF) - first_pair
    if (pair < 0) | (pair >= pairs):
        return
    beta, shift = exponent(temperature, TENSOR)
    scale = beta * LOG2E
    plane = view_count.to(tl.int64) * rows_padded * DIM
    column = block * COLUMNS + tl.arange(0, COLUMNS)
    # A padded column has an exponent of minus infinity. That costs nothing in the loop; a mask would.
    bias = tl.where(column < batch, -shift * LOG2E, -float("inf"))
    b, b_rest = load_rows(packed + (w.to(tl.int64) * rows_padded + block * COLUMNS) * DIM, plane, COLUMNS, DIM, TWO)
    rows = packed + v.to(tl.int64) * rows_padded * DIM
    parts = row_parts + (pair.to(tl.int64) * column_blocks + block) * rows_padded + tl.arange(0, ROWS)
    by_column = tl.zeros((ROWS, COLUMNS), tl.float32)
    full = batch // ROWS  # whole tiles; the rest comes after the loop, since a mask in it would cost every element
    start = 0
    if SELF:
        if v == w:
            crossing = tl.minimum(tl.cdiv((block + 1) * COLUMNS, ROWS), full)
            start = block * COLUMNS // ROWS
            for i in range(start, crossing):
                e = exponentials(
                    rows + tl.cast(i, tl.int64) * (ROWS * DIM), plane, b, b_rest, scale, bias, ROWS, DIM, TWO
                )
                e = tl.where((i * ROWS + tl.arange(0, ROWS))[:, None] > column[None, :], e, 0.0)
                by_column += e
                tl.store(parts + i * ROWS, tl.sum(e, axis=1))
            start = tl.maximum(start, crossing)
    for i in range(start, full):
        e = exponentials(rows + tl.cast(i, tl.int64) * (ROWS * DIM), plane, b, b_rest, scale, bias, ROWS, DIM, TWO)
        by_column += e
        tl.store(parts + i * ROWS, tl.sum(e, axis=1))
    if full * ROWS < batch:
        row = full * ROWS + tl.arange(0, ROWS)
        e = exponentials(rows + tl.cast(full, tl.int64) * (ROWS * DIM), plane, b, b_rest, scale, bias, ROWS, DIM, TWO)
        e = tl.where((row < batch)[:, None], e, 0.0)
        if SELF:
            e = tl.where((row[:, None] > column[None, :]) | (v != w), e, 0.0)
        by_column += e
        tl.store(parts + full * ROWS, tl.sum(e, axis=1))
    tl.store(column_sums + tl.cast(w * view_count + v, tl.int64) * rows_padded + column, tl.sum(by_column, axis=0))


@triton.jit
def add_tile(
    summed,
    tile,
    a,
    a_rest,
    row,
    v,
    of_row,
    packed,
    weight,
    plane,
    rows_padded,
    view_count,
    scale,
    bias,
    SELF: tl.constexpr,
    ONE_OTHER: tl.constexpr,
    PADDED: tl.constexpr,
    COLUMNS: tl.constexpr,
    DIM: tl.constexpr,
    TWO: tl.constexpr,
):
    """Add one tile of columns to the gradient of the rows."""
    start = tile * COLUMNS
    if not SELF:
        start += tl.where(start >= v * rows_padded, rows_padded, 0)
    if ONE_OTHER:
        w = 1 - v
    else:
        w = start // rows_padded
        of_row = tl.load(weights_of(weight, v, w, rows_padded, view_count, SELF) + row)
    column = start - w * rows_padded + tl.arange(0, COLUMNS)
    of_column = tl.load(weights_of(weight, w, v, rows_padded, view_count, SELF) + column)
    b, b_rest = load_rows(packed + tl.cast(start, tl.int64) * DIM, plane, COLUMNS, DIM, TWO)
    e = tl.exp2(tl.fma(cosines(a, a_rest, b, b_rest, TWO), scale, bias))
    if SELF:  # an instance does not repel itself
        e = tl.where((v * rows_padded + row)[:, None] == (start + tl.arange(0, COLUMNS))[None, :], 0.0, e)
    g = e * (of_row[:, None] + of_column[None, :])
    if PADDED:  # in a padded column u_i alone may overflow float16, and infinity times the column's zeros is NaN
        g = tl.minimum(g, MOST, propagate_nan=tl.PropagateNan.ALL)
    large, small = halves(g, b.dtype)
    summed = tl.dot(large, b, summed)
    if TWO:
        summed = tl.dot(large, b_rest, summed)
        summed = tl.dot(small, b, summed)
    return summed


@triton.jit(do_not_specialize=["batch", "view_count", "dim", "tiles_each", "first", "own"])
def gradient_kernel(
    packed,
    temperature,
    weight,
    parts,
    views,
    total,
    inverse,
    others,
    count,
    scalars,
    outer,
    gradient,
    along,
    batch,
    rows_padded,
    view_count,
    dim,
    tiles_each,
    first,
    own,
    own_padded,
    view_stride,
    row_stride,
    dim_stride,
    SELF: tl.constexpr,
    ONE_OTHER: tl.constexpr,
    PADDED: tl.constexpr,
    SOME: tl.constexpr,
    TENSOR: tl.constexpr,
    WHOLE: tl.constexpr,
    FOR_TAU: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DIM: tl.constexpr,
    TWO: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Compute g. A program has ROWS rows of view v and iterates over `tiles_each` tiles of rows of the other views.

    The rows of all views are consecutive, and so are the numbers of their tiles; those of v itself are skipped, unless
    SELF. weight (view, other view, row) holds u. WHOLE: these are all the tiles, and the program computes the gradient
    of its rows; otherwise it leaves one of the parts (program, view, row, dim) that `gather` adds up in order. With
    ONE_OTHER, u of the rows is read once. PADDED: some rows and columns are padding; sums of such rows mean nothing.
    SOME: only `own` rows from `first` on have gradients; the parts then have `own_padded` rows of each view.
    """
    take_turn(EARLY)
    block, v, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    beta, shift = exponent(temperature, TENSOR)
    scale, bias = beta * LOG2E, -shift * LOG2E
    plane = view_count.to(tl.int64) * rows_padded * DIM
    mine = v.to(tl.int64) * rows_padded + block * ROWS
    row = block * ROWS + tl.arange(0, ROWS)
    if SOME:
        mine += first
        row += first
    a, a_rest = load_rows(packed + mine * DIM, plane, ROWS, DIM, TWO)
    summed = tl.zeros((ROWS, DIM), tl.float32)
    of_row = tl.zeros((ROWS,), tl.float32)
    if ONE_OTHER:
        of_row = tl.load(weights_of(weight, v, 1 - v, rows_padded, view_count, SELF) + row)
    if WHOLE:  # loaded before the tiles, so that the program does not wait for it afterwards
        pull, direction, size = load_pulls(
            row, v, packed, views, total, inverse, others, count, scalars, batch, rows_padded, view_count, dim,
            view_stride, row_stride, dim_stride, not SELF, DIM, TWO,
        )  # fmt: skip
    start = part * tiles_each
    end = tl.minimum(start + tiles_each, (view_count if SELF else view_count - 1) * (rows_padded // COLUMNS))
    for tile in range(start, end):
        summed = add_tile(
            summed, tile, a, a_rest, row, v, of_row, packed, weight, plane, rows_padded, view_count,
            scale, bias, SELF, ONE_OTHER, PADDED, COLUMNS, DIM, TWO,
        )  # fmt: skip
    if WHOLE:
        place = block * ROWS + tl.arange(0, ROWS)
        store_slopes(
            summed, pull, direction, size, place, v, scalars, beta, outer, gradient, along, own, dim, FOR_TAU, DIM
        )
    else:  # one 64-bit place for the tile: one for each row would not fit into the registers of a Blackwell
        to = ((part.to(tl.int64) * view_count + v) * own_padded + block * ROWS) * DIM
        tl.store(parts + to + tl.arange(0, ROWS)[:, None] * DIM + tl.arange(0, DIM)[None, :], summed)
