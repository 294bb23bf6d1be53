"""Compile the kernels of the losses in many processes at once, so that no GPU time is spent waiting."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import cast

import torch
from loss_steps import TAU, Size, batch_of, step_of
from loss_tiles import passes, tried

from clocs_plugins.contrastive_losses.choice import Precision
from clocs_plugins.contrastive_losses.nt_xent import nt_xent
from clocs_plugins.contrastive_losses.patient_nce import patient_nce
from clocs_plugins.contrastive_losses.shapes import Shapes

Job = tuple[Size, str, list[int]]


def jobs_of(sizes: Sequence[Size], batches: Sequence[int], sweeping: bool) -> list[Job]:
    """List what to launch once, so that its kernels are in Triton's cache: size, loss or precision, and tiles."""
    if sweeping:
        device = torch.device("cuda")
        return [(size, "tiles", shapes.as_numbers()) for size in sizes for shapes in tried(size, device)]
    own: list[Job] = [(size, precision, []) for size in sizes for precision in ("fp16", "near-fp32")]
    return [*own, *(((batch, 128, 2), what, []) for batch in batches for what in ("nt-xent", "fp16"))]


def compile_ahead(jobs: list[Job], workers: int) -> None:
    """Launch every job once, in several processes, and print what failed."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for job, problem in zip(jobs, pool.map(launch_once, jobs), strict=True):
            if problem:
                print(f"{job}: {problem}")


def launch_once(job: Job) -> str:
    """Compile by launching: the cache is on disk, and the next process finds the kernels there."""
    size, what, numbers = job
    z, patient = batch_of(size, torch.device("cuda"))
    try:
        if what == "tiles":
            for step in passes(z, patient, Shapes.from_numbers(numbers)):
                step()
        elif what == "nt-xent":
            step_of(lambda z: nt_xent(z, TAU, "fused"), z)()
        else:
            step_of(lambda z: patient_nce(z, patient, TAU, "paper", "fused", cast(Precision, what)), z)()
        torch.cuda.synchronize()
    except Exception as problem:  # told, and met again where it counts
        return f"{type(problem).__name__}: {problem}"
    return ""
