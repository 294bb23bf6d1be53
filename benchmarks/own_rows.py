"""Time the loss of one of W processes on one GPU, and its memory: own rows beside all columns, without messages.

    python benchmarks/own_rows.py --json benchmarks/results/own_rows.json

W = 1 is the loss of one process. For W > 1, the embeddings and the sums of the other processes are there already, so
that the time is that of the kernels of one process. The times are medians with quartiles; the gradient of the own rows
is compared with that of one process first. Patient-NCE of two views, 128 numbers each, float16.
"""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import torch
from captured_step import capture
from command_line import command_line
from loss_steps import TAU, Row, Step, batch_of, memory, step_of
from step import machine_of
from step_clock import clock
from torch import Tensor

from clocs_core import Ranks
from clocs_plugins.contrastive_losses.choice import Implementation
from clocs_plugins.contrastive_losses.patient_nce import patient_nce

DIM, VIEWS = 128, 2
BOUND = 2e-3
"""How far the gradient may be from that of one process, relatively: the rounding of float16."""


class OneOfMany:
    """The middle one of `count` processes. It has all that others would send, and puts its own sums among theirs."""

    def __init__(self, count: int, embeddings: Tensor, sums: Tensor, patient: Tensor) -> None:
        each = embeddings.shape[1] // count
        self.rank, self.sizes, self.whole = count // 2, (each,) * count, each * count
        self.own = slice(self.rank * each, (self.rank + 1) * each)
        self.embeddings, self.sums, self.patient = embeddings, sums.clone(), patient

    def patients(self, own: Tensor) -> Tensor:
        """Return the patients of the whole batch."""
        return self.patient

    def gather(self, tensor: Tensor, dim: int = 0) -> Tensor:
        """Return the embeddings (view, batch, dim), or the sums (view, other view, batch), of all processes."""
        if dim == 1:
            return self.embeddings
        self.sums[:, :, self.own] = tensor
        return self.sums


def main() -> int:
    """Measure every batch with every number of processes, print and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--impl", default="fused", choices=("fused", "chunked"))
    parser.add_argument("--batches", nargs="+", type=int, default=(2048, 16384, 65536))
    parser.add_argument("--processes", nargs="+", type=int, default=(2, 8, 64))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    device = torch.device(given.device)
    found: Row = {"command": command_line(__file__), "date": datetime.now(UTC).date().isoformat()}
    found |= {"machine": machine_of(device), "rows": []}
    for batch in given.batches:
        found["rows"] += measure(batch, given.processes, device, given.impl)
        print(*found["rows"][-1 - len(given.processes) :], sep="\n", flush=True)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


def measure(batch: int, processes: list[int], device: torch.device, impl: Implementation) -> list[Row]:
    """Time a batch in one process, and in one of several. Raise RuntimeError if the gradients differ."""
    z, patient = batch_of((batch, DIM, VIEWS), device)
    whole = step_of(partial(patient_nce, patient=patient, temperature=TAU, impl=impl), z)
    _, expected = whole()
    rows: list[Row] = [{"batch": batch, "processes": 1, **times_of(whole, z)}]
    sent = sent_by(z.detach(), impl)
    for count in processes:
        ranks: Ranks = OneOfMany(count, *sent, patient)  # type: ignore[assignment]  # what is used
        own = z.detach()[:, ranks.own].clone().requires_grad_()
        step = step_of(partial(patient_nce, patient=patient[ranks.own], temperature=TAU, impl=impl, ranks=ranks), own)
        _, gradient = step()
        error = ((gradient - expected[:, ranks.own]).norm() / expected[:, ranks.own].norm()).item()
        if not error <= BOUND:
            raise RuntimeError(f"{count} processes, batch of {batch}: the gradient is off by {error:.1e}")
        rows.append({"batch": batch, "processes": count, "gradient_error": error, **times_of(step, own)})
    return rows


def times_of(step: Step, z: Tensor) -> Row:
    """Measure the memory and the time of a step; on a GPU of its replay, so that the host does not count."""
    return {**memory(step, z), **clock(capture(step) if z.is_cuda else step, z.is_cuda)}


def sent_by(z: Tensor, impl: Implementation) -> tuple[Tensor, Tensor]:
    """Return what the processes send: embeddings and sums of all rows; in chunks, directions and logs of sums."""
    direction = torch.nn.functional.normalize(z, dim=2)
    sums = z.new_zeros(VIEWS, VIEWS, z.shape[1])
    for v, w in ((0, 1), (1, 0)):
        for rows in torch.arange(z.shape[1], device=z.device).split(2048):
            sums[v, w, rows] = (direction[v, rows] @ direction[w].T / TAU).exp().sum(1)
    return (z, sums) if impl == "fused" else (direction, sums.log())


if __name__ == "__main__":
    raise SystemExit(main())
