"""Time NT-Xent and patient-NCE beside the losses of other libraries that are installed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from importlib.metadata import version

import torch
from loss_steps import TAU, Row, Step, batch_of, memory, step_of, timed
from step_clock import clock, unless_late
from torch import Tensor

from clocs_plugins.contrastive_losses.choice import Implementation
from clocs_plugins.contrastive_losses.nt_xent import nt_xent
from clocs_plugins.contrastive_losses.patient_nce import patient_nce

PEERS = ("lightly", "pytorch-metric-learning")


def versions_of_peers() -> dict[str, str]:
    """Look up the versions of the other libraries that are installed."""
    return {name: version(name) for name in PEERS if importlib.util.find_spec(name.replace("-", "_"))}


def beside_others(batch: int, device: torch.device, impl: Implementation, ends: float) -> Row:
    """Time our NT-Xent and patient-NCE and losses of other libraries on the same two views.

    Every loss that a graph can hold is replayed; ours are timed without a graph as well.
    """
    size = (batch, 128, 2)
    z, patient = batch_of(size, device)
    ours = {
        f"nt-xent {impl}": step_of(lambda z: nt_xent(z, TAU, impl), z),
        f"patient-nce {impl}": step_of(lambda z: patient_nce(z, patient, TAU, "paper", impl), z),
    }
    times: Row = {name: timed(step, size, z) for name, step in ours.items()}
    times |= {f"{name}, not captured": clock(step, z.is_cuda) for name, step in ours.items()}
    expected = nt_xent(z.detach().double(), TAU, "chunked").item()
    errors = {f"nt-xent {impl}": abs(ours[f"nt-xent {impl}"]()[0].item() / expected - 1)}
    for name, loss, same in others(patient):
        step = step_of(loss, z)

        def measure(step: Step = step, name: str = name, same: bool = same) -> Row:
            if same:
                errors[name] = abs(step()[0].item() / expected - 1)
            waits = z.is_cuda and waits_for_host(step)
            times = {**memory(step, z), **clock(step, z.is_cuda)} if waits else timed(step, size, z)
            return {**times, "waits_for_host": waits}

        times[name] = unless_late(ends, measure)
    return {"batch": batch, "dim": 128, "views": 2, "nt_xent_errors": errors, "times": times}


def waits_for_host(step: Step) -> bool:
    """Whether a step on a GPU asks it for a value in between: then no graph can hold it."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    except RuntimeError as problem:
        if "synchroniz" not in str(problem):
            raise
        return True
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return False


def others(patient: Tensor) -> list[tuple[str, Callable[[Tensor], Tensor], bool]]:
    """List losses of other libraries as functions of both views, and whether they are NT-Xent."""
    found: list[tuple[str, Callable[[Tensor], Tensor], bool]] = []
    pair = torch.arange(len(patient), device=patient.device).repeat(2)
    if importlib.util.find_spec("lightly"):
        lightly = importlib.import_module("lightly.loss").NTXentLoss(temperature=TAU)
        found.append(("lightly NTXentLoss", lambda z: lightly(z[0], z[1]), True))
    if importlib.util.find_spec("pytorch_metric_learning"):
        theirs = importlib.import_module("pytorch_metric_learning.losses")
        supcon, ntxent = theirs.SupConLoss(temperature=TAU), theirs.NTXentLoss(temperature=TAU)
        found.append(("pytorch-metric-learning NTXentLoss", lambda z: ntxent(z.flatten(0, 1), pair), True))
        labels = patient.repeat(2)
        found.append(("pytorch-metric-learning SupConLoss", lambda z: supcon(z.flatten(0, 1), labels), False))
    return found
