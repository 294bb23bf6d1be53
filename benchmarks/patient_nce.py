"""Patient-NCE on a GPU, forward and backward of the loss alone: fused kernels beside the plain version, compiled.

    python benchmarks/patient_nce.py --out benchmarks/results/patient_nce.json
    python benchmarks/patient_nce.py --sweep --out sweep.json

Agreement comes first: loss and gradient of every way against float64. Then times, all in one process: medians of
samples of several steps with their quartiles, by CUDA events; up to a batch of 4096 the steps are replays of a CUDA
graph, so that the GPU is measured and not Python. A step is loss and gradient of embeddings from N(0, 1), in a batch
of which 1 of 64 patients comes twice. Memory is the peak of a step beside the embeddings and their gradient.
NT-Xent is timed as well, beside those losses of pytorch-metric-learning and lightly that are installed.

`--budget` seconds after the start, nothing that is not ours is begun, and what is missing is marked so. `--sweep` tries
other tiles, each kernel by itself, and tells which is the fastest; the table to change is shapes.py.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import torch
from captured_step import capture, kernel_times
from torch import Tensor

from clocs_plugins.contrastive_losses.choice import Implementation, Precision
from clocs_plugins.contrastive_losses.chunked import chunked_loss
from clocs_plugins.contrastive_losses.nt_xent import nt_xent
from clocs_plugins.contrastive_losses.patient_nce import patient_nce
from clocs_plugins.contrastive_losses.shapes import Shapes, Tile, choose_shapes, is_roomy
from clocs_plugins.contrastive_losses.weights import group_patients, patient_strengths

SIZES = ((256, 128, 2), (256, 128, 8), (256, 128, 24), (4096, 128, 4), (32768, 128, 2), (65536, 256, 2))
TWO_VIEWS = (256, 1024, 4096)  # batches at which other libraries are asked
PEERS = ("lightly", "pytorch-metric-learning")
TAU = 0.1
GRAPHS_UP_TO = 4096
SAMPLES, SAMPLE_MS, MOST_SECONDS = 15, 5.0, 2.0
BOUNDS = {"fp16": (1e-4, 2e-3), "near-fp32": (2e-5, 2e-5), "reference": (1e-5, 1e-4), "chunked": (1e-5, 1e-4)}
"""How far loss and gradient may be from float64, relatively, or there is no time."""

SUMS = [
    Tile(*one)
    for one in ((64, 32, 4, 3), (64, 64, 4, 3), (64, 128, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2), (128, 64, 4, 3))
]
GRADIENT = [
    Tile(*one)
    for one in ((16, 64, 2, 3), (64, 32, 4, 3), (64, 64, 4, 3), (64, 128, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2))
]
PARTS = (1, 2, 4, 8)

Size = tuple[int, int, int]
Row = dict[str, Any]  # what becomes JSON
Step = Callable[[], tuple[Tensor, Tensor]]
Job = tuple[Size, str, list[int]]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", nargs="+", type=as_size, default=SIZES, metavar="K,E,V", help="batch, dim, views")
    parser.add_argument("--batches", nargs="*", type=int, default=TWO_VIEWS, help="of NT-Xent beside other libraries")
    parser.add_argument("--impl", default="fused", choices=("fused", "chunked", "reference"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds after which nothing but ours is begun")
    parser.add_argument("--workers", type=int, default=12, help="processes that compile kernels before the first time")
    parser.add_argument("--sweep", action="store_true", help="try tiles instead")
    given = parser.parse_args(arguments)
    began, device = time.monotonic(), torch.device(given.device)
    found: Row = about(device)
    if given.impl == "fused" and device.type == "cuda" and given.workers:
        compile_ahead(jobs_of(given.sizes, given.batches, given.sweep), given.workers)
        found["compile_seconds"] = round(time.monotonic() - began, 1)
    if given.sweep:
        found["sweep"] = [sweep(size, device) for size in given.sizes]
    else:
        found.update(measure_all(given.sizes, given.batches, device, given.impl, began + given.budget))
    found["seconds"] = round(time.monotonic() - began, 1)
    given.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(as_table(found))
    return 1 if "disagrees" in json.dumps(found) else 0


def measure_all(
    sizes: Sequence[Size], batches: Sequence[int], device: torch.device, impl: Implementation, ends: float
) -> Row:
    """Ours first, everywhere; then the others, as long as there is time."""
    exact = {size: in_float64(*batch_of(size, device)) for size in sizes}
    rows = [our_times(size, exact[size], device, impl) for size in sizes]
    pairs = [beside_others(batch, device, impl, ends) for batch in batches]
    for size, row in zip(sizes, rows, strict=True):
        row["times"]["reference compiled"] = unless_late(ends, partial(plain_times, size, exact[size], device))
    return {"sizes": rows, "two_views": pairs}


def as_size(text: str) -> Size:
    batch, dim, views = map(int, text.split(","))
    return batch, dim, views


def about(device: torch.device) -> Row:
    triton = importlib.import_module("triton").__version__ if importlib.util.find_spec("triton") else None
    found = {name: version(name) for name in PEERS if importlib.util.find_spec(name.replace("-", "_"))}
    return {
        "command": "python benchmarks/patient_nce.py --budget 100 --out benchmarks/results/patient_nce.json",
        "date": date.today().isoformat(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "versions": {"torch": torch.__version__, "triton": triton, "cuda": torch.version.cuda, **found},
        "temperature": TAU,
    }


# ------------------------------------------------------------------------------------------------------- one size


def batch_of(size: Size, device: torch.device) -> tuple[Tensor, Tensor]:
    """Embeddings that want a gradient, and patients: 1 of 64 comes twice, at the other end of the batch."""
    batch, dim, views = size
    generator = torch.Generator(device).manual_seed(0)
    z = torch.randn(views, batch, dim, generator=generator, device=device)
    return z.requires_grad_(), torch.arange(batch, device=device) % (batch - batch // 64)


def our_times(size: Size, exact: tuple[Tensor, Tensor], device: torch.device, impl: Implementation) -> Row:
    """Agreement, times and memory of our own way, of the kernels in both precisions."""
    z, patient = batch_of(size, device)
    times: Row = {}
    ways: tuple[Precision, ...] = ("fp16", "near-fp32") if impl == "fused" else ("fp16",)
    for way in ways:
        step = step_of(partial(patient_nce, patient=patient, temperature=TAU, impl=impl, precision=way), z)
        name, bounds = (f"fused {way}", way) if impl == "fused" else (impl, impl)
        times[name] = agreed(step, exact, bounds, size, z)
    batch, dim, views = size
    return {"batch": batch, "dim": dim, "views": views, "tiles": tiles_of(size, device), "times": times}


def plain_times(size: Size, exact: tuple[Tensor, Tensor], device: torch.device) -> object:
    """The same of the plain version, compiled."""
    z, patient = batch_of(size, device)
    torch._dynamo.reset()  # or the second size is compiled for all sizes
    plain = torch.compile(lambda z: patient_nce(z, patient, TAU, "paper", "reference"), disable=device.type == "cpu")
    return agreed(step_of(plain, z), exact, "reference", size, z)


def agreed(step: Step, exact: tuple[Tensor, Tensor], bounds: str, size: Size, z: Tensor) -> object:
    """Errors, time and memory; or, if it computes something else, how far it is off, and no time."""
    loss, gradient = step()
    found = {
        "loss_error": ((loss.double() - exact[0]).abs() / exact[0].abs()).item(),
        "gradient_error": ((gradient.double() - exact[1]).norm() / exact[1].norm()).item(),
    }
    del loss, gradient
    if not all(error <= bound for error, bound in zip(found.values(), BOUNDS[bounds], strict=True)):
        return f"disagrees with float64: {found}, expected at most {BOUNDS[bounds]}"
    return {**found, **timed(step, size, z)}


def tiles_of(size: Size, device: torch.device) -> list[int]:
    batch, dim, views = size
    roomy = is_roomy(device.type, device.index or 0)
    return choose_shapes(batch, dim, views, two=False, alone=False, roomy=roomy).as_numbers()


def step_of(loss: Callable[[Tensor], Tensor], z: Tensor) -> Step:
    def step() -> tuple[Tensor, Tensor]:
        found = loss(z)
        (gradient,) = torch.autograd.grad(found, z)
        return found.detach(), gradient

    return step


def in_float64(z: Tensor, patient: Tensor) -> tuple[Tensor, Tensor]:
    """Loss and gradient in float64: the plain version, or in chunks of 2 GB where it does not fit."""
    views, batch, _ = z.shape
    pairs, wide = views * (views - 1) // 2, z.detach().double().requires_grad_()
    if pairs * batch * batch <= 2**27:
        return step_of(lambda z: patient_nce(z, patient, TAU, "paper", "reference"), wide)()
    groups = group_patients(patient)
    strengths = patient_strengths(groups, False, pairs, wide.dtype)
    return step_of(lambda z: chunked_loss(z, TAU, strengths, groups, 2**28), wide)()


def unless_late(ends: float, measure: Callable[[], object]) -> object:
    if time.monotonic() > ends:
        return "not measured: out of time"
    try:
        return measure()
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return "out of memory"


# -------------------------------------------------------------------------------------------------- time and memory


def timed(step: Callable[[], object], size: Size, z: Tensor) -> Row:
    """Peak memory of a step, and its time."""
    if not z.is_cuda or size[0] > GRAPHS_UP_TO:
        return {**memory(step, z), **clock(step, z.is_cuda)}
    replay = capture(step)
    return {**memory(step, z), **clock(replay, True), "kernels_us": kernel_times(replay)}


def memory(step: Callable[[], object], z: Tensor) -> Row:
    """Bytes at the peak of a step, without the embeddings and their gradient."""
    if not z.is_cuda:
        return {}
    step()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    return {"memory_mb": round((torch.cuda.max_memory_allocated() - before - z.nbytes) / 1e6, 2)}


def clock(step: Callable[[], object], on_gpu: bool) -> Row:
    """Median and quartiles in milliseconds, of samples that last 5 ms or one step."""
    for _ in range(3):
        step()
    once = max(sample(step, 1, on_gpu), 1e-3)
    steps = max(1, min(200, math.ceil(SAMPLE_MS / once)))
    samples = max(3, min(SAMPLES, int(1000 * MOST_SECONDS / (steps * once))))
    taken = sorted(sample(step, steps, on_gpu) for _ in range(samples))
    low, middle, high = statistics.quantiles(taken, n=4)
    return {"median_ms": middle, "quartiles_ms": [low, high], "samples": samples, "steps": steps}


def sample(step: Callable[[], object], steps: int, on_gpu: bool) -> float:
    """Milliseconds of a step, over so many."""
    if not on_gpu:
        began = time.perf_counter()
        for _ in range(steps):
            step()
        return 1000 * (time.perf_counter() - began) / steps
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(steps):
        step()
    last.record()
    last.synchronize()
    return float(first.elapsed_time(last)) / steps


# ----------------------------------------------------------------------------------------------- beside other libraries


def beside_others(batch: int, device: torch.device, impl: Implementation, ends: float) -> Row:
    """Two views: our NT-Xent and patient-NCE, and losses of other libraries on the same embeddings."""
    size = (batch, 128, 2)
    z, patient = batch_of(size, device)
    ours = step_of(lambda z: nt_xent(z, TAU, impl), z)
    times: Row = {
        f"nt-xent {impl}": timed(ours, size, z),
        f"patient-nce {impl}": timed(step_of(lambda z: patient_nce(z, patient, TAU, "paper", impl), z), size, z),
    }
    expected = nt_xent(z.detach().double(), TAU, "chunked").item()
    errors = {f"nt-xent {impl}": abs(ours()[0].item() / expected - 1)}
    for name, loss, same in others(patient):
        step = step_of(loss, z)

        def measure(step: Step = step, name: str = name, same: bool = same) -> Row:
            if same:
                errors[name] = abs(step()[0].item() / expected - 1)
            return {**memory(step, z), **clock(step, z.is_cuda)}  # they wait for the host: no graph can hold them

        times[name] = unless_late(ends, measure)
    return {"batch": batch, "dim": 128, "views": 2, "nt_xent_errors": errors, "times": times}


def others(patient: Tensor) -> list[tuple[str, Callable[[Tensor], Tensor], bool]]:
    """Losses of other libraries as functions of both views, and whether they are NT-Xent."""
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


# ------------------------------------------------------------------------------------------------------- other tiles


def tried(size: Size, device: torch.device) -> list[Shapes]:
    """The tiles of the table, then every other tile of either kernel."""
    batch, dim, views = size
    table = choose_shapes(batch, dim, views, two=False, alone=False, roomy=is_roomy(device.type, device.index or 0))
    parts = [one for one in PARTS if batch <= GRAPHS_UP_TO or one == 1]
    return [
        table,
        *(Shapes(one, table.gradient, table.parts) for one in SUMS),
        *(Shapes(table.sums, one, many) for one in GRADIENT for many in parts),
    ]


def sweep(size: Size, device: torch.device) -> Row:
    """Milliseconds of the forward pass by the tile of its sums, and of the backward pass by tile and parts."""
    z, patient = batch_of(size, device)
    forward: dict[str, float] = {}
    backward: dict[str, float] = {}
    for shapes in tried(size, device):
        steps = passes(z, patient, shapes)
        for step, times, key in zip(
            steps, (forward, backward), (as_key(shapes.sums), as_key(shapes.gradient, shapes.parts)), strict=True
        ):
            if key in times:
                continue
            try:
                ready = capture(step) if z.is_cuda and size[0] <= GRAPHS_UP_TO else step
                times[key] = clock(ready, z.is_cuda)["median_ms"]
            except Exception as problem:  # a tile that a GPU cannot hold fails in several ways
                print(f"{size} {key}: {type(problem).__name__}: {problem}")
    ranked = [dict(sorted(times.items(), key=lambda one: one[1])) for times in (forward, backward)]
    return {
        "size": list(size),
        "table": tiles_of(size, device),
        "forward_ms": ranked[0],
        "backward_ms": ranked[1],
    }


def passes(z: Tensor, patient: Tensor, shapes: Shapes) -> tuple[Callable[[], object], Callable[[], object]]:
    """The forward and the backward operator by themselves."""
    importlib.import_module("clocs_plugins.contrastive_losses.fused")  # where they are made
    z, numbers, outer = z.detach(), shapes.as_numbers(), torch.ones((), device=z.device)
    share = 2 / (len(z) * (len(z) - 1))

    def forward() -> list[Tensor]:
        return list(torch.ops.clocs.contrast(z, patient, None, TAU, 0, share, False, numbers))

    held: list[list[Tensor]] = []

    def backward() -> object:
        if not held:
            held.append(forward()[1:])
        return torch.ops.clocs.contrast_backward(outer, z, None, *held[0], TAU, 0, False, numbers, False)

    return forward, backward


def as_key(tile: Tile, parts: int | None = None) -> str:
    name = f"{tile.rows}x{tile.columns} {tile.warps} warps {tile.stages} stages"
    return name if parts is None else f"{name} {parts} parts"


# ------------------------------------------------------------------------------------------------------------ compiling


def jobs_of(sizes: Sequence[Size], batches: Sequence[int], sweeping: bool) -> list[Job]:
    """What to launch once, so that its kernels are in Triton's cache: size, loss or precision, and tiles if tried."""
    if sweeping:
        device = torch.device("cuda")
        return [(size, "tiles", shapes.as_numbers()) for size in sizes for shapes in tried(size, device)]
    own: list[Job] = [(size, precision, []) for size in sizes for precision in ("fp16", "near-fp32")]
    return [*own, *(((batch, 128, 2), what, []) for batch in batches for what in ("nt-xent", "fp16"))]


def compile_ahead(jobs: list[Job], workers: int) -> None:
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


# ------------------------------------------------------------------------------------------------------------ the table


def as_table(found: Row) -> str:
    """What was measured, a line for each."""
    lines = [f"{found['device']}, {found['versions']}, {found['seconds']} s"]
    for row in [*found.get("sizes", []), *found.get("two_views", [])]:
        for name, one in row["times"].items():
            size = f"{row['batch']:>6} {row['dim']:>4} {row['views']:>3}  {name:<36}"
            lines.append(f"{size} {one if isinstance(one, str) else as_cells(one)}")
    for row in found.get("sweep", []):
        lines.append(f"{row['size']} table {row['table']}")
        for which in ("forward_ms", "backward_ms"):
            best = list(row[which].items())[:4]
            lines.append(f"  {which}: " + "; ".join(f"{key} {value:.4f}" for key, value in best))
    return "\n".join(lines)


def as_cells(one: Row) -> str:
    low, high = one["quartiles_ms"]
    cells = [f"{one['median_ms']:9.4f} ms [{low:.4f}, {high:.4f}]", f"{one.get('memory_mb', 0):>10} MB"]
    errors = [f"{key} {one[key]:.1e}" for key in ("loss_error", "gradient_error") if key in one]
    return "  ".join([*cells, *errors])


if __name__ == "__main__":
    raise SystemExit(main())
