"""Add up the exponentials of each own row, over all columns.

Alone, a process computes e of a pair of views once, for both directions. With several processes, each has some rows of
every view, and needs e for both orders of each pair.
"""
# Triton compiles these functions and does not read Python's types; SIM102 would join compile-time and run-time ifs.
# ruff: noqa: ANN001, ANN201, N803, SIM102
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

import triton
import triton.language as tl

from clocs_plugins.contrastive_losses.early_start import take_turn
from clocs_plugins.contrastive_losses.gradient_helpers import exponent
from clocs_plugins.contrastive_losses.tiles import LOG2E, exponentials, load_rows


@triton.jit(do_not_specialize=["batch", "view_count", "first", "own", "tiles_each"])
def own_sums_kernel(
    packed,
    temperature,
    sums,
    batch,
    rows_padded,
    view_count,
    first,
    own,
    tiles_each,
    SELF: tl.constexpr,
    TENSOR: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DIM: tl.constexpr,
    TWO: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Sum e over the instances of view w, for `own` rows of view v from row `first` of the batch on.

    A program has COLUMNS own rows and iterates over `tiles_each` tiles of w: sums (part, view, other view, own). Own
    rows are the columns of its tiles, since their sums then stay in registers. With SELF also for v = w, without the
    instance itself.
    """
    take_turn(EARLY)
    v, w = tl.program_id(0) // view_count, tl.program_id(0) % view_count
    block, part = tl.program_id(1), tl.program_id(2)
    if not SELF:
        if v == w:
            return
    beta, shift = exponent(temperature, TENSOR)
    scale = beta * LOG2E
    plane = view_count.to(tl.int64) * rows_padded * DIM
    mine = block * COLUMNS + tl.arange(0, COLUMNS)
    bias = tl.where(mine < own, -shift * LOG2E, -float("inf"))
    start = v.to(tl.int64) * rows_padded + first + block * COLUMNS
    b, b_rest = load_rows(packed + start * DIM, plane, COLUMNS, DIM, TWO)
    others = packed + w.to(tl.int64) * rows_padded * DIM
    summed = tl.zeros((ROWS, COLUMNS), tl.float32)
    end = (part + 1) * tiles_each
    full = tl.minimum(end, batch // ROWS)  # whole tiles; the rest comes after the loop, without a mask in it
    for i in range(part * tiles_each, full):
        e = exponentials(others + tl.cast(i, tl.int64) * (ROWS * DIM), plane, b, b_rest, scale, bias, ROWS, DIM, TWO)
        if SELF:
            instance = i * ROWS + tl.arange(0, ROWS)
            e = tl.where((instance[:, None] != (first + mine)[None, :]) | (v != w), e, 0.0)
        summed += e
    if (full < end) & (full * ROWS < batch):
        instance = full * ROWS + tl.arange(0, ROWS)
        e = exponentials(others + tl.cast(full, tl.int64) * (ROWS * DIM), plane, b, b_rest, scale, bias, ROWS, DIM, TWO)
        e = tl.where((instance < batch)[:, None], e, 0.0)
        if SELF:
            e = tl.where((instance[:, None] != (first + mine)[None, :]) | (v != w), e, 0.0)
        summed += e
    to = sums + ((part.to(tl.int64) * view_count + v) * view_count + w) * own + mine
    tl.store(to, tl.sum(summed, axis=0), mask=mine < own)
