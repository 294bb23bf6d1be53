"""Time the draws of a bootstrap, AUROC and average precision: all together in torch, and one call for each draw.

    python benchmarks/bootstrap.py --out benchmarks/results/bootstrap.json
    python benchmarks/bootstrap.py --before OLD/plugins/clocs_plugins/classification/draws.py --out ...

Both ways must agree within 1e-9, ties included, before anything counts. `--before` takes the functions `draw_auroc` and
`draw_auprc` of another version of clocs instead of the calls. With `--device cuda` the tensors lie on the GPU. Every
round runs both ways once, in turns; the median of the rounds' ratios counts. Times are of the processor on a CPU, where
both ways use one core, and of the clock on a GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import statistics
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from command_line import command_line

from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.result_offers import Metric
from clocs_core.evaluation.bootstrap import bootstrap
from clocs_core.grids.machine import describe_machine
from clocs_plugins.classification import clocs_metrics

SIZES = ((8000, 4), (2000, 71))  # rows and classes; more than ten classes are any-of


def main() -> int:
    """Measure all sizes and metrics, print and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--before", type=Path, help="draws.py of another version")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=1000)
    given = parser.parse_args()
    device = torch.device(given.device)
    metrics = {metric.name: metric for metric in clocs_metrics() if metric.score_tensors is not None}
    found = {
        "command": command_line(__file__),
        "date": date.today().isoformat(),
        "machine": describe_machine() if device.type == "cpu" else torch.cuda.get_device_name(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("torch", "clocs")}},
        "results": {
            f"{name}, {rows:,} rows, {classes} classes, {given.draws:,} draws": measure(
                metric, other(metric, given.before), simulate(rows, classes), given.draws, given.rounds, device
            )
            for rows, classes in SIZES
            for name, metric in metrics.items()
        },
    }
    print(json.dumps(found, indent=1))
    given.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def other(metric: Metric, before: Path | None) -> Metric:
    """Return the metric as it was: by the functions of another version, or by one call for each draw."""
    draws: Any = None
    if before is not None:
        spec = importlib.util.spec_from_file_location("before", before)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        draws = getattr(module, f"draw_{metric.name}")
    return Metric(name="before", summary="As it was.", score=metric.score, score_draws=draws)


def simulate(rows: int, classes: int) -> Predictions:
    """Draw predictions, four rows a patient; those of the first class have ties."""
    rng = np.random.default_rng(0)
    any_of = classes > 10
    label = rng.integers(0, classes, rows)
    truth = np.eye(classes, dtype=np.int64)[label]
    if any_of:
        truth = label = (rng.random((rows, classes)) < np.geomspace(0.4, 0.005, classes)).astype(np.int64)
    probability = rng.random((rows, classes)) + 0.3 * truth
    probability[:, 0] = probability[:, 0].round(2)
    number = np.arange(rows)
    return Predictions(probability, label, number // 4, number)


def measure(
    now: Metric, before: Metric, rows: Predictions, draws: int, rounds: int, device: torch.device
) -> dict[str, Any]:
    """Compare both ways, then time them in turns."""
    ways = {"before": lambda: bootstrap(rows, before, draws, 0), "now": lambda: bootstrap(rows, now, draws, 0, device)}
    apart = float(np.abs(ways["before"]().draws - ways["now"]().draws).max())
    assert apart < 1e-9
    now_is = time.perf_counter if device.type == "cuda" else time.process_time
    taken = [{name: clock(way, now_is) for name, way in ways.items()} for _ in range(rounds)]
    ratios = sorted(one["before"] / one["now"] for one in taken)
    return {
        "largest difference": apart,
        "seconds": {name: round(statistics.median(one[name] for one in taken), 3) for name in ways},
        "times quicker": {"median": round(statistics.median(ratios), 2), "from": round(ratios[0], 2)}
        | {"to": round(ratios[-1], 2)},
    }


def clock(work: Callable[[], object], now_is: Callable[[], float]) -> float:
    """Return how long some work takes, in s."""
    began = now_is()
    work()
    return now_is() - began


if __name__ == "__main__":
    raise SystemExit(main())
