"""One pre-training step on a CPU: the paper's encoder in rows beside torch's modules, in turns in one process.

    python benchmarks/cpu_step.py --out benchmarks/results/cpu_step.json

The step is the engine's own: 256 instances of two views of 2500 samples, patient-NCE, gradients, Adam; without and with
the gather, the views and the min-max before it. Both ways must agree before anything is timed. Every round runs all
ways once, in turns, and the median of the rounds' ratios counts; beside it stand the quartiles. A round in which other
processes took more than a tenth of a core is left out and counted. It runs twice, in processes of their own: with
the allocator as `clocs` sets it and as torch brings it (the two differ on Linux on ARM only).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

INSTANCES, VIEWS, SAMPLES, DIM = 256, 2, 2500, 128
PURGE = "MIMALLOC_PURGE_DELAY"
ALLOCATORS = {"kept": "-1", "as torch brings it": None}
SIZES = (4, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024)
OTHERS = 0.1  # of one core


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=40, help="rounds that count")
    parser.add_argument("--patience", type=float, default=120, help="seconds to wait for them, for each part")
    parser.add_argument("--inside", choices=list(ALLOCATORS), help=argparse.SUPPRESS)  # one of the two processes
    given = parser.parse_args()
    if given.inside:
        found = measure(given.threads, given.rounds, given.patience, given.inside == "kept")
        given.out.write_text(json.dumps(found))
        return 0
    found = describe(given.threads) | {f"freed memory {name}": run_inside(name, given) for name in ALLOCATORS}
    print(json.dumps(found, indent=2))
    given.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


def describe(threads: int) -> dict[str, object]:
    from importlib.metadata import version

    return {
        "command": "python benchmarks/cpu_step.py --out benchmarks/results/cpu_step.json",
        "date": date.today().isoformat(),
        "machine": f"{cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("torch", "clocs")}},
        "threads": threads,
        "step": f"{INSTANCES} instances of {VIEWS} views of {SAMPLES} samples, float32, embeddings of {DIM}",
    }


def cpu_model() -> str:
    """As /proc/cpuinfo has it, or lscpu: ARM processors have numbers there, and lscpu knows their names."""
    try:
        text = Path("/proc/cpuinfo").read_text() + subprocess.run(["lscpu"], capture_output=True, text=True).stdout
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.lower().startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def run_inside(allocator: str, given: argparse.Namespace) -> dict[str, object]:
    environment = {name: value for name, value in os.environ.items() if name != PURGE}
    if (setting := ALLOCATORS[allocator]) is not None:
        environment[PURGE] = setting
    part = given.out.with_suffix(".part")
    asked = ["--threads", str(given.threads), "--rounds", str(given.rounds), "--patience", str(given.patience)]
    subprocess.run(
        [sys.executable, __file__, "--out", str(part), "--inside", allocator, *asked], check=True, env=environment
    )
    found: dict[str, object] = json.loads(part.read_text())
    part.unlink()
    return found


def measure(threads: int, rounds: int, patience: float, everything: bool) -> dict[str, object]:
    import torch

    torch.set_num_threads(threads)
    in_turns = partial(take_turns, rounds=rounds, patience=patience)
    found: dict[str, object] = {"agreement": agreement()} if everything else {}
    found["step"] = in_turns({way: make_step(way) for way in ("plain", "rows")})
    found["step with gather, views and min-max"] = in_turns({way: make_step(way, True) for way in ("plain", "rows")})
    if not everything:
        return found
    ways = {"plain": partial(make_step, "plain", fused=False), "fused Adam": partial(make_step, "plain")}
    found["plain, Adam fused or not"] = in_turns({name: make() for name, make in ways.items()})
    ways = {"plain": partial(make_step, "rows", fused=False), "fused Adam": partial(make_step, "rows")}
    found["rows, Adam fused or not"] = in_turns({name: make() for name, make in ways.items()})
    found["evaluation"] = in_turns({way: make_evaluation(way) for way in ("plain", "rows")})
    found["encoder by signals, forward and backward"] = {
        str(n): in_turns({way: make_pass(way, n) for way in ("plain", "rows")}) for n in SIZES
    }
    torch.set_num_threads(1)
    found["step on one thread"] = in_turns({way: make_step(way) for way in ("plain", "rows")})
    return found


def make_step(way: str, gather: bool = False, fused: bool = True) -> Callable[[], object]:
    """A training step of the engine in one of the ways, on instances in a store or on views that are made before."""
    import torch
    from torch import nn

    from clocs_core.data.store import Instances
    from clocs_core.train.step import ContrastiveObjective, ViewMaker, train_step
    from clocs_plugins.patient_contrast.cmsc import segments_as_views
    from clocs_plugins.patient_contrast.nce import patient_nce

    encoder, store = make_encoder(way), make_store()
    optimiser = torch.optim.Adam(encoder.parameters(), lr=1e-4, fused=fused)
    objective = ContrastiveObjective(partial(patient_nce, temperature=0.1))
    maker = ViewMaker(partial(segments_as_views, segments=VIEWS), (), normalise=True)
    frames = torch.arange(len(store.signal)).view(-1, VIEWS)
    instances = Instances(frames, torch.zeros(len(frames), 1, dtype=torch.int64))
    generator = torch.Generator().manual_seed(0)

    def views() -> Any:
        rows = torch.randint(len(frames), (INSTANCES,), generator=generator)
        return maker(store.gather(instances, rows), generator)

    fixed = None if gather else views()

    def step() -> object:
        return train_step(nn.ModuleList([encoder]), objective, optimiser, fixed if fixed is not None else views())

    return step


def make_encoder(way: str, dropout: float = 0.1) -> Any:
    import torch

    from clocs_plugins.cnn.network import CNN

    torch.manual_seed(0)
    return CNN(1, SAMPLES, DIM, dropout=dropout, implementation=way).train()


def make_store() -> Any:
    """4096 frames of noise of 2048 patients, as int16 with a gain: what a prepared data set looks like."""
    import torch

    from clocs_core.data.store import Store

    frames = 4096
    generator = torch.Generator().manual_seed(1)
    number = torch.arange(frames)
    return Store(
        signal=torch.randint(-2000, 2000, (frames, 1, SAMPLES), dtype=torch.int16, generator=generator),
        gain=torch.full((frames,), 1000.0),
        column=torch.zeros(1, dtype=torch.int64),
        patient=number // 2,
        record=number // 2,
        position=number % 2,
        label=torch.full((frames,), -1),
        patients=tuple(map(str, range(frames // 2))),
        records=tuple(map(str, range(frames // 2))),
        device=torch.device("cpu"),
    )


def make_pass(way: str, signals: int) -> Callable[[], object]:
    """Forward and backward through the encoder alone, which is what the choice by size is about."""
    import torch

    encoder = make_encoder(way)
    signal, gradient = torch.rand(signals, 1, SAMPLES), torch.randn(signals, DIM)

    def both() -> object:
        encoder.zero_grad(set_to_none=True)
        return encoder(signal).backward(gradient)

    return both


def make_evaluation(way: str) -> Callable[[], object]:
    import torch

    encoder, signal = make_encoder(way).eval(), torch.rand(INSTANCES * VIEWS, 1, SAMPLES)

    def evaluate() -> object:
        with torch.no_grad():
            return encoder(signal)

    return evaluate


def agreement() -> dict[str, object]:
    """Loss and gradients of one step of either way against the plain one in float64, without dropout."""
    import torch

    exact = loss_and_gradients("plain", torch.float64)
    found: dict[str, object] = {}
    for way, dtype, most in (
        ("rows", torch.float64, 1e-11),
        ("plain", torch.float32, 1e-3),
        ("rows", torch.float32, 1e-3),
    ):
        loss, *gradients = loss_and_gradients(way, dtype)
        error = max(float((a - b).norm() / b.norm()) for a, b in zip(gradients, exact[1:], strict=True))
        assert error < most, f"{way} in {dtype}: gradients differ by {error}"
        name = f"{way}, {str(dtype).removeprefix('torch.')}"
        found[name] = {"loss": f"{abs(float(loss / exact[0] - 1)):.1e}", "worst gradient": f"{error:.1e}"}
    return {"relative difference from the plain step in float64, full size, no dropout": found}


def loss_and_gradients(way: str, dtype: Any) -> list[Any]:
    import torch

    from clocs_plugins.patient_contrast.nce import patient_nce

    encoder = make_encoder(way, dropout=0.0).to(dtype)
    signal = torch.rand(VIEWS * INSTANCES, 1, SAMPLES, generator=torch.Generator().manual_seed(2)).to(dtype)
    loss = patient_nce(encoder(signal).view(VIEWS, INSTANCES, -1), torch.arange(INSTANCES), 0.1)
    loss.backward()
    # On paper the bias of a convolution in front of BatchNorm has no gradient; what it has is rounding.
    wanted = [parameter for name, parameter in encoder.named_parameters() if not name.endswith("conv.bias")]
    return [loss.detach().double(), *(parameter.grad.double() for parameter in wanted)]


def take_turns(ways: Mapping[str, Callable[[], object]], rounds: int, patience: float) -> dict[str, object]:
    """Milliseconds of each way and their ratio, round by round, until enough rounds were undisturbed."""
    kept: list[list[float]] = []
    disturbed: list[list[float]] = []
    for _ in range(3):
        one_round(ways)
    began = time.perf_counter()
    while len(kept) < rounds and time.perf_counter() - began < patience:
        others, (start, mine) = busy_cores(), (time.perf_counter(), time.process_time())
        some = [one_round(ways)]
        while time.perf_counter() - start < 0.2:  # what the system counts comes in steps of 10 ms
            some.append(one_round(ways))
        spent = busy_cores() - others - (time.process_time() - mine)
        (kept if spent < OTHERS * (time.perf_counter() - start) else disturbed).extend(some)
    return summarise(list(ways), kept or disturbed, len(kept), len(disturbed))


def one_round(ways: Mapping[str, Callable[[], object]]) -> list[float]:
    times = []
    for run in ways.values():
        began = time.perf_counter()
        run()
        times.append((time.perf_counter() - began) * 1e3)
    return times


def busy_cores() -> float:
    """Seconds of all cores that were spent on anything, since the machine started; 0 where the system does not tell."""
    try:
        numbers = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    except OSError:
        return 0.0
    return (sum(numbers) - numbers[3] - numbers[4]) / os.sysconf("SC_CLK_TCK")


def summarise(names: list[str], rounds: list[list[float]], kept: int, disturbed: int) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, times in zip(names, zip(*rounds, strict=True), strict=True):
        found[f"{name}, ms"] = quartiles(times, 2)
    found[f"{names[1]} / {names[0]}"] = quartiles([second / first for first, second in rounds], 3)
    return found | {"rounds": kept, "rounds left out, others were busy": disturbed}


def quartiles(numbers: Any, digits: int) -> dict[str, object]:
    low, middle, high = statistics.quantiles(numbers, n=4) if len(numbers) > 1 else [numbers[0]] * 3
    return {"median": round(middle, digits), "quartiles": [round(low, digits), round(high, digits)]}


if __name__ == "__main__":
    sys.exit(main())
