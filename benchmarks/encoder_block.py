"""The blocks of the paper's encoder on a GPU, forward and backward: fused kernels beside the plain modules.

    python benchmarks/encoder_block.py --out benchmarks/results/encoder_block.json
    python benchmarks/encoder_block.py --sweep 300 --out sweep.json

Agreement comes first: outputs and gradients of both ways against the plain modules in float64, without dropout. Then
times, in the same process: the plain modules as they are, compiled, and compiled and captured in a CUDA graph; the
fused blocks as they are and captured. A step is forward and backward of the three blocks and the linear layer, without
loss and optimiser; gradients are written, not added. Times are medians over samples of several steps, by CUDA events,
with the quartiles beside them. `--sweep` tries other tiles for so many seconds and tells the time of every kernel.
"""

from __future__ import annotations

import argparse
import copy
import json
import platform
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from captured_step import capture, kernel_times
from command_line import command_line
from step_clock import milliseconds
from torch import Tensor, nn

from clocs_plugins.cnn import fused_geometry as geometry
from clocs_plugins.cnn.block_fused import Layer, can_fuse, fused_blocks, layer_of
from clocs_plugins.cnn.linear_fused import fused_linear

WIDTHS, KERNEL, STRIDE, DROPOUT, DIM = (4, 16, 32), 7, 3, 0.1, 128
SAMPLES, STEPS = 25, 20  # how many times are taken, and steps in each
FEW, DRAWS = 32, 15  # signals in a draw of the agreement, and how many draws
MOST = {"output": 1e-5, "running": 1e-5, "gradients": 1e-3}  # errors, as shares of the largest value

Step = Callable[[], Tensor]

SWEEP: list[dict[str, object]] = [
    {},
    {"CONVOLVE_PRECISION": "bf16x3"},
    {"CONVOLVE_PRECISION": "bf16x6"},
    {"CONVOLVE_PRECISION": "ieee"},
    {"CONVOLVE": (16, 4)},
    {"CONVOLVE": (32, 4)},
    {"CONVOLVE_PRECISION": "bf16x6", "CONVOLVE": (32, 4)},
    {"CONVOLVE_PRECISION": "ieee", "CONVOLVE": (32, 4)},
    {"CONVOLVE_PRECISION": "ieee", "CONVOLVE": (32, 8)},
    {"PRECISION": "tf32"},
    {"PROGRAMS": 128, "SHARED_VALUES": 2048},
    {"PROGRAMS": 132, "SHARED_VALUES": 1056},
    {"PROGRAMS": 512, "THIN_CONVOLVE": (128, 4), "THIN_DIFFERENTIATE": (256, 4)},
    {"THIN_CONVOLVE": (512, 4), "THIN_DIFFERENTIATE": (1024, 8)},
    {"THIN_CONVOLVE": (256, 8), "THIN_DIFFERENTIATE": (256, 4)},
    {"DIFFERENTIATE": (32, 4), "FILTER_ROWS": 32},
    {"DIFFERENTIATE": (64, 4), "FILTER_ROWS": 64},
    {"DIFFERENTIATE": (16, 4), "FILTER_ROWS": 16, "ELEMENTWISE": (16, 4)},
    {"DIFFERENTIATE": (32, 8), "FILTER_ROWS": 32, "ELEMENTWISE": (128, 4)},
    {"DIFFERENTIATE": (16, 8), "FILTER_ROWS": 64},
    {"CONVOLVE_CHUNK": 16, "DIFFERENTIATE_CHUNK": 32},
    {"CONVOLVE_CHUNK": 64, "DIFFERENTIATE_CHUNK": 128},
]
"""Values of fused_geometry that `--sweep` tries, for windows of every length. A pair is a tile, of rows and warps."""


def main() -> int:
    """Check agreement and measure times, or try other tiles, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--signals", type=int, default=512, help="frames in a batch: K = 256 with two views is 512")
    parser.add_argument("--samples", type=int, default=2500)
    parser.add_argument("--sweep", type=float, default=0.0, metavar="SECONDS", help="try other tiles for so long")
    given = parser.parse_args()
    device = torch.device("cuda")
    signal = torch.rand(given.signals, 1, given.samples, device=device)
    found: dict[str, object] = {
        "command": command_line(__file__),
        "date": date.today().isoformat(),
        "gpu": torch.cuda.get_device_name(),
        "versions": versions(),
        "shape": {"signals": given.signals, "samples": given.samples, "widths": WIDTHS, "embedding_dim": DIM},
        "unit": "microseconds for forward and backward: median [quartiles]",
    }
    began = time.perf_counter()
    if given.sweep:
        found["sweep"] = sweep(signal, given.sweep)
    else:
        found["agreement"] = agreement(signal)
        print(json.dumps(found["agreement"], indent=2), flush=True)
        found["encoder"] = whole_encoder(signal)
        found["kernels"] = kernel_times(capture(fused_step(signal)))
        print(json.dumps({"encoder": found["encoder"], "kernels": found["kernels"]}, indent=2), flush=True)
        found["blocks"] = single_blocks(signal)
    found["seconds"] = round(time.perf_counter() - began, 1)
    print(json.dumps(found, indent=2))
    given.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


def versions() -> dict[str, str]:
    """Look up the versions that times depend on."""
    return {"torch": torch.__version__, "triton": version("triton"), "python": platform.python_version()}


def build(signal: Tensor, dropout: float = DROPOUT) -> nn.Sequential:
    """Build the paper's encoder of plain modules: five for each block, then flatten and linear."""
    samples, device = signal.shape[-1], signal.device
    torch.manual_seed(0)
    modules: list[nn.Module] = []
    for before, after in zip((1, *WIDTHS), WIDTHS, strict=False):
        modules += [nn.Conv1d(before, after, KERNEL, STRIDE), nn.BatchNorm1d(after), nn.ReLU(), nn.MaxPool1d(2)]
        modules += [nn.Dropout(dropout)]
    return nn.Sequential(*modules, nn.Flatten(), nn.Linear(WIDTHS[-1] * samples_left(samples), DIM)).to(device)


def samples_left(samples: int) -> int:
    """Count the samples that are left behind the three blocks."""
    for _ in WIDTHS:
        samples = ((samples - KERNEL) // STRIDE + 1) // 2
    return samples


def layers_of(encoder: nn.Sequential) -> list[Layer]:
    """Collect the layers of the three blocks as the fused kernels take them."""
    convolutions = [one for one in encoder if isinstance(one, nn.Conv1d)]
    norms = [one for one in encoder if isinstance(one, nn.BatchNorm1d)]
    return [layer_of(conv, norm) for conv, norm in zip(convolutions, norms, strict=True)]


# ----------------------------------------------------------------------------------------------------------- agreement


def agreement(signal: Tensor) -> dict[str, object]:
    """Compare both ways with float64; the median error of several draws of a few signals counts.

    Now and then a rounding makes another sample the largest of its pool, and its gradient goes elsewhere, in the plain
    modules as well: such a draw has an error of a hundredth. With few signals it is one of many draws.
    """
    draws = signal.split(FEW)[:DRAWS]
    found: dict[str, object] = {}
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        for way, run in (("plain", run_plain), ("fused", run_fused)):
            rows = [one_draw(some, run) for some in draws]
            found[way] = {name: float(f"{statistics.median(row[name] for row in rows):.2g}") for name in rows[0]}
            found[f"{way}, worst draw"] = max(row["gradients"] for row in rows)
    for name, most in MOST.items():
        assert found["fused"][name] < most, f"the fused blocks differ: {found}"  # type: ignore[index]
    again = [results(build(signal, 0.0), signal, run_fused) for _ in range(2)]
    same = all(torch.equal(again[0][name], again[1][name]) for name in again[0])
    assert same, "the fused blocks give other bits the second time"
    return {**found, "fused twice gives the same bits": same, "signals in a draw": FEW, "draws": len(draws)}


def one_draw(signal: Tensor, run: Callable[[nn.Sequential, Tensor], Tensor]) -> dict[str, float]:
    """Compare one way with float64 on some signals."""
    plain = build(signal, dropout=0.0)
    for norm in plain:
        if isinstance(norm, nn.BatchNorm1d):
            nn.init.normal_(norm.weight)  # of both signs
    exact = results(copy.deepcopy(plain).double(), signal.double(), run_plain)
    return errors(results(plain, signal, run), exact)


def run_plain(encoder: nn.Sequential, signal: Tensor) -> Tensor:
    """Run the encoder by torch's modules."""
    embedding: Tensor = encoder(signal)
    return embedding


def run_fused(encoder: nn.Sequential, signal: Tensor, dropout: float = 0.0) -> Tensor:
    """Run the encoder by the fused kernels."""
    features = fused_blocks(signal, layers_of(encoder), stride=STRIDE, dropout=dropout)
    linear = encoder[16]
    assert isinstance(linear, nn.Linear)
    return fused_linear(features.flatten(1), linear.weight, linear.bias, relu=False)


def results(
    encoder: nn.Sequential, signal: Tensor, run: Callable[[nn.Sequential, Tensor], Tensor]
) -> dict[str, Tensor]:
    """Compute output, gradients and running statistics, without the biases of convolutions: their gradient is zero."""
    output = run(encoder, signal)
    upstream = torch.randn(output.shape, generator=torch.Generator().manual_seed(1)).to(output)
    output.backward(upstream)
    biases = {f"{number}.bias" for number in (0, 5, 10)}
    made = {name: one.grad for name, one in encoder.named_parameters() if name not in biases and one.grad is not None}
    running = {name: one for name, one in encoder.named_buffers() if "running" in name}
    return {"output": output.detach(), **made, **running}


def errors(found: dict[str, Tensor], exact: dict[str, Tensor]) -> dict[str, float]:
    """Find the largest error of outputs, running statistics and gradients, as a share of the largest value."""
    worst = {name: float((found[name] - one).abs().max() / one.abs().max()) for name, one in exact.items()}
    groups = {"output": ("output",), "running": ("running",), "gradients": ("weight", "bias")}
    return {
        group: float(f"{max(value for name, value in worst.items() if any(part in name for part in parts)):.2g}")
        for group, parts in groups.items()
    }


# --------------------------------------------------------------------------------------------------------------- times


def whole_encoder(signal: Tensor) -> dict[str, list[float]]:
    """Time each way with a network of its own, dropped before the next is made: they share no memory."""
    ways: dict[str, Callable[[], Step]] = {
        "plain": lambda: plain_step(signal),
        "plain, captured": lambda: capture(plain_step(signal)),
        "compiled": lambda: plain_step(signal, torch.compile),
        "compiled, captured": lambda: capture(plain_step(signal, torch.compile)),
        "fused": lambda: fused_step(signal),
        "fused, captured": lambda: capture(fused_step(signal)),
    }
    found = {}
    for name, make in ways.items():
        found[name] = microseconds(make())
        print(name, found[name], flush=True)
    return found


def plain_step(signal: Tensor, wrap: Callable[[nn.Module], Any] = lambda module: module) -> Step:
    """Make a step of torch's modules. wrap: compiles the encoder, or leaves it."""
    encoder = build(signal)
    run = wrap(encoder)
    return step_of(encoder, lambda: run(signal))


def step_of(module: nn.Module, forward: Step, *inputs: Tensor) -> Step:
    """Make a step of forward and backward. Gradients of the parameters and of `inputs` are written, not added."""
    upstream: list[Tensor] = []

    def step() -> Tensor:
        for leaf in (*module.parameters(), *inputs):
            leaf.grad = None
        output = forward()
        if not upstream:
            upstream.append(torch.randn_like(output))
        output.backward(upstream[0])
        return output

    return step


def fused_step(signal: Tensor) -> Step:
    """Make a step of the fused kernels."""
    encoder = build(signal)
    assert can_fuse(signal, [layer.weight for layer in layers_of(encoder)], STRIDE)
    return step_of(encoder, lambda: run_fused(encoder, signal, DROPOUT))


def microseconds(step: Step) -> list[float]:
    """Measure the median and the quartiles of the time of a step."""
    for _ in range(10):
        step()
    times = [1000 * milliseconds(step, STEPS, on_gpu=True) for _ in range(SAMPLES)]
    low, middle, high = statistics.quantiles(times, n=4)
    return [round(value, 1) for value in (middle, low, high)]


def single_blocks(signal: Tensor) -> dict[str, dict[str, list[float]]]:
    """Time each block by itself, captured, on features of its size. The input of the first needs no gradient."""
    encoder, features, found = build(signal), signal, {}
    for number, layer in enumerate(layers_of(encoder)):
        plain = encoder[5 * number : 5 * number + 5]
        given = features.detach().clone().requires_grad_(number > 0)
        ways: dict[str, Step] = {
            "plain, captured": partial(plain, given),
            "fused, captured": partial(fused_blocks, given, [layer], stride=STRIDE, dropout=DROPOUT),
        }
        found[f"block {number + 1}"] = {
            name: microseconds(capture(step_of(plain, run, given))) for name, run in ways.items()
        }
        with torch.no_grad():
            features = plain(features)
    return found


# --------------------------------------------------------------------------------------------------------------- sweep


def sweep(signal: Tensor, seconds: float) -> list[dict[str, object]]:
    """Time every setting of SWEEP that there is time for. Eight processes compile the kernels beforehand."""
    began = time.perf_counter()
    with ProcessPoolExecutor(8, mp_context=get_context("spawn")) as pool:
        ready = [pool.submit(compile_setting, setting, tuple(signal.shape)) for setting in SWEEP]
        problems = [one.exception() for one in ready]
    found: list[dict[str, object]] = []
    for setting, problem in zip(SWEEP, problems, strict=True):
        if problem is not None or time.perf_counter() - began > seconds:
            found.append({"setting": setting, "problem": repr(problem) if problem else "no time left"})
            continue
        before = use(setting)
        step = capture(fused_step(signal))
        found.append(
            {
                "setting": setting,
                "captured": microseconds(step),
                "errors": one_draw(signal[:FEW], run_fused),
                "kernels": kernel_times(step),
            }
        )
        print(json.dumps(found[-1]), flush=True)
        restore(before)
    return found


def compile_setting(setting: dict[str, object], shape: tuple[int, ...]) -> None:
    """Run one step, which leaves its kernels in triton's cache on disk."""
    use(setting)
    fused_step(torch.rand(shape, device="cuda"))()
    torch.cuda.synchronize()


def use(setting: dict[str, object]) -> dict[str, object]:
    """Change fused_geometry; returns what was there before."""
    before = {name: getattr(geometry, name) for name in setting}
    for name, value in setting.items():
        value = geometry.Tile(*value) if isinstance(value, tuple) else value
        table = before[name]
        setattr(geometry, name, dict.fromkeys(table, value) if isinstance(table, dict) else value)
    return before


def restore(before: dict[str, object]) -> None:
    """Put back what `use` changed."""
    for name, value in before.items():
        setattr(geometry, name, value)


if __name__ == "__main__":
    raise SystemExit(main())
