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
import platform
import time
from collections.abc import Sequence
from datetime import date
from functools import partial
from pathlib import Path

import torch
from command_line import command_line
from loss_compiling import compile_ahead, jobs_of
from loss_peers import beside_others, versions_of_peers
from loss_steps import TAU, Row, Size, Step, batch_of, in_float64, step_of, timed
from loss_tiles import sweep, table_of
from step_clock import unless_late
from torch import Tensor

from clocs_plugins.contrastive_losses.choice import Implementation, Precision
from clocs_plugins.contrastive_losses.patient_nce import patient_nce

SIZES = ((256, 128, 2), (256, 128, 8), (256, 128, 24), (4096, 128, 4), (32768, 128, 2), (65536, 256, 2))
TWO_VIEWS = (256, 1024, 4096)  # batches at which other libraries are asked
BOUNDS = {"fp16": (1e-4, 2e-3), "near-fp32": (2e-5, 2e-5), "reference": (1e-5, 1e-4), "chunked": (1e-5, 1e-4)}
"""How far loss and gradient may be from float64, relatively, or there is no time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, or try tiles, and write what was found. Returns 1 where a way disagrees with float64."""
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
    found: Row = about(device, arguments)
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
    """Measure ours at every size, then the others, as long as there is time."""
    exact = {size: in_float64(*batch_of(size, device)) for size in sizes}
    rows = [our_times(size, exact[size], device, impl) for size in sizes]
    pairs = [beside_others(batch, device, impl, ends) for batch in batches]
    for size, row in zip(sizes, rows, strict=True):
        row["times"]["reference compiled"] = unless_late(ends, partial(plain_times, size, exact[size], device))
    return {"sizes": rows, "two_views": pairs}


def as_size(text: str) -> Size:
    """Read a size, such as 256,128,2."""
    batch, dim, views = map(int, text.split(","))
    return batch, dim, views


def about(device: torch.device, arguments: Sequence[str] | None) -> Row:
    """Describe the command, the device and the versions."""
    triton = importlib.import_module("triton").__version__ if importlib.util.find_spec("triton") else None
    versions = {"torch": torch.__version__, "triton": triton, "cuda": torch.version.cuda, **versions_of_peers()}
    return {
        "command": command_line(__file__, arguments),
        "date": date.today().isoformat(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "versions": versions,
        "temperature": TAU,
    }


def our_times(size: Size, exact: tuple[Tensor, Tensor], device: torch.device, impl: Implementation) -> Row:
    """Measure agreement, times and memory of our own way, of the kernels in both precisions."""
    z, patient = batch_of(size, device)
    times: Row = {}
    ways: tuple[Precision, ...] = ("fp16", "near-fp32") if impl == "fused" else ("fp16",)
    for way in ways:
        step = step_of(partial(patient_nce, patient=patient, temperature=TAU, impl=impl, precision=way), z)
        name, bounds = (f"fused {way}", way) if impl == "fused" else (impl, impl)
        times[name] = agreed(step, exact, bounds, size, z)
    batch, dim, views = size
    tiles = table_of(size, device).as_numbers()
    return {"batch": batch, "dim": dim, "views": views, "tiles": tiles, "times": times}


def plain_times(size: Size, exact: tuple[Tensor, Tensor], device: torch.device) -> object:
    """Measure the same of the plain version, compiled."""
    z, patient = batch_of(size, device)
    torch._dynamo.reset()  # or the second size is compiled for all sizes
    plain = torch.compile(lambda z: patient_nce(z, patient, TAU, "paper", "reference"), disable=device.type == "cpu")
    return agreed(step_of(plain, z), exact, "reference", size, z)


def agreed(step: Step, exact: tuple[Tensor, Tensor], bounds: str, size: Size, z: Tensor) -> object:
    """Measure errors, time and memory; where a step disagrees with float64, say by how much instead."""
    loss, gradient = step()
    found = {
        "loss_error": ((loss.double() - exact[0]).abs() / exact[0].abs()).item(),
        "gradient_error": ((gradient.double() - exact[1]).norm() / exact[1].norm()).item(),
    }
    del loss, gradient
    if not all(error <= bound for error, bound in zip(found.values(), BOUNDS[bounds], strict=True)):
        return f"disagrees with float64: {found}, expected at most {BOUNDS[bounds]}"
    return {**found, **timed(step, size, z)}


def as_table(found: Row) -> str:
    """Write what was measured, a line for each."""
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
    """Write one measurement as a line of text."""
    low, high = one["quartiles_ms"]
    cells = [f"{one['median_ms']:9.4f} ms [{low:.4f}, {high:.4f}]"]
    cells += [f"{one['memory_mb']:>10} MB"] if "memory_mb" in one else []
    cells += ["waits for the host"] if one.get("waits_for_host") else []
    errors = [f"{key} {one[key]:.1e}" for key in ("loss_error", "gradient_error") if key in one]
    return "  ".join([*cells, *errors])


if __name__ == "__main__":
    raise SystemExit(main())
