"""Make and measure a step of a loss alone, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from captured_step import capture, kernel_times
from step_clock import clock
from torch import Tensor

from clocs_plugins.contrastive_losses.chunked import chunked_loss
from clocs_plugins.contrastive_losses.patient_nce import patient_nce
from clocs_plugins.contrastive_losses.weights import group_patients, patient_strengths

TAU = 0.1
GRAPHS_UP_TO = 4096
"""The largest batch whose step is captured: beyond it Python is faster than the GPU."""

Size = tuple[int, int, int]  # batch, dim, views
Row = dict[str, Any]  # what becomes JSON
Step = Callable[[], tuple[Tensor, Tensor]]


def batch_of(size: Size, device: torch.device) -> tuple[Tensor, Tensor]:
    """Make embeddings that want a gradient, and patients: 1 of 64 comes twice, at the other end of the batch."""
    batch, dim, views = size
    generator = torch.Generator(device).manual_seed(0)
    z = torch.randn(views, batch, dim, generator=generator, device=device)
    return z.requires_grad_(), torch.arange(batch, device=device) % (batch - batch // 64)


def step_of(loss: Callable[[Tensor], Tensor], z: Tensor) -> Step:
    """Make a step that computes the loss and the gradient of embeddings."""

    def step() -> tuple[Tensor, Tensor]:
        found = loss(z)
        (gradient,) = torch.autograd.grad(found, z)
        return found.detach(), gradient

    return step


def in_float64(z: Tensor, patient: Tensor) -> tuple[Tensor, Tensor]:
    """Compute loss and gradient in float64: the plain version, or in chunks of 2 GB where it does not fit."""
    views, batch, _ = z.shape
    pairs, wide = views * (views - 1) // 2, z.detach().double().requires_grad_()
    if pairs * batch * batch <= 2**27:
        return step_of(lambda z: patient_nce(z, patient, TAU, "paper", "reference"), wide)()
    groups = group_patients(patient)
    strengths = patient_strengths(groups, False, pairs, wide.dtype)
    return step_of(lambda z: chunked_loss(z, TAU, strengths, groups, 2**28), wide)()


def timed(step: Callable[[], object], size: Size, z: Tensor) -> Row:
    """Measure the memory and the time of a step; up to a batch of 4096 those of its replay, with every kernel."""
    if not z.is_cuda or size[0] > GRAPHS_UP_TO:
        return {**memory(step, z), **clock(step, z.is_cuda)}
    replay = capture(step)
    return {**memory(step, z), **clock(replay, True), "kernels_us": kernel_times(replay)}


def memory(step: Callable[[], object], z: Tensor) -> Row:
    """Measure the peak memory of a step, without the embeddings and their gradient."""
    if not z.is_cuda:
        return {}
    step()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    return {"memory_mb": round((torch.cuda.max_memory_allocated() - before - z.nbytes) / 1e6, 2)}
