"""Kernels before the tiles: normalise and pack embeddings, and sum the other instances of each patient.

With h the embeddings at length 1 as the tiles read them, X_i the sum of h_vi over the views v, and p(i) a patient:

    pack     h, X and 1/|x|, and sum_v h_vi·(X_i - h_vi), the attraction between the views of an instance
    others   o_vi = sum over the k != i of p(i) of (X_k - h_vk), and sum_i h_vi·o_vi

Patient ids are compared only here, as 64-bit integers. `pack` also sorts a batch by counting: an instance comes after
all smaller ids, and after the same id earlier in the batch. A batch too large for that is sorted before, and `groups`
finds where each patient begins and ends.
"""
# Triton compiles these functions; it does not read Python's types.
# ruff: noqa: ANN001, ANN201, N803
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

import triton
import triton.language as tl

from clocs_plugins.contrastive_losses.cosines import LEAST_NORM
from clocs_plugins.contrastive_losses.early_start import take_turn

LEAST_SQUARE = tl.constexpr(LEAST_NORM**2)


@triton.jit
def halves(value, dtype):
    """Split a float32 number into two of float16: the nearest one, and the nearest to the remainder."""
    first = value.to(dtype)
    return first, (value - first.to(tl.float32)).to(dtype)


@triton.jit(do_not_specialize=["batch", "view_count", "dim"])
def pack_kernel(
    views,
    patient,
    packed,
    total,
    inverse,
    diagonal,
    order,
    first,
    count,
    ahead,
    batch,
    rows_padded,
    view_count,
    dim,
    view_stride,
    row_stride,
    dim_stride,
    patient_stride,
    ROWS: tl.constexpr,
    VIEWS: tl.constexpr,
    DIM: tl.constexpr,
    TWO: tl.constexpr,
    SORT: tl.constexpr,
    RELEASED: tl.constexpr,
    AT_ONCE: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Pack all views of ROWS instances per program."""
    take_turn(EARLY)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    place = tl.arange(0, DIM)
    whole = tl.zeros((ROWS, DIM), tl.float32)
    squares = tl.zeros((ROWS,), tl.float32)
    plane = view_count.to(tl.int64) * rows_padded * DIM
    for start in range(0, view_count, VIEWS):
        view = (start + tl.arange(0, VIEWS)).to(tl.int64)
        there = (view < view_count)[:, None] & (row < batch)[None, :]  # (view, row)
        at = view[:, None, None] * view_stride + row.to(tl.int64)[None, :, None] * row_stride
        at += place.to(tl.int64)[None, None, :] * dim_stride
        x = tl.load(views + at, mask=there[:, :, None] & (place < dim)[None, None, :], other=0.0).to(tl.float32)
        square = tl.sum(x * x, axis=2)
        long_enough = square > LEAST_SQUARE  # a NaN is not, and stays a NaN when multiplied by 0
        scale = tl.where(long_enough, tl.rsqrt(tl.where(long_enough, square, 1.0)), 0.0)
        h, rest = halves(x * scale[:, :, None], packed.dtype.element_ty)
        to = view[:, None] * rows_padded + row[None, :]
        known = (view < view_count)[:, None] & (row < rows_padded)[None, :]
        tl.store(inverse + to, scale, mask=known)
        to = to[:, :, None] * DIM + place[None, None, :]
        tl.store(packed + to, h, mask=known[:, :, None])
        seen = h.to(tl.float32)
        if TWO:
            tl.store(packed + plane + to, rest, mask=known[:, :, None])
            seen += rest.to(tl.float32)
        whole += tl.sum(seen, axis=0)
        squares += tl.sum(tl.sum(seen * seen, axis=2), axis=0)
    tl.store(total + row.to(tl.int64)[:, None] * DIM + place[None, :], whole, mask=(row < rows_padded)[:, None])
    tl.store(diagonal + row, tl.sum(whole * whole, axis=1) - squares, mask=row < batch)
    if SORT:
        mine = tl.load(patient + row.to(tl.int64) * patient_stride, mask=row < batch, other=0).to(tl.int64)
        # Count per element and add up after the loop: a sum over a program waits for all of its threads.
        smaller_same = tl.zeros((ROWS, AT_ONCE), tl.int32)
        before = tl.zeros((ROWS, AT_ONCE), tl.int32)
        for start in range(0, batch, AT_ONCE):
            k = start + tl.arange(0, AT_ONCE)
            other = tl.load(patient + k.to(tl.int64) * patient_stride, mask=k < batch, other=0).to(tl.int64)
            equal = (other[None, :] == mine[:, None]) & (k < batch)[None, :]
            smaller = (other[None, :] < mine[:, None]) & (k < batch)[None, :]
            smaller_same += tl.where(smaller, 1, tl.where(equal, 65536, 0))
            before += (equal & (k[None, :] < row[:, None])).to(tl.int32)
        counted = tl.sum(smaller_same, axis=1)
        smaller, same, before = counted % 65536, counted // 65536, tl.sum(before, axis=1)
        tl.store(order + smaller + before, row, mask=row < batch)
        tl.store(first + row, smaller, mask=row < batch)
        tl.store(count + row, same, mask=row < batch)
        tl.store(ahead + row, same - 1 - before if RELEASED else same - 1, mask=row < batch)


@triton.jit
def others_of_rows(packed, total, row, there, view, plane, rows_padded, DIM: tl.constexpr, TWO: tl.constexpr):
    """Load the embeddings h_vk of some instances k, and X_k - h_vk; zeros where there is no such instance."""
    place = tl.arange(0, DIM)
    at = (view.to(tl.int64) * rows_padded + row)[:, None] * DIM + place[None, :]
    h = tl.load(packed + at, mask=there[:, None], other=0.0).to(tl.float32)
    if TWO:
        h += tl.load(packed + plane + at, mask=there[:, None], other=0.0).to(tl.float32)
    whole = tl.load(total + row.to(tl.int64)[:, None] * DIM + place[None, :], mask=there[:, None], other=0.0)
    return h, whole - h


@triton.jit(do_not_specialize=["batch", "view_count"])
def others_kernel(
    packed,
    total,
    order,
    first,
    count,
    others,
    pulled,
    batch,
    rows_padded,
    view_count,
    DIM: tl.constexpr,
    TWO: tl.constexpr,
    AT_ONCE: tl.constexpr,
    ROWS: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Sum the others of ROWS instances of one view per program. A patient's first instance computes all of them.

    Most patients occur once and have nothing to add up: nothing is written for them, nor read later.
    """
    take_turn(EARLY)
    view = tl.program_id(1)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    many = tl.load(count + row, mask=row < batch, other=1)
    at = tl.load(first + row, mask=row < batch, other=0)
    leads = (many > 1) & (tl.load(order + at, mask=many > 1, other=-1) == row)
    tl.store(pulled + view.to(tl.int64) * batch + row, tl.zeros((ROWS,), tl.float32), mask=(row < batch) & (~leads))
    if tl.max(leads.to(tl.int32), axis=0) > 0:
        for one in range(tl.program_id(0) * ROWS, tl.minimum(tl.program_id(0) * ROWS + ROWS, batch)):
            add_up_others(
                packed, total, order, first, count, others, pulled, one, view, batch, rows_padded, view_count,
                DIM, TWO, AT_ONCE,
            )  # fmt: skip


@triton.jit
def add_up_others(
    packed,
    total,
    order,
    first,
    count,
    others,
    pulled,
    one,
    view,
    batch,
    rows_padded,
    view_count,
    DIM: tl.constexpr,
    TWO: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """Sum the others of all instances of a patient, if `one` is its first instance and not the only one."""
    many = tl.load(count + one)
    at = tl.load(first + one)
    if (many > 1) & (tl.load(order + at) == one):
        pull = 0.0
        plane = view_count.to(tl.int64) * rows_padded * DIM
        summed = tl.zeros((DIM,), tl.float32)
        for start in range(0, many, AT_ONCE):
            k = start + tl.arange(0, AT_ONCE)
            row = tl.load(order + at + k, mask=k < many, other=0)
            _, y = others_of_rows(packed, total, row, k < many, view, plane, rows_padded, DIM, TWO)
            summed += tl.sum(y, axis=0)
        for start in range(0, many, AT_ONCE):
            k = start + tl.arange(0, AT_ONCE)
            row = tl.load(order + at + k, mask=k < many, other=0)
            h, y = others_of_rows(packed, total, row, k < many, view, plane, rows_padded, DIM, TWO)
            o = tl.where((k < many)[:, None], summed[None, :] - y, 0.0)
            to = (view.to(tl.int64) * rows_padded + row)[:, None] * DIM + tl.arange(0, DIM)[None, :]
            tl.store(others + to, o, mask=(k < many)[:, None])
            pull += tl.sum(h * o)
        tl.store(pulled + view.to(tl.int64) * batch + one, pull)


@triton.jit(do_not_specialize=["batch", "steps"])
def groups_kernel(
    ids,
    sorted_order,
    order,
    first,
    count,
    ahead,
    batch,
    steps,
    RELEASED: tl.constexpr,
    PLACES: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Compute the counts of `pack` from sorted ids: by bisection, in as many steps as `batch` has bits."""
    take_turn(EARLY)
    place = tl.program_id(0) * PLACES + tl.arange(0, PLACES)
    there = place < batch
    mine = tl.load(ids + place, mask=there, other=0)
    row = tl.load(sorted_order + place, mask=there, other=0)
    start, end = tl.zeros((PLACES,), tl.int32), tl.zeros((PLACES,), tl.int32)  # counts of smaller, and of not larger
    start_most, end_most = start + batch, end + batch
    for _ in range(steps):
        middle = (start + start_most) // 2
        smaller = tl.load(ids + middle, mask=there & (middle < batch), other=0) < mine
        start, start_most = tl.where(smaller, middle + 1, start), tl.where(smaller, start_most, middle)
        middle = (end + end_most) // 2
        larger = (tl.load(ids + middle, mask=there & (middle < batch), other=0) > mine) | (middle >= batch)
        end, end_most = tl.where(larger, end, middle + 1), tl.where(larger, middle, end_most)
    tl.store(order + place, row.to(tl.int32), mask=there)
    tl.store(first + row, start, mask=there)
    tl.store(count + row, end - start, mask=there)
    tl.store(ahead + row, end - 1 - place if RELEASED else end - start - 1, mask=there)
