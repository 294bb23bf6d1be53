"""The kernel of `normalise`: one program per signal, which reads it once and writes it once."""

# Triton compiles kernels: arguments are device pointers and numbers, capitals are compile-time constants.
# ruff: noqa: ANN001, ANN201, N803
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def min_max_kernel(source, output, middle, last, stride_0, stride_1, stride_2, stride_l, length, tiny,
                   LENGTH: tl.constexpr):  # fmt: skip
    """Compute (x - minimum) / (range + tiny) of one signal. A NaN makes the whole signal NaN, as in torch."""
    row = tl.program_id(0).to(tl.int64)
    start = (row // (middle * last)) * stride_0 + (row // last % middle) * stride_1 + (row % last) * stride_2
    sample = tl.arange(0, LENGTH)
    inside = sample < length
    value = tl.load(source + start + sample * stride_l, mask=inside, other=0.0)
    low = tl.min(tl.where(inside, value, float("inf")), 0)
    high = tl.max(tl.where(inside, value, float("-inf")), 0)
    broken = tl.max((value != value).to(tl.int32), 0)
    low = tl.where(broken > 0, float("nan"), low)
    scaled = tl.div_rn(value - low, tl.zeros_like(value) + (high - low + tiny))
    tl.store(output + row * length + sample, scaled, mask=inside)


def run_min_max(signal: Tensor, tiny: float) -> Tensor:
    """Launch the kernel for signals (..., sample) of two to four dimensions, with any strides."""
    output = torch.empty(signal.shape, dtype=signal.dtype, device=signal.device)
    spread = signal[(None,) * (4 - signal.ndim)]  # four dimensions, without a copy
    length = signal.shape[-1]
    padded = triton.next_power_of_2(length)
    with torch.cuda.device_of(signal):
        min_max_kernel[(signal.numel() // length,)](
            spread, output, spread.shape[1], spread.shape[2], *spread.stride(), length, tiny,
            LENGTH=padded, num_warps=min(8, max(1, padded // 512)),
        )  # fmt: skip
    return output
