"""Kernels after the tiles: compute the loss and the weights from the sums of exponentials.

A pair of views costs  sum_i a_i·(lse_i + lse'_i) - beta·(d·sum_i h_vi·h_wi + f·sum_i h_vi·o_wi)  with the strengths

              a_i                        d             f
    paper     (1/K + n_i/N)·share        2/K·share     2/N·share      n_i: others of the patient, N their sum
    released  (1/K + n_i/N)·share/T      2/K·share/T   1/N·share/T    n_i: those after i in the batch; T = 4, or 2
    NT-Xent   1/2K·share                 1/K·share     0              lse over both views, without i itself

with share = 1 / pairs of views, and 1/N = 0 where N = 0. Then u_i = a_i / sum_j e_ij. The g of the tiles is
used by gradient_helpers.py.

Every sum is a tree within a program, then a sum of parts in a fixed order: the same input gives the same bits.
"""
# Triton compiles these functions; it does not read Python's types.
# ruff: noqa: ANN001, ANN201, N803, N806
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

import triton
import triton.language as tl

from clocs_plugins.contrastive_losses.early_start import take_turn
from clocs_plugins.contrastive_losses.gradient_helpers import exponent
from clocs_plugins.contrastive_losses.row_sums import row_sums, task_sums
from clocs_plugins.contrastive_losses.tiles import weights_of

RELEASED = tl.constexpr(1)
NT_XENT = tl.constexpr(2)


@triton.jit
def strengths(ahead, batch, share, KIND: tl.constexpr, AT_ONCE: tl.constexpr):
    """Return `one` and `more` of a = one + n_i·more, d, f and the largest a. Every program sums the integers n."""
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
def store_weights(v, w, row, forth, back, a, scale, shift, weight, batch, rows_padded, view_count, SELF: tl.constexpr):
    """Store the weights of rows of two different views, in both directions; return the cost of these rows."""
    real = row < batch
    forth, back = tl.where(real, forth, 1.0), tl.where(real, back, 1.0)
    of_v = weights_of(weight, v, w, rows_padded, view_count, SELF)
    of_w = weights_of(weight, w, v, rows_padded, view_count, SELF)
    tl.store(of_v + row, tl.where(real, a * scale / forth, 0.0))
    tl.store(of_w + row, tl.where(real, a * scale / back, 0.0))
    return tl.where(real, a * (tl.log(forth) + tl.log(back) + 2.0 * shift), 0.0)


@triton.jit
def store_own_weights(
    v,
    row,
    itself,
    strength,
    row_parts,
    column_sums,
    weight,
    batch,
    rows_padded,
    view_count,
    column_blocks,
    FOLDED: tl.constexpr,
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """Store the weights of rows of one view for each other: they repel in every pair that includes the view."""
    u = tl.zeros(row.shape, tl.float32)
    for other in range(view_count):
        if other != v:
            found = itself + row_sums(
                v, other, row, row_parts, column_sums, rows_padded, view_count, column_blocks,
                True, FOLDED, TILE_ROWS, TILE_COLUMNS, AT_ONCE,
            )  # fmt: skip
            u += strength / tl.where(row < batch, found, 1.0)
    own = weights_of(weight, v, v, rows_padded, view_count, True)
    tl.store(own + row, tl.where(row < batch, u, 0.0))


@triton.jit(do_not_specialize=["batch", "view_count", "column_blocks", "pairs"])
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
    pairs,
    KIND: tl.constexpr,
    FOLDED: tl.constexpr,
    TENSOR: tl.constexpr,
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    AT_ONCE: tl.constexpr,
    COUNT_AT_ONCE: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Compute the weights u of every ordered pair of views, and a part of the loss per program.

    Programs take turns at tasks: a pair of views, some rows, both directions. Slow loads are issued first: the sums of
    the first task and the attraction are loaded while n is added up.

    u is scaled by a power of two that puts the largest gradient of a similarity just below 2^15, so that float16 can
    hold all of them. scalars: the inverse of the scale, d, and f.
    """
    take_turn(EARLY)
    SELF: tl.constexpr = KIND == NT_XENT
    program, programs = tl.program_id(0), tl.num_programs(0)
    beta, shift = exponent(temperature, TENSOR)
    v, w, row, forth, back = task_sums(
        program, row_parts, column_sums, rows_padded, view_count, column_blocks,
        SELF, FOLDED, TILE_ROWS, TILE_COLUMNS, ROWS, AT_ONCE,
    )  # fmt: skip
    near, far = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
    for block in range(program, tl.cdiv(batch, ROWS), programs):
        i = block * ROWS + tl.arange(0, ROWS)
        near += tl.load(diagonal + i, mask=i < batch, other=0.0)
    if KIND != NT_XENT:
        places = view_count.to(tl.int64) * batch
        for block in range(program, tl.cdiv(places, ROWS), programs):
            at = tl.cast(block, tl.int64) * ROWS + tl.arange(0, ROWS)
            far += tl.load(pulled + at, mask=at < places, other=0.0)
    one, more, d, f, largest = strengths(ahead, batch, share, KIND, COUNT_AT_ONCE)
    scale = tl.exp2(tl.floor(14.0 - tl.log2(largest)))
    if program == 0:
        tl.store(scalars, 1.0 / scale)
        tl.store(scalars + 1, d)
        tl.store(scalars + 2, f)
    cost = tl.zeros((ROWS,), tl.float32)
    tasks = pairs * (rows_padded // ROWS)
    for task in range(program, tasks, programs):
        if SELF:
            a = tl.zeros((ROWS,), tl.float32) + one
            if v == w:
                store_own_weights(
                    v, row, forth, a * scale, row_parts, column_sums, weight, batch, rows_padded, view_count,
                    column_blocks, FOLDED, TILE_ROWS, TILE_COLUMNS, AT_ONCE,
                )  # fmt: skip
            else:
                forth += row_sums(
                    v, v, row, row_parts, column_sums, rows_padded, view_count, column_blocks,
                    SELF, FOLDED, TILE_ROWS, TILE_COLUMNS, AT_ONCE,
                )  # fmt: skip
                back += row_sums(
                    w, w, row, row_parts, column_sums, rows_padded, view_count, column_blocks,
                    SELF, FOLDED, TILE_ROWS, TILE_COLUMNS, AT_ONCE,
                )  # fmt: skip
                cost += store_weights(
                    v, w, row, forth, back, a, scale, shift, weight, batch, rows_padded, view_count, SELF
                )
        else:
            a = one + tl.load(ahead + row, mask=row < batch, other=0).to(tl.float32) * more
            cost += store_weights(v, w, row, forth, back, a, scale, shift, weight, batch, rows_padded, view_count, SELF)
        if task + programs < tasks:
            v, w, row, forth, back = task_sums(
                task + programs, row_parts, column_sums, rows_padded, view_count, column_blocks,
                SELF, FOLDED, TILE_ROWS, TILE_COLUMNS, ROWS, AT_ONCE,
            )  # fmt: skip
    # The attraction of a pair of views was counted from both sides, hence the half.
    tl.store(parts + program, tl.sum(cost - 0.5 * beta * (d * near + f * far), axis=0))


@triton.jit(do_not_specialize=["count"])
def add_kernel(
    values,
    result,
    temperature,
    count,
    FOR_TAU: tl.constexpr,
    TENSOR: tl.constexpr,
    AT_ONCE: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Add up values in one program: the parts of the loss, or r for the gradient of tau."""
    take_turn(EARLY)
    summed = tl.zeros((AT_ONCE,), tl.float32)
    for start in range(0, count, AT_ONCE):
        i = start + tl.arange(0, AT_ONCE)
        summed += tl.load(values + i, mask=i < count, other=0.0)
    found = tl.sum(summed, axis=0)
    if FOR_TAU:
        beta, _ = exponent(temperature, TENSOR)
        found *= -0.5 * beta
    tl.store(result, found)
