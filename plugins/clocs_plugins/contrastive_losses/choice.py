"""Choose the implementation of a loss: the plain one, chunks in PyTorch, or Triton kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import torch

from clocs_core import Unavailable, can_run_triton, missing_for_triton
from clocs_plugins.contrastive_losses.shapes import MOST_DIMS

if TYPE_CHECKING:
    from torch import Tensor

Implementation: TypeAlias = Literal["auto", "reference", "chunked", "fused"]
Precision: TypeAlias = Literal["fp16", "near-fp32"]
Check = TypeVar("Check", bound=Callable[..., Any])

SMALL = 2**20
"""Similarities up to which the plain version is faster than chunks on a CPU: two views of 1024, or 512 in NT-Xent."""
LEAST_TEMPERATURE = 0.015
"""Below it, exponentials without a running maximum can leave float32: exp(60 - 2/tau) in the worst row."""


def choose(impl: Implementation, views: Tensor, temperature: float | Tensor, similarities: int) -> Implementation:
    """Choose the implementation for embeddings (view, batch, dim). similarities: number that `reference` would keep.

    Raise ValueError for an unknown name, or if `fused` cannot compute the loss; Unavailable, a ValueError too, if its
    kernels cannot run.
    """
    if impl not in ("auto", "reference", "chunked", "fused"):
        raise ValueError(f"impl is {impl!r}, expected 'auto', 'reference', 'chunked' or 'fused'")
    if impl == "fused":
        missing, refusal = _missing(views.device.type, views.device.index), _refusal(views, temperature)
        if missing or refusal:
            kind = Unavailable if missing else ValueError
            advice = "Use impl='chunked', or 'auto', which falls back by itself"
            raise kind(f"impl='fused' {missing or refusal}. {advice}.")
    if impl != "auto":
        return impl
    if views.is_cuda and not _refusal(views, temperature) and _can_run(views.device.type, views.device.index):
        return "fused"
    return "reference" if similarities <= SMALL else "chunked"


def _constant_when_compiled(check: Check) -> Check:
    """Mark a function as torch.compiler.assume_constant_result does, which takes 2 s to import torch's compiler."""
    check._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return check


def _refusal(views: Tensor, temperature: float | Tensor) -> str:
    """Return what the kernels cannot compute, as the end of a sentence; empty if nothing."""
    if views.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        return f"takes embeddings of float16, bfloat16 or float32, not {views.dtype}"
    if views.shape[2] > MOST_DIMS:
        return f"takes embeddings of up to {MOST_DIMS} dimensions, not {views.shape[2]}"
    if not isinstance(temperature, torch.Tensor) and temperature < LEAST_TEMPERATURE:
        return f"takes temperatures from {LEAST_TEMPERATURE} on, not {temperature}"
    return ""


# Constants for torch.compile, which cannot trace checks of the machine; it accepts numbers and strings, not devices.
@_constant_when_compiled
def _missing(kind: str, index: int | None) -> str:
    return missing_for_triton(_device(kind, index))


@_constant_when_compiled
def _can_run(kind: str, index: int | None) -> bool:
    return can_run_triton(_device(kind, index))


def _device(kind: str, index: int | None) -> torch.device:
    return torch.device(kind) if index is None else torch.device(kind, index)
