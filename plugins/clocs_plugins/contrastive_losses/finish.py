"""Kernels after the tiles: sums of exponentials become a loss and weights, sums of rows become gradients.

A pair of views costs  sum_i a_i·(lse_i + lse'_i) - beta·(d·sum_i h_vi·h_wi + f·sum_i h_vi·o_wi)  by the strengths

              a_i                        d             f
    paper     (1/K + n_i/N)·share        2/K·share     2/N·share      n_i: others of the patient, N their sum
    released  (1/K + n_i/N)·share/T      2/K·share/T   1/N·share/T    n_i: those behind i in the batch; T = 4, or 2
    NT-Xent   1/2K·share                 1/K·share     0              lse over both views, i itself left out

with share = 1 / pairs of views, and 1/N = 0 where N = 0. Then u_i = a_i / sum_j e_ij, and with g of the tiles,

    dL/dh_vi = beta·(g_vi - d·(X_i - h_vi) - f·o_vi),  r_vi = h_vi·dL/dh_vi
    dL/dx_vi = (dL/dh_vi - r_vi·h_vi) / |x_vi|,        dL/dtau = - sum_vi r_vi / (2·tau)

Every sum is a tree in a program and then parts in their order: the same input gives the same bits.
"""
# Triton's compiler reads these functions and not Python's types; SIM would join conditions of two times into one.
# ruff: noqa: ANN001, ANN201, ANN202, N803, N806, SIM102
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

import triton
import triton.language as tl

from clocs_plugins.contrastive_losses.tiles import exponent, pair_number

__all__ = ["add_kernel", "fold_kernel", "gather_kernel", "loss_kernel"]

RELEASED = tl.constexpr(1)
NT_XENT = tl.constexpr(2)


@triton.jit
def strengths(ahead, batch, share, KIND: tl.constexpr, AT_ONCE: tl.constexpr):
    """a = one + n_i·more, d and f; and the largest a. Every program adds n up by itself: they are whole numbers."""
    k = tl.cast(batch, tl.float32)
    if KIND == NT_XENT:
        return 0.5 * share / k, 0.0, share / k, 0.0, 0.5 * share / k
    else:
        pairs = tl.zeros((AT_ONCE,), tl.int64)
        most = tl.zeros((AT_ONCE,), tl.int32)
        for start in range(0, batch, AT_ONCE):
            i = start + tl.arange(0, AT_ONCE)
            n = tl.load(ahead + i, mask=i < batch, other=0)
            pairs += n.to(tl.int64)
            most = tl.maximum(most, n)
        found = tl.sum(pairs, axis=0)
        per_pair = tl.where(found > 0, 1.0 / tl.maximum(found, 1).to(tl.float32), 0.0)
        if KIND == RELEASED:
            part = share * tl.where(found > 0, 0.25, 0.5)
            f = per_pair * part
        else:
            part = share * 1.0
            f = 2.0 * per_pair * part
        largest = part / k + tl.max(most, axis=0).to(tl.float32) * per_pair * part
        return part / k, per_pair * part, 2.0 * part / k, f, largest


@triton.jit
def row_sums(
    v,
    w,
    row,
    row_parts,
    column_sums,
    rows_padded,
    view_count,
    column_blocks,
    first_pair,
    SELF: tl.constexpr,
    FOLDED: tl.constexpr,
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """The sums over j of e_ij for rows i of view v and the columns of view w."""
    there = column_sums + tl.cast(v * view_count + w, tl.int64) * rows_padded + row
    if FOLDED:
        found = tl.load(there)
    else:
        if v > w:
            found = tl.load(there)
        else:
            pair = tl.cast(pair_number(v, w, view_count, SELF) - first_pair, tl.int64)
            found = tl.zeros(row.shape, tl.float32)
            if SELF:
                if v == w:
                    found += tl.load(there)
            for start in range(0, column_blocks, AT_ONCE):
                block = start + tl.arange(0, AT_ONCE)
                written = (block < column_blocks)[:, None] & (row >= 0)[None, :]
                if SELF:  # within a view, tiles above the diagonal were not computed
                    below = (row // TILE_ROWS)[None, :] >= (block * TILE_COLUMNS // TILE_ROWS)[:, None]
                    written = written & (below | (v != w))
                at = (pair * column_blocks + block)[:, None] * rows_padded + row[None, :]
                found += tl.sum(tl.load(row_parts + at, mask=written, other=0.0), axis=0)
    return found


@triton.jit(do_not_specialize=["view_count", "column_blocks", "first_pair", "pairs"])
def fold_kernel(
    row_parts,
    column_sums,
    rows_padded,
    view_count,
    column_blocks,
    first_pair,
    pairs,
    SELF: tl.constexpr,
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """Put the row sums of some pairs of views where their column sums are, so that the parts can be used again."""
    v, w = tl.program_id(0) // view_count, tl.program_id(0) % view_count
    if SELF:
        if v > w:
            return
    else:
        if v >= w:
            return
    pair = pair_number(v, w, view_count, SELF) - first_pair
    if (pair < 0) | (pair >= pairs):
        return
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    found = row_sums(
        v, w, row, row_parts, column_sums, rows_padded, view_count, column_blocks, first_pair,
        SELF, False, TILE_ROWS, TILE_COLUMNS, AT_ONCE,
    )  # fmt: skip
    tl.store(column_sums + tl.cast(v * view_count + w, tl.int64) * rows_padded + row, found)


@triton.jit(do_not_specialize=["batch", "view_count", "column_blocks"])
def loss_kernel(
    row_parts,
    column_sums,
    ahead,
    diagonal,
    pulled,
    temperature,
    share,
    weight,
    scalars,
    parts,
    batch,
    rows_padded,
    view_count,
    column_blocks,
    KIND: tl.constexpr,
    FOLDED: tl.constexpr,
    TENSOR: tl.constexpr,
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    AT_ONCE: tl.constexpr,
    COUNT_AT_ONCE: tl.constexpr,
):
    """The weights u of every ordered pair of views, and a part of the loss per program, which take turns at the rows.

    u is scaled by a power of two that puts the largest gradient of a similarity just below 2^15, so that float16 can
    hold all of them. scalars: what undoes it, d, and f.
    """
    SELF: tl.constexpr = KIND == NT_XENT
    program, programs = tl.program_id(0), tl.num_programs(0)
    beta, shift = exponent(temperature, TENSOR)
    one, more, d, f, largest = strengths(ahead, batch, share, KIND, COUNT_AT_ONCE)
    scale = tl.exp2(tl.floor(14.0 - tl.log2(largest)))
    if program == 0:
        tl.store(scalars, 1.0 / scale)
        tl.store(scalars + 1, d)
        tl.store(scalars + 2, f)
    blocks = rows_padded // ROWS
    cost = tl.zeros((ROWS,), tl.float32)
    for task in range(program, view_count * view_count * blocks, programs):
        v, w = task // blocks // view_count, task // blocks % view_count
        row = task % blocks * ROWS + tl.arange(0, ROWS)
        if KIND == NT_XENT:
            a = tl.zeros((ROWS,), tl.float32) + one
            itself = row_sums(
                v, v, row, row_parts, column_sums, rows_padded, view_count, column_blocks, 0,
                SELF, FOLDED, TILE_ROWS, TILE_COLUMNS, AT_ONCE,
            )  # fmt: skip
        else:
            a = one + tl.load(ahead + row, mask=row < batch, other=0).to(tl.float32) * more
            itself = tl.zeros((ROWS,), tl.float32)
        u = tl.zeros((ROWS,), tl.float32)
        if v != w:
            found = itself + row_sums(
                v, w, row, row_parts, column_sums, rows_padded, view_count, column_blocks, 0,
                SELF, FOLDED, TILE_ROWS, TILE_COLUMNS, AT_ONCE,
            )  # fmt: skip
            found = tl.where(row < batch, found, 1.0)
            cost += tl.where(row < batch, a * (tl.log(found) + shift), 0.0)
            u = a * scale / found
        elif SELF:  # rows of the same view repel in every pair of views that it is in
            for other in range(view_count):
                if other != v:
                    found = itself + row_sums(
                        v, other, row, row_parts, column_sums, rows_padded, view_count, column_blocks, 0,
                        SELF, FOLDED, TILE_ROWS, TILE_COLUMNS, AT_ONCE,
                    )  # fmt: skip
                    u += a * scale / tl.where(row < batch, found, 1.0)
        u = tl.where(row < batch, u, 0.0)
        tl.store(weight + tl.cast(v * view_count + w, tl.int64) * rows_padded + row, u)
    pull = tl.zeros((ROWS,), tl.float32)
    for block in range(program, tl.cdiv(batch, ROWS), programs):
        row = block * ROWS + tl.arange(0, ROWS)
        pull += d * tl.load(diagonal + row, mask=row < batch, other=0.0)
    if KIND != NT_XENT:
        places = view_count.to(tl.int64) * batch
        for block in range(program, tl.cdiv(places, ROWS), programs):
            at = tl.cast(block, tl.int64) * ROWS + tl.arange(0, ROWS)
            pull += f * tl.load(pulled + at, mask=at < places, other=0.0)
    # A pair of views was counted from both sides: half of it.
    tl.store(parts + program, tl.sum(cost - 0.5 * beta * pull, axis=0))


@triton.jit(do_not_specialize=["count"])
def add_kernel(values, result, temperature, count, FOR_TAU: tl.constexpr, TENSOR: tl.constexpr, AT_ONCE: tl.constexpr):
    """The sum of some values, in one program: the loss of its parts, or the gradient of tau of r."""
    summed = tl.zeros((AT_ONCE,), tl.float32)
    for start in range(0, count, AT_ONCE):
        i = start + tl.arange(0, AT_ONCE)
        summed += tl.load(values + i, mask=i < count, other=0.0)
    found = tl.sum(summed, axis=0)
    if FOR_TAU:
        beta, _ = exponent(temperature, TENSOR)
        found *= -0.5 * beta
    tl.store(result, found)


@triton.jit(do_not_specialize=["batch", "view_count", "dim"])
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
    parts_rows,
    parts_dim,
    view_stride,
    row_stride,
    dim_stride,
    PARTS: tl.constexpr,
    TENSOR: tl.constexpr,
    PATIENTS: tl.constexpr,
    FOR_TAU: tl.constexpr,
    ROWS: tl.constexpr,
    DIM: tl.constexpr,
    TWO: tl.constexpr,
):
    """Add the parts of g up, take off what pulls, and go back through the normalisation: the gradient of x.

    `outer` is the gradient of the loss. `parts` may be `gradient` itself, which each program reads before it writes.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    view = tl.program_id(1).to(tl.int64)
    place = tl.arange(0, DIM)
    there = (row < batch)[:, None] & (place < dim)[None, :]
    at = (view * parts_rows + row)[:, None] * parts_dim + place[None, :]
    g = tl.zeros((ROWS, DIM), tl.float32)
    for part in tl.static_range(PARTS):
        g += tl.load(parts + part * (view_count.to(tl.int64) * parts_rows * parts_dim) + at, mask=there, other=0.0)
    padded = (view * rows_padded + row)[:, None] * DIM + place[None, :]
    h = tl.load(packed + padded, mask=there, other=0.0).to(tl.float32)
    if TWO:
        plane = view_count.to(tl.int64) * rows_padded * DIM
        h += tl.load(packed + plane + padded, mask=there, other=0.0).to(tl.float32)
    whole = tl.load(total + row.to(tl.int64)[:, None] * DIM + place[None, :], mask=there, other=0.0)
    slope = g * tl.load(scalars) - tl.load(scalars + 1) * (whole - h)
    if PATIENTS:
        repeated = tl.load(count + row, mask=row < batch, other=0) > 1
        slope -= tl.load(scalars + 2) * tl.load(others + padded, mask=there & repeated[:, None], other=0.0)
    beta, _ = exponent(temperature, TENSOR)
    slope *= beta * tl.load(outer).to(tl.float32)
    scale = tl.load(inverse + view * rows_padded + row, mask=row < batch, other=0.0)
    x_at = view * view_stride + row.to(tl.int64)[:, None] * row_stride + place.to(tl.int64)[None, :] * dim_stride
    x = tl.load(views + x_at, mask=there, other=0.0).to(tl.float32)
    direction = x * scale[:, None]  # not rounded to float16, so that the gradient is at right angles to x
    r = tl.sum(direction * slope, axis=1)
    result = (slope - r[:, None] * direction) * scale[:, None]
    to = (view * batch + row)[:, None] * dim + place[None, :]
    tl.store(gradient + to, result.to(gradient.dtype.element_ty), mask=there)
    if FOR_TAU:
        tl.store(along + view * batch + row, r, mask=row < batch)
