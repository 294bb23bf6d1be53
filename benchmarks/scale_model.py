"""Model the time of a training step over W processes, with constants measured here, and hold it to runs of 2 and 4.

    python benchmarks/scale_model.py --json benchmarks/results/scale_model.json

A step of K instances with V views, embeddings of E numbers and P weights, shared by W processes, takes

    fixed + views K + own (K / W) + pairs K² / W      on each process: views of all instances, the rest of its own
    gather(V E K / W + V² K / W + 2 K / W)            embeddings, log-sum-exps and patients
    reduce(P)                                         gradients

with gather(n) = latency + 4 n (W - 1) / speed and reduce(n) = latency + 8 n (W - 1) / W / speed for n float32 numbers.
More processes than cores share them: the first line counts W / cores times.

The constants of the first line come from steps of one process with K, K/2 and K/4 instances, and from making views
alone. Those of the wire come from messages of two sizes between W processes, by gloo. Then W = 2 and 4 processes are
timed, and the model is compared with them. None of their times is used to fit it.

`predictions` puts other constants into the same model: one H200 per process. The time of an own instance is that of
one H200, from `benchmarks/step.py` and `benchmarks/ranks_step.py`. Latency and speed of the wire, and the speed of the
loss, are assumptions, and stand beside the numbers. That the sum of gradients is hidden behind the backward pass is not
counted, so that the predictions are rather too slow.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import torch
from command_line import command_line
from step import no_tick, plan_of, signals_of, training_on

from clocs_core.grids.machine import describe_machine
from clocs_core.train.build import build_learner
from clocs_core.train.epochs import Training, plain_epoch
from clocs_core.train.ranks import Group, TorchWire

BATCH, STEPS, VIEWS, DIM = 128, 4, 2, 128
MESSAGES = (2**10, 2**20)  # numbers
CPU = torch.device("cpu")


@attrs.frozen
class Compute:
    """Seconds of a step on one process: fixed, per instance of the whole batch, per own instance, per pair."""

    fixed: float
    views: float
    own: float
    pairs: float

    def seconds(self, batch: int, processes: int) -> float:
        """Return the time of one of so many processes, each on its own core or GPU."""
        mine = batch / processes
        return self.fixed + self.views * batch + self.own * mine + self.pairs * mine * batch


@attrs.frozen
class Wire:
    """Seconds before a message arrives, and bytes per second."""

    latency: float
    speed: float

    def gather(self, numbers: float, processes: int) -> float:
        """Return the time to collect so many numbers of each process."""
        return self.latency + 4 * numbers * (processes - 1) / self.speed

    def reduce(self, numbers: float, processes: int) -> float:
        """Return the time to add up so many numbers over all processes."""
        return self.latency + 8 * numbers * (processes - 1) / processes / self.speed


def step_seconds(compute: Compute, wire: Wire, batch: int, processes: int, weights: int, cores: float) -> float:
    """Return the time of a step. cores: on which the processes run, as many as there are at most."""
    mine, crowd = batch / processes, max(1.0, processes / cores)
    alone = compute.seconds(batch, processes) * crowd
    if processes == 1:
        return alone
    directions, sums, patients = VIEWS * DIM * mine, VIEWS**2 * mine, 2 * mine
    contrast = sum(wire.gather(numbers, processes) for numbers in (directions, sums, patients))
    return alone + contrast + wire.reduce(weights, processes)


def main() -> int:
    """Measure, compare and predict; print and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="resnet1d")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    compute, weights, alone = measure_compute(given.encoder, given.rounds)
    cores = len(os.sched_getaffinity(0))
    found: dict[str, Any] = {
        "command": command_line(__file__),
        "date": date.today().isoformat(),
        "machine": describe_machine(),
        "torch": torch.__version__,
        "batch": BATCH,
        "weights": weights,
        "compute": attrs.asdict(compute),
        "one process, s": {str(size): round(seconds, 4) for size, seconds in alone.items()},
        "processes": {},
    }
    for count in (2, 4):
        measured, wire = measure_processes(count, given.encoder, given.rounds)
        modelled = step_seconds(compute, wire, BATCH, count, weights, cores)
        found["processes"][str(count)] = {
            "latency, s": wire.latency,
            "speed, bytes/s": wire.speed,
            "measured, s": round(measured, 4),
            "modelled, s": round(modelled, 4),
            "error": round(modelled / measured - 1, 3),
        }
    found["predictions"] = predict()
    print(json.dumps(found, indent=1))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


def measure_compute(encoder: str, rounds: int) -> tuple[Compute, int, dict[int, float]]:
    """Time steps of one process by size, and views alone; solve for the constants of a step."""
    sizes = (BATCH, BATCH // 2, BATCH // 4)
    alone = {size: time_steps(encoder, size, None, rounds) for size in sizes}
    curve = np.polynomial.polynomial.polyfit(list(alone), list(alone.values()), 2)
    training = prepare(encoder, BATCH)[1]
    generator = torch.Generator().manual_seed(0)
    rows = torch.arange(BATCH)
    views = median_time(lambda: training.make_views(training.store.gather(training.train, rows), generator), rounds * 4)
    learner, _ = prepare(encoder, BATCH)
    weights = sum(weight.numel() for weight in learner.encoders.parameters())
    each = views / BATCH
    return Compute(max(0.0, curve[0]), each, curve[1] - each, max(0.0, curve[2])), weights, alone


def prepare(encoder: str, batch: int, group: Group | None = None) -> tuple[Any, Training]:
    """Build a learner, and noise to train it on."""
    plan = plan_of("cmsc", ("II",), [f"encoder={encoder}", "impl=chunked"], CPU)
    training = attrs.evolve(training_on(plan, batch * STEPS, CPU, batch), group=group)
    return build_learner(plan, signals_of(plan), CPU), training


def time_steps(encoder: str, batch: int, group: Group | None, rounds: int) -> float:
    """Return the median seconds of a step."""
    learner, training = prepare(encoder, batch, group)
    epochs = iter(range(1, rounds + 3))
    return median_time(lambda: plain_epoch(learner, training, next(epochs), no_tick), rounds) / STEPS


def median_time(work: Callable[[], object], rounds: int) -> float:
    """Return the median seconds of some work, after one call that does not count."""
    work()
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def measure_processes(count: int, encoder: str, rounds: int) -> tuple[float, Wire]:
    """Time a step and messages in so many processes; return the slowest one's step, and the wire."""
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_one_process, (count, encoder, rounds, folder), count)  # type: ignore[attr-defined, no-untyped-call]
        found = [json.loads(Path(folder, f"{rank}.json").read_text()) for rank in range(count)]
    slowest = {name: max(one[name] for one in found) for name in found[0]}
    return slowest["step"], solve_wire([slowest[f"gather {size}"] for size in MESSAGES], count)


def solve_wire(seconds: Sequence[float], processes: int) -> Wire:
    """Return latency and speed, from the times to gather messages of two sizes."""
    sent = [4 * size * (processes - 1) for size in MESSAGES]
    speed = (sent[1] - sent[0]) / max(1e-9, seconds[1] - seconds[0])
    return Wire(max(0.0, seconds[0] - sent[0] / speed), speed)


def _one_process(rank: int, count: int, encoder: str, rounds: int, folder: str) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count)
    wire = TorchWire(rank, count)
    found = {}
    for size in MESSAGES:
        message = torch.zeros(size)
        found[f"gather {size}"] = median_time(lambda message=message: wire.gather(message), 20)  # type: ignore[misc]
    found["step"] = time_steps(encoder, BATCH, Group(wire), rounds)
    Path(folder, f"{rank}.json").write_text(json.dumps(found))
    torch.distributed.destroy_process_group()


NETWORKS = {"cnn": (0.177e-3 / 256, 48_000), "resnet1d": (17.17e-3 / 256, 800_000)}
"""Seconds per instance of two views on an H200, captured, and weights (results of step.py and ranks_step.py)."""
PER_PAIR = 3 * 2 * VIEWS**2 * DIM / 30e12
"""Assumption: seconds per pair of instances, of three matrix products in float32 at 30 TFLOP/s."""
WIRES = {"8 H200 over NVLink": (8, Wire(20e-6, 300e9)), "64 H200 over InfiniBand": (64, Wire(40e-6, 40e9))}
"""Assumptions: latency and speed of a collective operation, per GPU."""


def predict() -> dict[str, Any]:
    """Put the constants of GPUs into the model, for a batch of 256 instances per GPU."""
    found: dict[str, Any] = {}
    for name, (each, weights) in NETWORKS.items():
        for place, (processes, wire) in WIRES.items():
            batch = 256 * processes
            step = step_seconds(Compute(0.0, 0.0, each, PER_PAIR), wire, batch, processes, weights, processes)
            one = each * batch + PER_PAIR * batch**2
            found[f"{name}, {place}"] = {
                "batch": batch,
                "latency, s": wire.latency,
                "speed, bytes/s": wire.speed,
                "step, ms": round(1000 * step, 3),
                "one GPU, ms": round(1000 * one, 3),
                "efficiency": round(one / step / processes, 3),
            }
    return found


if __name__ == "__main__":
    raise SystemExit(main())
