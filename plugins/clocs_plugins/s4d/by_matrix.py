"""A convolution over time as products of matrices, on GPUs: more operations than an FFT, and fewer passes of memory.

    y[n, t, w] = sum over s of  x[n, s, w] K[w, t - s]

Each feature w has a matrix (from s, to t) with the kernel K at the lag t - s, and a product for all n. Time is padded
to a multiple of 8, since tensor cores need rows of 16 bytes: products of 250 positions take three times as long as
those of 256. There is no second derivative.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clocs_core import gpu_operator, launching_on

ALIGNED = 8
"""Numbers of bfloat16 in 16 bytes."""


def convolve_by_matrix(features: Tensor, at_lags: Tensor, dtype: torch.dtype) -> Tensor:
    """Convolve features (n, time, width) with kernels at_lags (width, 2 time), by products in `dtype`.

    at_lags: at the lags 0, 1, ..., time - 1, unused, 1 - time, ..., -1.
    """
    made: Tensor
    made, *_ = _convolve(features, at_lags, dtype)
    return made


def _empty(features: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Allocate the result, the features as rows (width, n, padded time), and the matrices."""
    count, time, width = features.shape
    padded = -(-time // ALIGNED) * ALIGNED
    return (
        features.new_empty(features.shape, dtype=dtype),
        features.new_empty((width, count, padded), dtype=dtype),
        features.new_empty((width, padded, padded), dtype=dtype),
    )


@gpu_operator(
    "clocs::convolve_by_matrix", "(Tensor features, Tensor at_lags, ScalarType dtype) -> (Tensor, Tensor, Tensor)"
)
def _convolve(features: Tensor, at_lags: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    from clocs_plugins.s4d.matrix_kernels import fill_matrices, from_rows, to_rows  # Triton may not be installed

    made, rows, matrices = _empty(features, dtype)
    with launching_on(features):
        to_rows(features, rows)
        fill_matrices(at_lags.contiguous(), matrices)
        from_rows(torch.bmm(rows, matrices), made)
    return made, rows, matrices


@_convolve.register_fake
def _(features: Tensor, at_lags: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    return _empty(features, dtype)


@gpu_operator(
    "clocs::convolve_by_matrix_backward",
    "(Tensor outer, Tensor rows, Tensor matrices, Tensor at_lags, ScalarType dtype) -> (Tensor, Tensor)",
)
def _convolve_backward(
    outer: Tensor, rows: Tensor, matrices: Tensor, at_lags: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    from clocs_plugins.s4d.matrix_kernels import add_diagonals, from_rows, to_rows  # Triton may not be installed

    of_features, of_lags = _gradients(outer, at_lags, dtype)
    of_rows = torch.empty_like(rows)
    with launching_on(outer):
        to_rows(outer, of_rows)
        add_diagonals(torch.bmm(rows.transpose(1, 2), of_rows), of_lags)
        from_rows(torch.bmm(of_rows, matrices.transpose(1, 2)), of_features)
    return of_features, of_lags


@_convolve_backward.register_fake
def _(outer: Tensor, rows: Tensor, matrices: Tensor, at_lags: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    return _gradients(outer, at_lags, dtype)


_convolve_backward.refuse_gradient()


def _gradients(outer: Tensor, at_lags: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Allocate the gradients of the features and of the kernels."""
    return outer.new_empty(outer.shape, dtype=dtype), at_lags.new_empty(at_lags.shape)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    features, at_lags, _ = inputs
    _, rows, matrices = output
    ctx.save_for_backward(rows, matrices, at_lags)
    ctx.dtype = features.dtype
    ctx.mark_non_differentiable(rows, matrices)
    ctx.set_materialize_grads(False)  # otherwise torch allocates zeros as gradients of both


def _backward(ctx: Any, outer: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
    if outer is None:
        return None, None, None
    return *_convolve_backward(outer, *ctx.saved_tensors, ctx.dtype), None


_convolve.register_autograd(_backward, setup_context=_remember)
