"""One pre-training step on a CPU: the paper's encoder in rows beside torch's modules, in turns in one process.

    python benchmarks/cpu_step.py --out benchmarks/results/cpu_step.json

The step is the engine's own: 256 instances of two views of 2500 samples, patient-NCE, gradients, Adam; without and with
the gather, the views and the min-max before it. Both ways must agree before anything is timed. Every round runs all
ways once, in turns, and the median of the rounds' ratios counts; beside it stand the quartiles, and how many cores
other processes kept busy meanwhile. It runs twice, in processes of their own: with the allocator as `clocs` sets it and
as torch brings it (the two differ on Linux on ARM only).
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
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from command_line import command_line

from clocs_core.grids.machine import describe_machine

if TYPE_CHECKING:  # torch is imported once the threads and the allocator of the process are set
    import torch
    from torch import Tensor, nn

    from clocs_core.contracts.batches import Views
    from clocs_core.data.store import Store
    from clocs_plugins.cnn.implementations import Implementation

INSTANCES, VIEWS, SAMPLES, DIM = 256, 2, 2500, 128
PURGE = "MIMALLOC_PURGE_DELAY"
ALLOCATORS = {"kept": "-1", "as torch brings it": None}
WAYS: tuple[Implementation, Implementation] = ("plain", "rows")
SIZES = (4, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024)


def main() -> int:
    """Measure both ways in two processes, one per allocator, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--inside", choices=list(ALLOCATORS), help=argparse.SUPPRESS)  # one of the two processes
    given = parser.parse_args()
    if given.inside:
        found = measure(given.threads, given.rounds, given.inside == "kept")
        given.out.write_text(json.dumps(found))
        return 0
    found = describe(given.threads) | {f"freed memory {name}": run_inside(name, given) for name in ALLOCATORS}
    print(json.dumps(found, indent=2))
    given.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


def describe(threads: int) -> dict[str, object]:
    """Describe the machine, the versions and the step."""
    from importlib.metadata import version

    return {
        "command": command_line(__file__),
        "date": date.today().isoformat(),
        "machine": describe_machine(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("torch", "clocs")}},
        "threads": threads,
        "step": f"{INSTANCES} instances of {VIEWS} views of {SAMPLES} samples, float32, embeddings of {DIM}",
    }


def run_inside(allocator: str, given: argparse.Namespace) -> dict[str, object]:
    """Measure in a process of its own, with this allocator."""
    environment = {name: value for name, value in os.environ.items() if name != PURGE}
    if (setting := ALLOCATORS[allocator]) is not None:
        environment[PURGE] = setting
    part = given.out.with_suffix(".part")
    asked = ["--out", str(part), "--threads", str(given.threads), "--rounds", str(given.rounds), "--inside", allocator]
    subprocess.run([sys.executable, __file__, *asked], check=True, env=environment)
    found: dict[str, object] = json.loads(part.read_text())
    part.unlink()
    return found


def measure(threads: int, rounds: int, everything: bool) -> dict[str, object]:
    """Measure every step in this process. everything: also check agreement, and time Adam, evaluation and sizes."""
    import torch

    torch.set_num_threads(threads)
    in_turns = partial(take_turns, rounds=rounds)
    found: dict[str, object] = {"agreement": agreement()} if everything else {}
    found["step"] = in_turns({way: make_step(way) for way in WAYS})
    found["step with gather, views and min-max"] = in_turns({way: make_step(way, True) for way in WAYS})
    if not everything:
        return found
    for way in WAYS:
        adams = {"Adam": make_step(way, fused=False), "fused Adam": make_step(way, fused=True)}
        found[f"step, {way}, Adam fused or not"] = in_turns(adams)
    found["evaluation"] = in_turns({way: make_evaluation(way) for way in WAYS})
    found["encoder by signals, forward and backward"] = {
        str(n): in_turns({way: make_pass(way, n) for way in WAYS}) for n in SIZES
    }
    torch.set_num_threads(1)
    found["step on one thread"] = in_turns({way: make_step(way) for way in WAYS})
    return found


def make_step(way: Implementation, gather: bool = False, fused: bool | None = None) -> Callable[[], object]:
    """Make a training step of the engine in one of the ways. gather: draw instances and make views in every step.

    fused: whether Adam is one kernel; None: as the engine has it.
    """
    import torch
    from torch import nn

    from clocs_core.data.store import Instances
    from clocs_core.train.adam import Adam
    from clocs_core.train.learner import start
    from clocs_core.train.normalise import min_max
    from clocs_core.train.step import ContrastiveObjective, ViewMaker, train_step

    store = make_store()
    learner = start(nn.ModuleList([make_encoder(way)]), ContrastiveObjective(build("losses", "patient-nce")), 1e-4)
    optimiser: Adam | torch.optim.Optimizer = learner.optimiser
    if fused is not None:
        optimiser = torch.optim.Adam(learner.encoders.parameters(), lr=1e-4, fused=fused)
    maker = ViewMaker(build("views", "segments"), (), normalise=min_max)
    frames = torch.arange(len(store.signal)).view(-1, VIEWS)
    instances = Instances(frames, torch.zeros(len(frames), 1, dtype=torch.int64))
    generator = torch.Generator().manual_seed(0)

    def views() -> Views:
        rows = torch.randint(len(frames), (INSTANCES,), generator=generator)
        return maker(store.gather(instances, rows), generator)

    fixed = None if gather else views()

    def step() -> object:
        return train_step(list(learner.encoders), learner.objective, optimiser, views() if fixed is None else fixed)

    return step


def build(shelf: str, name: str) -> Any:
    """Build what a plugin offers under a name, with its default options."""
    from clocs_core.plugins.session import open_session

    offer = getattr(open_session().catalogue, shelf).get(name).offer
    return offer.build(offer.options())


def make_encoder(way: Implementation, dropout: float = 0.1) -> nn.Module:
    """Build the encoder of the paper, computed in one of the ways."""
    import torch

    from clocs_plugins.cnn.network import CNN

    torch.manual_seed(0)
    return CNN(1, SAMPLES, DIM, dropout=dropout, implementation=way).train()


def make_store() -> Store:
    """Make 4096 frames of noise of 2048 patients, as int16 with a gain, like a prepared data set."""
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


def make_pass(way: Implementation, signals: int) -> Callable[[], object]:
    """Make a forward and backward pass through the encoder alone."""
    import torch

    encoder = make_encoder(way)
    signal, gradient = torch.rand(signals, 1, SAMPLES), torch.randn(signals, DIM)

    def both() -> object:
        encoder.zero_grad(set_to_none=True)
        return encoder(signal).backward(gradient)

    return both


def make_evaluation(way: Implementation) -> Callable[[], object]:
    """Make a forward pass through the encoder without gradients."""
    import torch

    encoder, signal = make_encoder(way).eval(), torch.rand(INSTANCES * VIEWS, 1, SAMPLES)

    def evaluate() -> object:
        with torch.no_grad():
            return encoder(signal)

    return evaluate


def agreement() -> dict[str, object]:
    """Compare the loss and gradients of one step of either way with the plain one in float64, without dropout."""
    import torch

    exact = loss_and_gradients("plain", torch.float64)
    found: dict[str, object] = {}
    cases: tuple[tuple[Implementation, torch.dtype, float], ...] = (
        ("rows", torch.float64, 1e-11),
        ("plain", torch.float32, 1e-3),
        ("rows", torch.float32, 1e-3),
    )
    for way, dtype, most in cases:
        loss, *gradients = loss_and_gradients(way, dtype)
        error = max(float((a - b).norm() / b.norm()) for a, b in zip(gradients, exact[1:], strict=True))
        assert error < most, f"{way} in {dtype}: gradients differ by {error}"
        name = f"{way}, {str(dtype).removeprefix('torch.')}"
        found[name] = {"loss": f"{abs(float(loss / exact[0] - 1)):.1e}", "worst gradient": f"{error:.1e}"}
    return {"relative difference from the plain step in float64, full size, no dropout": found}


def loss_and_gradients(way: Implementation, dtype: torch.dtype) -> list[Tensor]:
    """Compute the loss of one batch and the gradients of all parameters but those without one, in float64."""
    import torch

    encoder, loss_of = make_encoder(way, dropout=0.0).to(dtype), build("losses", "patient-nce")
    signal = torch.rand(VIEWS * INSTANCES, 1, SAMPLES, generator=torch.Generator().manual_seed(2)).to(dtype)
    loss = loss_of(encoder(signal).view(VIEWS, INSTANCES, -1), torch.arange(INSTANCES))
    loss.backward()
    # On paper the bias of a convolution in front of BatchNorm has no gradient; what it has is rounding.
    wanted = [parameter for name, parameter in encoder.named_parameters() if not name.endswith("conv.bias")]
    gradients = [parameter.grad for parameter in wanted if parameter.grad is not None]
    assert len(gradients) == len(wanted), "every parameter has a gradient"
    return [loss.detach().double(), *(gradient.double() for gradient in gradients)]


def take_turns(ways: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, object]:
    """Time each way round by round, in milliseconds, with the ratio of the second to the first."""
    for _ in range(3):
        one_round(ways)
    before, began, mine = busy_seconds(), time.perf_counter(), time.process_time()
    times = [one_round(ways) for _ in range(rounds)]
    others = (busy_seconds() - before - (time.process_time() - mine)) / (time.perf_counter() - began)
    first, second = ways
    found: dict[str, object] = {
        f"{name}, ms": quartiles(of_way, 2) for name, of_way in zip(ways, zip(*times, strict=True), strict=True)
    }
    found[f"{second} / {first}"] = quartiles([b / a for a, b in times], 3)
    return found | {"rounds": rounds, "cores that others kept busy": round(max(others, 0.0), 1)}


def one_round(ways: Mapping[str, Callable[[], object]]) -> list[float]:
    """Run every way once, in turns. Returns their milliseconds."""
    times = []
    for run in ways.values():
        began = time.perf_counter()
        run()
        times.append((time.perf_counter() - began) * 1e3)
    return times


def busy_seconds() -> float:
    """Read how many seconds all cores were busy since the machine started; 0 where the system does not tell."""
    try:
        numbers = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    except OSError:
        return 0.0
    return (sum(numbers) - numbers[3] - numbers[4]) / os.sysconf("SC_CLK_TCK")


def quartiles(numbers: Sequence[float], digits: int) -> dict[str, object]:
    """Round the median and the quartiles of some numbers."""
    low, middle, high = statistics.quantiles(numbers, n=4)
    return {"median": round(middle, digits), "quartiles": [round(low, digits), round(high, digits)]}


if __name__ == "__main__":
    sys.exit(main())
