"""Scale each signal to 0..1 by its minimum and maximum: on a GPU in one kernel, elsewhere by torch."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from clocs_core.train.gpu_kernels import can_run_triton

_TINY = 1e-8
"""Added to the range, so that a flat signal becomes zeros and not NaN. In the signal's unit, mostly mV."""

_FLAT = 0.02  # fraction of a signal's largest value: with a smaller range it is a detached lead with noise

LONGEST = 16_384  # samples that the kernel holds in registers


def min_max(signal: Tensor, like: Tensor | None = None) -> Tensor:
    """Scale signals (..., sample) to 0..1: "normalized in amplitude between the values of 0 and 1", A.1.

    like: signals whose minima and maxima are used instead, so that the result can leave the range. Where one of them
    is nearly flat and so gives no scale, the signals are scaled by their own minimum and maximum.
    """
    if like is None and _fits_kernel(signal):
        return cast(Tensor, min_max_rows(signal))
    low, high = signal.aminmax(dim=-1, keepdim=True)
    if like is not None:
        clean_low, clean_high = like.aminmax(dim=-1, keepdim=True)
        flat = clean_high - clean_low <= _FLAT * torch.maximum(clean_low.abs(), clean_high.abs())
        low, high = torch.where(flat, low, clean_low), torch.where(flat, high, clean_high)
    return (signal - low) / (high - low + _TINY)


def _fits_kernel(signal: Tensor) -> bool:
    return (
        signal.is_cuda
        and signal.dtype == torch.float32
        and 2 <= signal.ndim <= 4
        and 0 < signal.shape[-1] <= LONGEST
        and signal.numel() > 0
        and not signal.requires_grad
        and can_run_triton(signal.device)
    )


@torch.library.custom_op("clocs::min_max", mutates_args=())
def min_max_rows(signal: Tensor) -> Tensor:
    """Scale signals (..., sample) of two to four dimensions and any strides; the result is contiguous.

    One pass over the signals replaces six: saves 25 µs of a training step of 200, launches included.
    """
    from clocs_core.train.min_max_kernel import run_min_max

    return run_min_max(signal, _TINY)


@min_max_rows.register_fake
def _(signal: Tensor) -> Tensor:
    return signal.new_empty(signal.shape)
