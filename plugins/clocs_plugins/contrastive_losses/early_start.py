"""Start kernels while the one before still runs: saves a microsecond for each kernel that lasts only a few.

CUDA calls it programmatic dependent launch. A kernel that uses it begins with `take_turn(EARLY)`, and is launched
with `EARLY=early, launch_pdl=early`. After `take_turn`, all writes of the kernel before are complete, and so are those
that it waited for; so any other kernel may run before or after. Long kernels gain nothing. The encoder's blocks lost
4 % of a step of eight views: their programs fill the GPU, and waiting programs are in the way.
"""

# Triton compiles these functions; it does not read Python's types.
# ruff: noqa: ANN201, N803
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, import-not-found"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


def starts_early(device: torch.device) -> bool:
    """Return whether a kernel may start before the last one has ended: on NVIDIA's Hopper and newer."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device)[0] >= 9


@triton.jit
def take_turn(EARLY: tl.constexpr):
    """Let the next kernel start, and wait until the last one has ended."""
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
