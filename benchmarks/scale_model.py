"""Model the time of a training step over W processes, with constants measured here, and hold it to runs of 2 and 4.

    python benchmarks/scale_model.py --json benchmarks/results/scale_model.json

A step of K instances with V views, embeddings of E numbers and P weights, shared by W processes, takes

    crowd(W) (fixed + views K + own K / W + pairs K² / W)   views of all instances, the rest of the own ones
    gather(V E K / W) + gather(V² K / W)                    directions and log-sum-exps
    reduce(P)                                               gradients

with gather(n) = latency + 4 n (W - 1) / speed and reduce(n) = latency + 8 n (W - 1) / W / speed for n float32 numbers.

`fixed` and `own` come from steps of one process with K, K/2 and K/4 instances, `views` and `pairs` from making views
and computing the loss alone, and latency and speed from messages of two sizes between W processes, by gloo. More
processes than cores share them, and all share the memory: crowd(W) says how much longer a step of K/4 instances takes
if W processes compute it at the same time, and send nothing. Then the steps of W = 2 and 4 processes are timed and
compared with the model. None of their times is used to fit it.

Everything is timed in turn in every round, so that other work on the machine slows down all of it alike: by the slowest
process, and of all rounds the median.

`predictions` has one H200 per process. The time of a step on one of them, and that of the loss of own rows, are
measured (results/ranks_step.json, own_rows.json, patient_nce.json). Latency and speed of the wire are assumptions, and
stand beside the numbers. It counts as if no sum of gradients ran beside the backward pass.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
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
from clocs_core.train.learner import Learner
from clocs_core.train.ranks import Group, TorchWire
from clocs_plugins.contrastive_losses.patient_nce import patient_nce

STEPS, VIEWS, DIM = 2, 2, 128
PROCESSES = 2, 4
MESSAGES = 2**10, 2**20  # numbers
MANY = 1024  # instances of the loss that is timed alone
CPU = torch.device("cpu")


@attrs.frozen
class Compute:
    """Seconds of a step on one process: fixed, per instance of the whole batch, per own instance, per pair."""

    fixed: float
    views: float
    own: float
    pairs: float

    def seconds(self, batch: int, processes: int) -> float:
        """Return the time of one of so many processes, which do not disturb each other."""
        mine = batch / processes
        return self.fixed + self.views * batch + self.own * mine + self.pairs * batch * mine


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


def wire_seconds(wire: Wire, batch: int, processes: int, weights: int) -> float:
    """Return the time of the messages of a step: embeddings, sums of rows, and the gradients of the weights."""
    mine = batch / processes
    gathered = [VIEWS * DIM * mine, VIEWS**2 * mine]
    return sum(wire.gather(numbers, processes) for numbers in gathered) + wire.reduce(weights, processes)


def main() -> int:
    """Measure, compare and predict; print and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="resnet1d")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    times = measure(given.encoder, given.batch, given.rounds)
    found: dict[str, Any] = {
        "command": command_line(__file__),
        "date": date.today().isoformat(),
        "machine": describe_machine(),
        "torch": torch.__version__,
        "encoder": given.encoder,
        "batch": given.batch,
        "weights": weights_of(given.encoder),
        "rounds": given.rounds,
        "seconds": {name: [float(f"{one:.4g}") for one in quartiles] for name, quartiles in times.items()},
    }
    found |= hold_to_runs({name: middle for name, (_, middle, _) in times.items()}, given.batch, found["weights"])
    found["predictions"] = predict()
    print(json.dumps(found, indent=1))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


def hold_to_runs(times: Mapping[str, float], batch: int, weights: int) -> dict[str, Any]:
    """Solve for the constants; compare the model with the steps of several processes."""
    compute = solve_compute(times, batch)
    found: dict[str, Any] = {"compute": attrs.asdict(compute), "processes": {}}
    for count in PROCESSES:
        wire = solve_wire([times[f"{size} numbers, {count}"] for size in MESSAGES], count)
        crowd = times[f"beside, {count}"] / times[f"one, {batch // 4}"]
        sent = wire_seconds(wire, batch, count, weights)
        modelled, measured = crowd * compute.seconds(batch, count) + sent, times[f"together, {count}"]
        found["processes"][str(count)] = {
            "crowd": round(crowd, 3),
            "latency, s": float(f"{wire.latency:.3g}"),
            "speed, bytes/s": float(f"{wire.speed:.3g}"),
            "messages, s": round(sent, 4),
            "modelled, s": round(modelled, 4),
            "measured, s": round(measured, 4),
            "error": round(modelled / measured - 1, 3),
        }
    return found


def solve_compute(times: Mapping[str, float], batch: int) -> Compute:
    """Return the constants of a step on one process."""
    views, pairs = times["views"] / batch, times["loss"] / MANY**2
    sizes = np.array([batch, batch // 2, batch // 4])
    rest = np.array([times[f"one, {size}"] for size in sizes]) - views * sizes - pairs * sizes**2
    fixed, own = np.polynomial.polynomial.polyfit(sizes, rest, 1)
    return Compute(float(fixed), views, float(own), pairs)


def solve_wire(seconds: Sequence[float], processes: int) -> Wire:
    """Return latency and speed, from the times to gather messages of two sizes."""
    sent = [4 * size * (processes - 1) for size in MESSAGES]
    speed = (sent[1] - sent[0]) / max(1e-9, seconds[1] - seconds[0])
    return Wire(max(0.0, seconds[0] - sent[0] / speed), speed)


def measure(encoder: str, batch: int, rounds: int) -> dict[str, tuple[float, float, float]]:
    """Time all works in every round; return the quartiles over rounds, each of the slowest process."""
    with tempfile.TemporaryDirectory() as folder:
        most = max(PROCESSES)
        torch.multiprocessing.spawn(_one_process, (most, encoder, batch, rounds, folder), most)  # type: ignore[attr-defined, no-untyped-call]
        found = [json.loads(Path(folder, f"{rank}.json").read_text()) for rank in range(most)]
    made: dict[str, tuple[float, float, float]] = {}
    for name in found[0]:
        slowest = [max(each) for each in zip(*(one[name] for one in found if one[name]), strict=True)]
        low, middle, high = statistics.quantiles(slowest, n=4)
        made[name] = low, middle, high
    return made


def _one_process(rank: int, count: int, encoder: str, batch: int, rounds: int, folder: str) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count)
    all_of_them = TorchWire(rank, count)
    wires = {many: TorchWire(rank, many, torch.distributed.new_group(list(range(many)))) for many in PROCESSES}
    works = works_of(encoder, batch, wires)
    found: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, (many, work) in works.items():
            all_of_them.gather(torch.zeros(1))  # all begin at the same time; those that have nothing to do wait
            if rank < many:
                began = time.perf_counter()
                times = work()
                found[name] += [(time.perf_counter() - began) / times] if turn else []  # the first round warms up
    Path(folder, f"{rank}.json").write_text(json.dumps(found))
    torch.distributed.destroy_process_group()


def works_of(encoder: str, batch: int, wires: Mapping[int, TorchWire]) -> dict[str, tuple[int, Callable[[], int]]]:
    """List what is timed: in how many processes, and a function that does it and returns how often it did."""
    works: dict[str, tuple[int, Callable[[], int]]] = {"views": (1, making_views(encoder, batch)), "loss": (1, losses)}
    works |= {f"one, {size}": (1, steps(encoder, size)) for size in (batch, batch // 2, batch // 4)}
    for many, wire in wires.items():
        works |= {f"{size} numbers, {many}": (many, gathering(wire, size)) for size in MESSAGES}
        works[f"beside, {many}"] = many, steps(encoder, batch // 4)
        works[f"together, {many}"] = many, steps(encoder, batch, Group(wire))
    return works


def steps(encoder: str, batch: int, group: Group | None = None) -> Callable[[], int]:
    """Return a function that trains for an epoch of some steps."""
    learner, training = prepare(encoder, batch, group)
    epochs = itertools.count(1)

    def work() -> int:
        plain_epoch(learner, training, next(epochs), no_tick)
        return STEPS

    return work


def making_views(encoder: str, batch: int) -> Callable[[], int]:
    """Return a function that makes the views of a batch."""
    _, training = prepare(encoder, batch)
    generator, rows = torch.Generator().manual_seed(0), torch.arange(batch)

    def work() -> int:
        for _ in range(10):
            training.make_views(training.store.gather(training.train, rows), generator)
        return 10

    return work


def losses() -> int:
    """Compute the loss of a large batch, and its gradient."""
    z = torch.randn(VIEWS, MANY, DIM, generator=torch.Generator().manual_seed(0)).requires_grad_()
    patient_nce(z, torch.arange(MANY), 0.1, impl="chunked").backward()
    return 1


def gathering(wire: TorchWire, size: int) -> Callable[[], int]:
    """Return a function that gathers a message of so many numbers."""

    def work() -> int:
        for _ in range(10):
            wire.gather(torch.zeros(size))
        return 10

    return work


def prepare(encoder: str, batch: int, group: Group | None = None) -> tuple[Learner, Training]:
    """Build a learner, and noise to train it on."""
    plan = plan_of("cmsc", ("II",), [f"encoder={encoder}", "impl=chunked"], CPU)
    training = attrs.evolve(training_on(plan, batch * STEPS, CPU, batch), group=group)
    return build_learner(plan, signals_of(plan), CPU), training


def weights_of(encoder: str) -> int:
    """Return how many weights a network has."""
    return sum(weight.numel() for weight in prepare(encoder, 4)[0].encoders.parameters())


EACH = 256
"""Instances of two views per GPU."""
NETWORKS = {"cnn": ("impl=auto", 45_304), "resnet1d": ("impl=auto", 837_152)}
"""The case of results/ranks_step.json with the captured step of 256 instances on one H200, and weights."""
GPU_VIEWS = 10.1e-6 / 256
"""Seconds per instance to gather its two frames and normalise them: two kernels of results/step_kernels.json."""
WIRES = {"8 H200 over NVLink": (8, Wire(20e-6, 300e9)), "64 H200 over InfiniBand": (64, Wire(40e-6, 40e9))}
"""Assumptions: latency and speed of a collective operation, per GPU; two thirds of NVLink's 450 GB/s in one direction,
and four fifths of the 50 GB/s of InfiniBand NDR."""
RESULTS = Path(__file__).parent / "results"


def predict() -> dict[str, Any]:
    """Put the times of one GPU into the model, for batches of 256 instances per GPU."""
    found: dict[str, Any] = {}
    steps, losses = _read("ranks_step"), _gpu_losses()
    for name, (case, weights) in NETWORKS.items():
        seconds = steps[f"{name}, {case}"]["alone ms"] / 1000
        compute = Compute(0.0, GPU_VIEWS, (seconds - losses[EACH, 1]) / EACH - GPU_VIEWS, 0.0)
        for place, (processes, wire) in WIRES.items():
            batch = EACH * processes
            loss, sent = losses[batch, processes], wire_seconds(wire, batch, processes, weights)
            one, step = compute.seconds(batch, 1) + losses[batch, 1], compute.seconds(batch, processes) + loss + sent
            found[f"{name}, {place}"] = {
                "batch": batch,
                "latency, s": wire.latency,
                "speed, bytes/s": wire.speed,
                "views, ms": round(1000 * compute.views * batch, 3),
                "loss, ms": round(1000 * loss, 3),
                "messages, ms": round(1000 * sent, 3),
                "step, ms": round(1000 * step, 3),
                "one GPU, ms": round(1000 * one, 3),
                "efficiency": round(one / step / processes, 3),
            }
    return found


def _gpu_losses() -> dict[tuple[int, int], float]:
    """Return the seconds of the fused loss and its gradient, by the batch and the number of processes that share it."""
    found = {(row["batch"], row["processes"]): row["median_ms"] / 1000 for row in _read("own_rows")["rows"]}
    (small,) = (one for one in _read("patient_nce")["sizes"] if (one["batch"], one["views"]) == (EACH, VIEWS))
    return {**found, (EACH, 1): small["times"]["fused fp16"]["median_ms"] / 1000}


def _read(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    raise SystemExit(main())
