"""Kernels around the products of `by_matrix`: they move features, and write and read matrices with equal diagonals.

A tile is transposed in shared memory, so that it is read and written in the order of memory. torch's copies either read
or write with a stride: on an H200 they took 8 ms of a step of 30 ms, and the products 2 ms.
"""

# Triton compiles kernels: arguments are device pointers and numbers, capitals are compile-time constants.
# ruff: noqa: ANN001, ANN201, N803
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

TILE = 64
"""Positions and features of a tile that is transposed, and positions and lags of a tile of a matrix."""


def to_rows(features: Tensor, rows: Tensor) -> None:
    """Copy features (n, time, width) to rows (width, n, padded time), with zeros behind the last position."""
    count, time, width = features.shape
    grid = (count, triton.cdiv(rows.shape[2], TILE), triton.cdiv(width, TILE))
    to_rows_kernel[grid](features, rows, count, time, width, rows.shape[2], *features.stride(), TILE=TILE)


def from_rows(rows: Tensor, features: Tensor) -> None:
    """Copy rows (width, n, padded time) to features (n, time, width), which are contiguous."""
    count, time, width = features.shape
    grid = (count, triton.cdiv(time, TILE), triton.cdiv(width, TILE))
    from_rows_kernel[grid](rows, features, count, time, width, rows.shape[2], TILE=TILE)


def fill_matrices(at_lags: Tensor, matrices: Tensor) -> None:
    """Write matrices (width, from, to) whose entries are those of at_lags (width, 2 time) at the lag to - from."""
    width, padded, _ = matrices.shape
    blocks = triton.cdiv(padded, TILE)
    fill_kernel[(width, blocks, blocks)](at_lags, matrices, at_lags.shape[1] // 2, padded, TILE=TILE)


def add_diagonals(matrices: Tensor, at_lags: Tensor) -> None:
    """Write the sums over the diagonals of matrices (width, from, to) to at_lags (width, 2 time)."""
    width, lags = at_lags.shape
    diagonals_kernel[(width, triton.cdiv(lags, TILE))](matrices, at_lags, lags // 2, matrices.shape[2], TILE=TILE)


@triton.jit
def to_rows_kernel(
    features, rows, count, time, width, padded, row_stride, time_stride, width_stride, TILE: tl.constexpr
):
    """Transpose a tile of one row of the batch."""
    n = tl.program_id(0).to(tl.int64)
    t = tl.program_id(1) * TILE + tl.arange(0, TILE)
    w = (tl.program_id(2) * TILE + tl.arange(0, TILE)).to(tl.int64)
    there = (t < time)[:, None] & (w < width)[None, :]
    at = n * row_stride + t.to(tl.int64)[:, None] * time_stride + w[None, :] * width_stride
    tile = tl.trans(tl.load(features + at, mask=there, other=0.0).to(rows.dtype.element_ty))  # (feature, position)
    to = (w[:, None] * count + n) * padded + t[None, :]
    tl.store(rows + to, tile, mask=(w < width)[:, None] & (t < padded)[None, :])


@triton.jit
def from_rows_kernel(rows, features, count, time, width, padded, TILE: tl.constexpr):
    """Transpose a tile of one row of the batch back."""
    n = tl.program_id(0).to(tl.int64)
    t = tl.program_id(1) * TILE + tl.arange(0, TILE)
    w = (tl.program_id(2) * TILE + tl.arange(0, TILE)).to(tl.int64)
    at = (w[:, None] * count + n) * padded + t[None, :]
    # Read as far as the padding: with a mask that ends anywhere, every number would be loaded by itself.
    tile = tl.load(rows + at, mask=(w < width)[:, None] & (t < padded)[None, :], other=0.0)
    to = (n * time + t[:, None]) * width + w[None, :]
    there = (t < time)[:, None] & (w < width)[None, :]
    tl.store(features + to, tl.trans(tile).to(features.dtype.element_ty), mask=there)


@triton.jit
def fill_kernel(at_lags, matrices, time, padded, TILE: tl.constexpr):
    """Fill a tile of a feature's matrix; what is behind the last position is zero."""
    w = tl.program_id(0).to(tl.int64)
    start = tl.program_id(1) * TILE + tl.arange(0, TILE)[:, None]
    end = tl.program_id(2) * TILE + tl.arange(0, TILE)[None, :]
    lag = end - start
    place = tl.where(lag < 0, lag + 2 * time, lag)  # negative lags are behind the others
    value = tl.load(at_lags + w * 2 * time + place, mask=(start < time) & (end < time), other=0.0)
    to = matrices + (w * padded + start) * padded + end
    tl.store(to, value.to(matrices.dtype.element_ty), mask=(start < padded) & (end < padded))


@triton.jit
def diagonals_kernel(matrices, at_lags, time, padded, TILE: tl.constexpr):
    """Add up some diagonals of a feature's matrix, in a fixed order."""
    w = tl.program_id(0).to(tl.int64)
    place = tl.program_id(1) * TILE + tl.arange(0, TILE)
    lag = tl.where(place < time, place, place - 2 * time)  # that at `time` has no entries
    summed = tl.zeros((TILE, TILE), at_lags.dtype.element_ty)
    for first in range(0, time, TILE):
        start = first + tl.arange(0, TILE)[:, None]
        end = start + lag[None, :]
        there = (start < time) & (end >= 0) & (end < time)
        summed += tl.load(matrices + (w * padded + start) * padded + end, mask=there, other=0.0).to(summed.dtype)
    tl.store(at_lags + w * 2 * time + place, tl.sum(summed, axis=0), mask=place < 2 * time)
