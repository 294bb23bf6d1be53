"""Time one pre-training step and one epoch as `clocs run` does them, plain and captured.

    python benchmarks/step.py --device cuda --json benchmarks/results/step.json

A step is gather, views, normalisation, encoder, loss, gradients and Adam, on instances of 2,500 samples that lie on the
device. The epoch has the size of CMSC on Chapman: 25,543 instances of two segments, batches of 256. First the plain and
the captured epochs must give the same losses (dropout off), then they are timed. Medians, with the quartiles. A step
is timed as a share of an epoch of 200 steps and, captured, of one of 50, of which its beginning is a larger part.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

import attrs
import torch
from command_line import command_line

from clocs_core import SignalFacts
from clocs_core.data.store import Instances, Store
from clocs_core.plan.pretraining import Plan, resolve
from clocs_core.plugins.catalogue import build_catalogue
from clocs_core.plugins.host import installed_entry_points, load_plugins
from clocs_core.settings.toml_file import Tables
from clocs_core.train.build import build_learner, build_views
from clocs_core.train.captured import CapturedEpochs
from clocs_core.train.epochs import RunEpoch, Training, plain_epoch

CHAPMAN = 25_543
PLAIN_REPEATS, SHORT = 5, 50
"""Epochs of plain steps, which take thirty times as long; steps of a short epoch."""
STEPS = (("cmsc", ("II",), 2), ("cmsmlc", ("II", "V2", "aVL", "aVR"), 8))
"""Methods with their leads and how many views that makes."""
EACH = {
    "default": [],
    "none": ["normalise=none"],
    "z-score": ["normalise=z-score"],
    "constant": ["normalise=constant", "constant=1"],
    "projector 128": ["projector=128"],
    "projector 2048,2048": ["projector=2048,2048"],
    "AdamW": ["optimiser=adamw", "weight_decay=0.05"],
    "warm-up and cosine": ["warm_up=0.1", "schedule=cosine"],
    "clip": ["clip=1"],
    "bf16": ["autocast=bf16"],
}
"""Settings of signals and training, each by itself; all of them at once come last."""
ALL = [*EACH["z-score"], *EACH["projector 2048,2048"], *EACH["AdamW"], *EACH["warm-up and cosine"], *EACH["clip"]]


def main() -> int:
    """Measure steps and an epoch, or list the kernels of a step, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=200, help="steps per epoch")
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--epoch", type=int, default=CHAPMAN, help="instances of the whole epoch")
    parser.add_argument("--also", nargs="*", default=[], help="options, as NAME=VALUE, for a second set of figures")
    parser.add_argument("--each", nargs="*", metavar="ENCODER", help="instead, time CMSC with each setting of training")
    parser.add_argument("--json", help="write the figures here too")
    parser.add_argument("--kernels", help="instead, write here which kernels a captured step starts, and their times")
    given = parser.parse_args()
    device = torch.device(given.device)
    found: dict[str, object] = {"command": command_line(__file__)}
    found |= {"date": datetime.now(UTC).date().isoformat(), "machine": machine_of(device)}
    if given.kernels:
        found["steps"] = {f"{method}, V = {views}": _kernels(method, leads, device) for method, leads, views in STEPS}
        Path(given.kernels).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        return 0
    if given.each is not None:
        found |= _each(given.each or ["cnn", "resnet1d"], device, given.steps, given.repeats)
        if given.json:
            Path(given.json).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        return 0
    sets = {"default": [], **({" ".join(given.also): given.also} if given.also else {})}
    for name, options in sets.items():
        for method, leads, views in STEPS:
            row = _step(method, leads, options, device, given.steps, given.repeats)
            found[f"step, {method}, V = {views}, {name}"] = row
            print(f"{method} V={views} {name}: {row}", flush=True)
        row = _epoch(options, device, given.epoch, given.repeats)
        found[f"epoch of {given.epoch:,} x 2, {name}"] = row
        print(f"epoch {name}: {row}", flush=True)
    if given.json:
        Path(given.json).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


def machine_of(device: torch.device) -> dict[str, str]:
    """Describe the machine and the versions."""
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else "none"
    return {"gpu": gpu, "torch": torch.__version__, "python": platform.python_version(), "system": platform.machine()}


def plan_of(method: str, leads: tuple[str, ...], options: list[str], device: torch.device) -> Plan:
    """Plan a run on the simulated recordings."""
    catalogue, _ = build_catalogue(load_plugins(installed_entry_points()))
    tables: Tables = {
        "run": {"method": method, "dataset": "demo", "device": device.type},
        "data": {"channels": list(leads)},
    }
    return resolve(catalogue, tables, options)


def training_on(plan: Plan, instances: int, device: torch.device, batch: int = 256) -> Training:
    """Put noise on the device as instances of the plan's method; every 64th patient comes twice."""
    needs, channels, samples = plan.needs, len(plan.data.channels), plan.pretrain_framing.frame_samples
    each = needs.segments * needs.recordings
    frames = instances * each
    number = torch.arange(instances, device=device).repeat_interleave(each)
    source = torch.Generator(device).manual_seed(0)
    store = Store(
        signal=torch.randn(frames, channels, samples, device=device, generator=source),
        gain=torch.ones(frames, device=device),
        column=torch.arange(channels, device=device),
        patient=number - (number % 64 == 1).long(),
        record=torch.arange(frames, device=device) // needs.segments,
        position=torch.arange(frames, device=device) % needs.segments,
        label=torch.zeros(frames, dtype=torch.int64, device=device),
        patients=(),
        records=(),
        device=device,
    )
    frame = torch.arange(frames, device=device).view(instances, each)
    channel = torch.arange(channels, device=device).expand(instances, -1).contiguous()
    chosen = Instances(frame, channel)
    settings = attrs.evolve(plan.train, batch_size=batch)
    return Training(store, build_views(plan, signals_of(plan)), chosen, chosen, settings, 0)


def signals_of(plan: Plan) -> SignalFacts:
    """Describe the plan's signals."""
    samples = plan.pretrain_framing.frame_samples
    axis = -2 if plan.needs.encoder_channels == "all" else None
    return SignalFacts(unit="mV", frame_rate=500.0, samples=samples, channels=plan.data.channels, channel_axis=axis)


def _step(
    method: str, leads: tuple[str, ...], options: list[str], device: torch.device, steps: int, repeats: int
) -> dict[str, object]:
    plan = plan_of(method, leads, options, device)
    training = training_on(plan, 256 * steps, device)
    still = plan_of(method, leads, [*options, "encoder.dropout=0"], device)
    row: dict[str, object] = {}
    runners: dict[str, RunEpoch] = {"plain": plain_epoch}
    if device.type == "cuda":
        runners["captured"] = CapturedEpochs(refuse)
        row["agreement"] = _agreement(still, training, device)
    for name, run_epoch in runners.items():
        times = min(repeats, PLAIN_REPEATS) if name == "plain" and device.type == "cuda" else repeats
        seconds = timed_epochs(plan, training, run_epoch, device, times)
        row[f"{name} ms"] = [round(1000 * one / steps, 4) for one in seconds]
    if device.type == "cuda":
        seconds = timed_epochs(plan, training_on(plan, 256 * SHORT, device), CapturedEpochs(refuse), device, repeats)
        row[f"captured ms, epochs of {SHORT}"] = [round(1000 * one / SHORT, 4) for one in seconds]
    return row


def _each(encoders: list[str], device: torch.device, steps: int, repeats: int) -> dict[str, object]:
    """Time a step of CMSC, captured on a GPU, with each setting of signals and training and with all of them."""
    found: dict[str, object] = {}
    for encoder in encoders:
        for name, options in {**EACH, "all but bf16": ALL, "all": [*ALL, *EACH["bf16"]]}.items():
            plan = plan_of("cmsc", ("II",), [f"encoder={encoder}", *options], device)
            run_epoch: RunEpoch = CapturedEpochs(refuse) if device.type == "cuda" else plain_epoch
            seconds = timed_epochs(plan, training_on(plan, 256 * steps, device), run_epoch, device, repeats)
            found[f"{encoder}, {name}"] = {"ms": [round(1000 * one / steps, 4) for one in seconds]}
            print(f"{encoder}, {name}: {found[f'{encoder}, {name}']}", flush=True)
    return found


def _epoch(options: list[str], device: torch.device, instances: int, repeats: int) -> dict[str, object]:
    plan = plan_of("cmsc", ("II",), options, device)
    training = training_on(plan, instances, device)
    run_epoch: RunEpoch = CapturedEpochs(refuse) if device.type == "cuda" else plain_epoch
    return {"seconds": [round(one, 4) for one in timed_epochs(plan, training, run_epoch, device, repeats)]}


def _kernels(method: str, leads: tuple[str, ...], device: torch.device) -> dict[str, object]:
    """List the kernels of one captured step in their order, with the microseconds that each is busy."""
    from torch.profiler import ProfilerActivity, profile

    plan, steps = plan_of(method, leads, [], device), 20
    training = training_on(plan, 256 * steps, device)
    learner, run_epoch = build_learner(plan, signals_of(plan), device), CapturedEpochs(refuse)
    run_epoch(learner, training, 1, no_tick)
    wait_for(device)
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        run_epoch(learner, training, 2, no_tick)
        wait_for(device)
    kernels = sorted(
        (one for one in seen.events() if one.device_type.name == "CUDA"), key=lambda one: one.time_range.start
    )
    launches = len(kernels) // steps
    last = kernels[-launches - 1 : -1]  # behind it the losses are copied
    rows = [{"kernel": one.name[:80], "us": round(one.time_range.elapsed_us(), 1)} for one in last]
    return {"busy us": round(sum(float(row["us"]) for row in rows), 1), "launches": launches, "kernels": rows}


def _agreement(plan: Plan, training: Training, device: torch.device) -> float:
    """Find the largest relative difference of the losses of two epochs, captured and plain, without dropout."""
    losses = []
    for run_epoch in (plain_epoch, CapturedEpochs(refuse)):
        learner = build_learner(plan, signals_of(plan), device)
        losses.append(torch.cat([run_epoch(learner, training, epoch, no_tick) for epoch in (1, 2)]))
    difference = float(((losses[0] - losses[1]).abs() / losses[0].abs()).max())
    assert difference < 1e-2, f"captured and plain losses differ by {difference}"
    return difference


def timed_epochs(
    plan: Plan, training: Training, run_epoch: RunEpoch, device: torch.device, repeats: int
) -> tuple[float, float, float]:
    """Measure the seconds of an epoch: lower quartile, median, upper quartile."""
    learner = build_learner(plan, signals_of(plan), device)
    run_epoch(learner, training, 1, no_tick)  # captures, and warms up
    seconds = []
    for epoch in range(2, 2 + repeats):
        wait_for(device)
        began = time.perf_counter()
        run_epoch(learner, training, epoch, no_tick)
        wait_for(device)
        seconds.append(time.perf_counter() - began)
    low, middle, high = statistics.quantiles(seconds, n=4)
    return low, middle, high


def wait_for(device: torch.device) -> None:
    """Wait until a GPU has done all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def no_tick(step: int, steps: int) -> None:
    """Show no progress."""


def refuse(text: str) -> None:
    """Fail where a step cannot be captured: a plain one would be timed in its place."""
    raise RuntimeError(text)


if __name__ == "__main__":
    raise SystemExit(main())
