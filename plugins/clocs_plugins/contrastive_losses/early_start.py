"""Kernels that start while the one before them still runs: a microsecond less for each that lasts only a few.

CUDA calls it programmatic dependent launch. A kernel that takes part begins with `take_turn(EARLY)`, and is launched
with `EARLY=early, launch_pdl=early`. Behind `take_turn`, what the kernel before has written is complete, and so is what
that one waited for: any other kernel may stand before or behind. Of long kernels it wins nothing. The blocks of the
encoder lost by it, 4 % of a step of eight views: their programs fill the GPU, and those that wait are in the way.
"""

# Triton's compiler reads these functions and not Python's types.
# ruff: noqa: ANN201, N803
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


def starts_early(device: torch.device) -> bool:
    """Whether a kernel may start before the last one has ended: on NVIDIA's Hopper and younger."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device)[0] >= 9


@triton.jit
def take_turn(EARLY: tl.constexpr):
    """Let the next kernel start, and wait until the last one has ended."""
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
