"""The cross-entropy of telling the position k ahead from all positions of a recording.

Computed by torch, or on GPUs by two kernels that read the scores where the product wrote them. Scores take most of the
memory of a step, and torch would write and read them in float32 several times.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from clocs_core import can_run_triton, launching_on

BEYOND = -1
"""The target of a position that has none: what it predicts lies behind the end of the recording."""
NUMBERS = 4096
"""Scores of a program, 32 for each thread, and the most that a row may have."""


def position_entropies(scores: Tensor) -> Tensor:
    """Return the losses (n, time, ahead) of scores (n, time, ahead, targets): 0 where nothing is ahead.

    Position t and k = 1, 2, ... ahead have the target t + k. Targets from `time` on are padding, and not counted.
    """
    short = scores.shape[3] <= NUMBERS and scores.dtype != torch.float64
    if scores.is_cuda and short and len(scores) and can_run_triton(scores.device):
        losses: Tensor = ByKernels.apply(scores)  # type: ignore[no-untyped-call]  # torch has no types for it
        return losses
    count, time, ahead, _ = scores.shape
    steps = torch.arange(1, ahead + 1, device=scores.device)
    right = torch.arange(time, device=scores.device)[:, None] + steps  # (time, ahead)
    right = right.where(right < time, BEYOND).expand(count, -1, -1)  # (n, time, ahead)
    exact = scores[..., :time].flatten(0, 2).to(torch.promote_types(scores.dtype, torch.float32))
    found = nn.functional.cross_entropy(exact, right.flatten(), ignore_index=BEYOND, reduction="none")
    return found.view(count, time, ahead)


class ByKernels(torch.autograd.Function):
    """The losses by Triton, in float32."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        """Compute the losses."""
        from clocs_plugins.cpc.entropy_kernels import entropies_kernel  # Triton may not be installed

        losses, sums = (scores.new_empty(scores.shape[:3], dtype=torch.float32) for _ in range(2))
        _launch(entropies_kernel, scores.contiguous(), losses, sums)
        ctx.save_for_backward(scores, sums)
        return losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> Tensor:
        """Compute the gradient of the scores."""
        from clocs_plugins.cpc.entropy_kernels import gradients_kernel  # Triton may not be installed

        scores, sums = ctx.saved_tensors
        gradient: Tensor = scores.new_empty(scores.shape)
        _launch(gradients_kernel, scores.contiguous(), outer.contiguous(), sums, gradient)
        return gradient


def _launch(kernel: Any, scores: Tensor, *others: Tensor) -> None:
    count, time, ahead, targets = scores.shape
    columns = 1 << (targets - 1).bit_length()
    rows = max(1, NUMBERS // columns)
    grid = (-(-count * time * ahead // rows),)
    with launching_on(scores):
        kernel[grid](scores, *others, count * time * ahead, time, ahead, targets, ROWS=rows, COLUMNS=columns)
