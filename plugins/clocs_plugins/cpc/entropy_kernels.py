"""Kernels of the cross-entropy of positions ahead: one pass over the scores forward, and one backward."""

# Triton compiles kernels: arguments are device pointers and numbers, capitals are compile-time constants.
# ruff: noqa: ANN001, ANN201, N803
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def load_scores(scores, count, time, ahead, targets, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Load some rows. Return also their numbers, where they lie, and their right target, `time` or more if none."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    at = row.to(tl.int64)[:, None] * targets + column[None, :]
    # Read as far as the padding: with a mask that ends anywhere, every number would be loaded by itself.
    s = tl.load(scores + at, mask=(row < count)[:, None] & (column < targets)[None, :], other=0.0).to(tl.float32)
    s = tl.where((column < time)[None, :], s, -float("inf"))
    return s, row, at, row // ahead % time + row % ahead + 1


@triton.jit
def entropies_kernel(scores, losses, sums, count, time, ahead, targets, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Compute the losses of some rows, and the logs of their sums of exponentials."""
    s, row, _, right = load_scores(scores, count, time, ahead, targets, ROWS, COLUMNS)
    most = tl.max(s, axis=1)
    summed = most + tl.log(tl.sum(tl.exp(s - most[:, None]), axis=1))
    found = tl.sum(tl.where(tl.arange(0, COLUMNS)[None, :] == right[:, None], s, 0.0), axis=1)
    tl.store(losses + row, tl.where(right < time, summed - found, 0.0), mask=row < count)
    tl.store(sums + row, summed, mask=row < count)


@triton.jit
def gradients_kernel(
    scores, outer, sums, gradient, count, time, ahead, targets, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Compute the gradient of some rows; that of targets behind the last position is zero."""
    s, row, at, right = load_scores(scores, count, time, ahead, targets, ROWS, COLUMNS)
    column = tl.arange(0, COLUMNS)[None, :]
    share = tl.exp(s - tl.load(sums + row, mask=row < count, other=0.0)[:, None])
    share -= tl.where(column == right[:, None], 1.0, 0.0)
    slope = tl.load(outer + row, mask=(row < count) & (right < time), other=0.0)
    found = (share * slope[:, None]).to(gradient.dtype.element_ty)
    tl.store(gradient + at, found, mask=(row < count)[:, None] & (column < targets))
