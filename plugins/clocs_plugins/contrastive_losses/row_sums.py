"""Sum exponentials over a row from the parts that the programs of the tiles left, in a fixed order."""
# Triton compiles these functions and does not read Python's types; SIM102 would join compile-time and run-time ifs.
# ruff: noqa: ANN001, ANN201, N803, SIM102
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

import triton
import triton.language as tl

from clocs_plugins.contrastive_losses.early_start import take_turn
from clocs_plugins.contrastive_losses.tiles import pair_number, pair_of


@triton.jit
def part_sums(
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
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """Add up the parts of the sums over j of e_ij, for rows i of view v and columns j of view w, v <= w."""
    pair = tl.cast(pair_number(v, w, view_count, SELF) - first_pair, tl.int64)
    found = tl.zeros(row.shape, tl.float32)
    if SELF:
        if v == w:
            found += tl.load(column_sums + tl.cast(v * view_count + w, tl.int64) * rows_padded + row)
    for start in range(0, column_blocks, AT_ONCE):
        block = start + tl.arange(0, AT_ONCE)
        written = (block < column_blocks)[:, None] & (row >= 0)[None, :]
        if SELF:  # within a view, tiles above the diagonal were not computed
            below = (row // TILE_ROWS)[None, :] >= (block * TILE_COLUMNS // TILE_ROWS)[:, None]
            written = written & (below | (v != w))
        at = (pair * column_blocks + block)[:, None] * rows_padded + row[None, :]
        found += tl.sum(tl.load(row_parts + at, mask=written, other=0.0), axis=0)
    return found


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
    SELF: tl.constexpr,
    FOLDED: tl.constexpr,
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """Return the sums over j of e_ij for any v and w."""
    there = column_sums + tl.cast(v * view_count + w, tl.int64) * rows_padded + row
    if FOLDED:
        found = tl.load(there)
    else:
        if v > w:
            found = tl.load(there)
        else:
            found = part_sums(
                v, w, row, row_parts, column_sums, rows_padded, view_count, column_blocks, 0,
                SELF, TILE_ROWS, TILE_COLUMNS, AT_ONCE,
            )  # fmt: skip
    return found


@triton.jit
def task_sums(
    task,
    row_parts,
    column_sums,
    rows_padded,
    view_count,
    column_blocks,
    SELF: tl.constexpr,
    FOLDED: tl.constexpr,
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """Return a task's pair of views v <= w, its rows, and their sums: of rows of v over w, and of rows of w over v."""
    blocks = rows_padded // ROWS
    v, w = pair_of(task // blocks, view_count, SELF)
    row = task % blocks * ROWS + tl.arange(0, ROWS)
    # Not row_sums: its loads are in a run-time branch and cannot start before the branch is decided.
    if FOLDED:
        forth = tl.load(column_sums + tl.cast(v * view_count + w, tl.int64) * rows_padded + row)
    else:
        forth = part_sums(
            v, w, row, row_parts, column_sums, rows_padded, view_count, column_blocks, 0,
            SELF, TILE_ROWS, TILE_COLUMNS, AT_ONCE,
        )  # fmt: skip
    back = tl.load(column_sums + tl.cast(w * view_count + v, tl.int64) * rows_padded + row)
    return v, w, row, forth, back


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
    EARLY: tl.constexpr,
):
    """Move the row sums of some pairs of views next to their column sums, so that the parts can be reused."""
    take_turn(EARLY)
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
    found = part_sums(
        v, w, row, row_parts, column_sums, rows_padded, view_count, column_blocks, first_pair,
        SELF, TILE_ROWS, TILE_COLUMNS, AT_ONCE,
    )  # fmt: skip
    tl.store(column_sums + tl.cast(v * view_count + w, tl.int64) * rows_padded + row, found)
