"""Time a training step that goes through all of the code for several processes, with one process, by NCCL or gloo.

    python benchmarks/ranks_step.py --device cuda --json benchmarks/results/ranks_step.json

One process alone, and one process that is a group of one: it gathers embeddings and row sums, and sums gradients in
buckets, as several would. On a GPU both are captured. Each round runs an epoch of each in turn; the
ratio of a round counts, and of all rounds the median with its quartiles. `auto` is what a user gets: the fused loss on
a GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import attrs
import torch
from command_line import command_line
from step import machine_of, no_tick, plan_of, refuse, signals_of, training_on, wait_for

from clocs_core.train.build import build_learner
from clocs_core.train.captured import CapturedEpochs
from clocs_core.train.epochs import RunEpoch, plain_epoch
from clocs_core.train.ranks import Group, TorchWire

CASES = (
    ("cnn", ["impl=auto"]),
    ("cnn", ["impl=chunked"]),
    ("resnet1d", ["impl=auto"]),
    ("resnet1d", ["impl=chunked"]),
    ("xresnet1d", ["impl=chunked", "leads=all"]),
)
"""Encoders and the options of their runs."""


def main() -> int:
    """Measure every case, print and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=50, help="steps per epoch")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batch", type=int, default=256, help="instances per step")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    device = torch.device(given.device)
    found: dict[str, object] = {"command": command_line(__file__), "date": datetime.now(UTC).date().isoformat()}
    found["machine"] = machine_of(device)
    with tempfile.TemporaryDirectory() as folder:
        backend = "nccl" if device.type == "cuda" else "gloo"
        place = f"file://{folder}/store"
        torch.distributed.init_process_group(backend, init_method=place, rank=0, world_size=1)
        for encoder, options in CASES:
            name = f"{encoder}, {' '.join(options)}"
            found[name] = _compare(encoder, options, device, given.batch, given.steps, given.rounds)
            print(f"{name}: {found[name]}", flush=True)
        torch.distributed.destroy_process_group()
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


def _compare(
    encoder: str, options: list[str], device: torch.device, batch: int, steps: int, rounds: int
) -> dict[str, object]:
    leads = ("II", "V1") if "leads=all" in options else ("II",)
    plan = plan_of("cmsc", leads, [f"encoder={encoder}", "normalise=min-max", *options], device)
    alone = training_on(plan, batch * steps, device, batch)
    ways = {"alone": alone, "group of one": attrs.evolve(alone, group=Group(TorchWire(0, 1)))}
    learners = {name: build_learner(plan, signals_of(plan), device) for name in ways}
    runs: dict[str, RunEpoch] = {
        name: CapturedEpochs(refuse) if device.type == "cuda" else plain_epoch for name in ways
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for epoch in range(1, rounds + 2):  # the first captures, and warms up
        for name, training in ways.items():
            wait_for(device)
            began = time.perf_counter()
            runs[name](learners[name], training, epoch, no_tick)
            wait_for(device)
            seconds[name].append(time.perf_counter() - began)
    ratios = [group / one for one, group in zip(seconds["alone"][1:], seconds["group of one"][1:], strict=True)]
    return {
        **{f"{name} ms": round(1000 * statistics.median(times[1:]) / steps, 4) for name, times in seconds.items()},
        "ratio": [round(one, 4) for one in statistics.quantiles(ratios, n=4)],
    }


if __name__ == "__main__":
    raise SystemExit(main())
