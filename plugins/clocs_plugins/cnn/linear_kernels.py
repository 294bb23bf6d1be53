"""The kernels of `linear_fused`. A program computes one tile of a result."""

# Triton compiles kernels: arguments are device pointers and numbers, capitals are compile-time constants.
# ruff: noqa: ANN001, ANN201, ANN202, N803
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from clocs_plugins.cnn import fused_geometry as geometry
from clocs_plugins.cnn.fused_tiles import launch, multiply

TILE, CHUNK = 32, 64
"""Rows and columns of a tile, and entries summed at a time, forward: 512 x 128 are 64 programs."""
BACKWARD_TILE, BACKWARD_CHUNK = 64, 32
"""The same backward, where there are more tiles. Longer chunks need more shared memory than most GPUs have."""
PRECISION = "tf32x3"
"""Precision of the products forward, see fused_geometry."""
SHARE = 128
"""Signals that one program sums over for the weight's gradient; larger batches leave shares, which are added up."""
STAGES = 3
"""Chunks in flight at a time."""


@triton.jit
def linear_kernel(features, weight, bias, output, rows, columns, inner, RELU: tl.constexpr, PRECISION: tl.constexpr,
                  TILE: tl.constexpr, CHUNK: tl.constexpr):  # fmt: skip
    """Compute a tile of relu(features weight' + bias)."""
    across = tl.cdiv(columns, TILE)
    row = (tl.program_id(0) // across) * TILE + tl.arange(0, TILE)
    column = (tl.program_id(0) % across) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for begin in range(0, inner, CHUNK):
        entry = begin + tl.arange(0, CHUNK)
        left = _load(features, row, entry, rows, inner)
        right = _load(weight, column, entry, columns, inner)
        total = multiply(left, tl.trans(right), total, PRECISION)
    total += tl.load(bias + column, mask=column < columns, other=0.0)[None, :]
    if RELU:
        total = tl.where(total <= 0, 0.0, total)  # NaN stays NaN
    real = (row < rows)[:, None] & (column < columns)[None, :]
    tl.store(output + row[:, None] * columns + column[None, :], total, mask=real)


@triton.jit
def linear_backward_kernel(
    gradient, output, features, weight, features_out, shared_out, rows, columns, inner, input_tiles,
    RELU: tl.constexpr, PRECISION: tl.constexpr, TILE: tl.constexpr, CHUNK: tl.constexpr, SHARE: tl.constexpr,
):  # fmt: skip
    """Compute a tile of the features' gradient; programs from `input_tiles` on, a tile of a share of the weight's."""
    program = tl.program_id(0)
    across = tl.cdiv(inner, TILE)
    entry = (program % across) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    if program < input_tiles:
        row = (program // across) * TILE + tl.arange(0, TILE)
        for begin in range(0, columns, CHUNK):
            column = begin + tl.arange(0, CHUNK)
            left = _load_gradient(gradient, output, row, column, rows, columns, RELU)
            total = multiply(left, _load(weight, column, entry, columns, inner), total, PRECISION)
        real = (row < rows)[:, None] & (entry < inner)[None, :]
        tl.store(features_out + row[:, None] * inner + entry[None, :], total, mask=real)
    else:
        number = (program - input_tiles) // across
        down = tl.cdiv(columns, TILE)
        share, column = number // down, (number % down) * TILE + tl.arange(0, TILE)
        entry = ((program - input_tiles) % across) * TILE + tl.arange(0, TILE)
        beta = tl.zeros((TILE,), tl.float32)
        for begin in range(share * SHARE, tl.minimum(rows, (share + 1) * SHARE), CHUNK):
            row = begin + tl.arange(0, CHUNK)
            left = _load_gradient(gradient, output, row, column, rows, columns, RELU)
            total = multiply(tl.trans(left), _load(features, row, entry, rows, inner), total, PRECISION)
            beta += tl.sum(left, 0)
        real = (column < columns)[:, None] & (entry < inner)[None, :]
        mine = shared_out + share * (columns * inner + columns)
        tl.store(mine + column[:, None] * inner + entry[None, :], total, mask=real)
        if (program - input_tiles) % across == 0:
            tl.store(mine + columns * inner + column, beta, mask=column < columns)


@triton.jit
def _load(matrix, row, column, rows, columns):
    """Load entries (row, column) of a contiguous matrix, zero beyond its ends."""
    real = (row < rows)[:, None] & (column < columns)[None, :]
    return tl.load(matrix + row[:, None] * columns + column[None, :], mask=real, other=0.0)


@triton.jit
def _load_gradient(gradient, output, row, column, rows, columns, RELU: tl.constexpr):
    """Load the gradient through the ReLU."""
    value = _load(gradient, row, column, rows, columns)
    if RELU:
        value = tl.where(_load(output, row, column, rows, columns) > 0, value, 0.0)
    return value


def run_linear(features: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
    """Compute representations (n, dim) of features (n, feature)."""
    (rows, inner), columns = features.shape, len(weight)
    output = features.new_empty(rows, columns)
    launch(
        linear_kernel, triton.cdiv(rows, TILE) * triton.cdiv(columns, TILE),
        features, weight, bias, output, rows, columns, inner,
        RELU=relu, PRECISION=PRECISION, TILE=TILE, CHUNK=CHUNK, num_warps=4, stages=STAGES,
    )  # fmt: skip
    return output


def run_linear_backward(
    gradient: Tensor, output: Tensor, features: Tensor, weight: Tensor, relu: bool
) -> tuple[Tensor, Tensor]:
    """Compute the gradient of the features, and those of weight and bias, one after the other in one vector."""
    (rows, inner), columns = features.shape, len(weight)
    shares, size = triton.cdiv(rows, SHARE), columns * inner
    features_out = features.new_empty(rows, inner)
    shared = weight.new_empty(shares, size + columns)  # each share: the weight's gradient, then the bias's
    across = triton.cdiv(inner, BACKWARD_TILE)
    input_tiles = triton.cdiv(rows, BACKWARD_TILE) * across
    launch(
        linear_backward_kernel, input_tiles + shares * triton.cdiv(columns, BACKWARD_TILE) * across,
        gradient, output, features, weight, features_out, shared, rows, columns, inner, input_tiles,
        RELU=relu, PRECISION=geometry.PRECISION, TILE=BACKWARD_TILE, CHUNK=BACKWARD_CHUNK, SHARE=SHARE, num_warps=4,
        stages=STAGES,
    )  # fmt: skip
    return features_out, shared[0] if shares == 1 else shared.sum(0)
