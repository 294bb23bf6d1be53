"""Kernels of the perturbations that cut signals into pieces: one launch in place of twenty to forty.

A row of `chance` has a random number for each piece of a signal. Sorted by it, the pieces have their places.
"""
# Triton compiles kernels: arguments are device pointers and numbers, capitals are compile-time constants.
# ruff: noqa: ANN001, ANN201, N803, N806
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def pieces_before(chance, signal, PIECES: tl.constexpr, PADDED: tl.constexpr):
    """Return, as (piece, other piece), whether the other one comes before. Pieces from PIECES on are padding, last."""
    piece = tl.arange(0, PADDED)
    drawn = tl.load(chance + signal * PIECES + piece, mask=piece < PIECES, other=2.0)  # others are below 1
    tie = (drawn[None, :] == drawn[:, None]) & (piece[None, :] < piece[:, None])
    return (drawn[None, :] < drawn[:, None]) | tie


@triton.jit(do_not_specialize=["samples"])
def permute_kernel(signals, chance, permuted, samples, PIECES: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr):
    """Move the pieces of a signal to their places. A program has BLOCK samples of the result."""
    signal = tl.program_id(0).to(tl.int64)
    sample = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    piece = tl.arange(0, PADDED).to(tl.int64)
    real = piece < PIECES
    begin = tl.where(real, piece * samples // PIECES, samples)
    length = tl.where(real, (piece + 1) * samples // PIECES - begin, 0)
    before = pieces_before(chance, signal, PIECES, PADDED)
    start = tl.sum(tl.where(before, length[None, :], 0), axis=1)  # of each piece in the result
    at = sample[None, :].to(tl.int64)
    inside = (at >= start[:, None]) & (at < (start + length)[:, None])  # (piece, sample): in one piece each
    source = sample + tl.sum(tl.where(inside, (begin - start)[:, None], 0), axis=0)
    row = signal * samples
    value = tl.load(signals + row + source, mask=sample < samples)
    tl.store(permuted + row + sample, value, mask=sample < samples)


@triton.jit(do_not_specialize=["samples"])
def warp_kernel(
    signals, chance, warped, samples, stretch, PIECES: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr
):
    """Interpolate a signal between its samples, at their warped times. A program has BLOCK samples of the result.

    Of the pieces, the first half by number, rounded up, is stretched, wherever it comes to lie.
    """
    signal = tl.program_id(0).to(tl.int64)
    sample = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)).to(tl.float32)
    piece = tl.arange(0, PADDED)
    HALF: tl.constexpr = (PIECES + 1) // 2
    place = tl.sum(pieces_before(chance, signal, PIECES, PADDED).to(tl.int32), axis=1)  # of each piece
    # Places take the names of pieces from here on: p is the p-th in the result, with this many stretched before it.
    stretched = tl.sum(((place[None, :] < piece[:, None]) & (piece < HALF)[None, :]).to(tl.int32), axis=1)
    own = tl.sum(((place[None, :] == piece[:, None]) & (piece < HALF)[None, :]).to(tl.int32), axis=1)
    begin, begin_shift = knot(stretched, piece, samples, stretch, PIECES, HALF)
    end, end_shift = knot(stretched + own, piece + 1, samples, stretch, PIECES, HALF)
    after = (sample[None, :] >= begin[:, None]) | (piece == 0)[:, None]
    inside = after & ((sample[None, :] < end[:, None]) | (piece == PIECES - 1)[:, None]) & (piece < PIECES)[:, None]
    length = tl.maximum(end - begin, 1e-30)  # a signal of one sample has length 0
    rest = tl.div_rn(end[:, None] - sample[None, :], tl.broadcast_to(length[:, None], inside.shape))
    shift = end_shift[:, None] + rest * (begin_shift - end_shift)[:, None]
    last = samples - 1
    time = sample + tl.sum(tl.where(inside, shift, 0.0), axis=0)
    time = tl.minimum(tl.maximum(time, 0.0), last.to(tl.float32))
    first = tl.floor(time).to(tl.int32)
    row, real = signal * samples, sample < samples
    here = tl.load(signals + row + first, mask=real, other=0.0).to(tl.float32)
    there = tl.load(signals + row + tl.minimum(first + 1, last), mask=real, other=0.0).to(tl.float32)
    found = here + (time - first.to(tl.float32)) * (there - here)
    tl.store(warped + row + sample.to(tl.int32), found.to(warped.dtype.element_ty), mask=real)


@triton.jit
def knot(stretched, pieces, samples, stretch, PIECES: tl.constexpr, HALF: tl.constexpr):
    """Return where the first `pieces` places end in the result, and how much later they end in the signal.

    stretched: number of stretched ones among them. With a stretch of 1, nothing moves by a bit.
    """
    last = (samples - 1).to(tl.float32)
    squeezed = tl.div_rn(1.0 + 0.0 * stretch, stretch)
    length = stretched.to(tl.float32) * stretch + (pieces - stretched).to(tl.float32) * squeezed
    whole = HALF * stretch + (PIECES - HALF) * squeezed
    new = tl.div_rn(length, tl.broadcast_to(whole, length.shape))
    old = tl.div_rn(pieces.to(tl.float32), tl.full(pieces.shape, PIECES, tl.float32))
    return last * new, last * (old - new)
