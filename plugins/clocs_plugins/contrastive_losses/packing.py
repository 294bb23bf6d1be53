"""Kernels before the tiles: embeddings at length 1 and packed, and what the others of each patient add up to.

With h the embeddings at length 1 as the tiles read them, X_i the sum of h_vi over the views v, and p(i) a patient:

    pack     h, X and 1/|x|, and sum_v h_vi·(X_i - h_vi), which is what the pairs of views of an instance pull
    others   o_vi = sum over the k != i of p(i) of (X_k - h_vk), and sum_i h_vi·o_vi

The ids of patients are compared here and nowhere else, as the integers of 64 bits that they are. `pack` also sorts a
batch by counting: an instance stands behind all smaller ids, and behind the same id earlier in the batch.
"""
# Triton's compiler reads these functions and not Python's types; SIM would join conditions of two times into one.
# ruff: noqa: ANN001, ANN201, ANN202, N803
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

import triton
import triton.language as tl

from clocs_plugins.contrastive_losses.cosines import LEAST_NORM

__all__ = ["others_kernel", "pack_kernel"]

LEAST_SQUARE = tl.constexpr(LEAST_NORM**2)


@triton.jit
def halves(value, dtype):
    """A number of float32 as two of float16: the nearest one, and the nearest to what is left."""
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
):
    """Each program has ROWS instances, all views of them."""
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
        smaller = tl.zeros((ROWS,), tl.int32)
        before = tl.zeros((ROWS,), tl.int32)
        same = tl.zeros((ROWS,), tl.int32)
        for start in range(0, batch, AT_ONCE):
            k = start + tl.arange(0, AT_ONCE)
            other = tl.load(patient + k.to(tl.int64) * patient_stride, mask=k < batch, other=0).to(tl.int64)
            equal = (other[None, :] == mine[:, None]) & (k < batch)[None, :]
            smaller += tl.sum(((other[None, :] < mine[:, None]) & (k < batch)[None, :]).to(tl.int32), axis=1)
            before += tl.sum((equal & (k[None, :] < row[:, None])).to(tl.int32), axis=1)
            same += tl.sum(equal.to(tl.int32), axis=1)
        tl.store(order + smaller + before, row, mask=row < batch)
        tl.store(first + row, smaller, mask=row < batch)
        tl.store(count + row, same, mask=row < batch)
        tl.store(ahead + row, same - 1 - before if RELEASED else same - 1, mask=row < batch)


@triton.jit
def others_of_rows(packed, total, row, there, view, plane, rows_padded, DIM: tl.constexpr, TWO: tl.constexpr):
    """The embeddings h_vk of some instances k, and X_k - h_vk; zeros where there is no such instance."""
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
):
    """A program for each place of the sorted batch and view; the first place of a patient works for all of them.

    Most patients come once, and then there is nothing to add up: nothing is written for them, nor read later.
    """
    at, view = tl.program_id(0), tl.program_id(1)
    leader = tl.load(order + at)
    many = tl.load(count + leader)
    pull = 0.0
    if (tl.load(first + leader) == at) & (many > 1):
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
    tl.store(pulled + view.to(tl.int64) * batch + at, pull)
