"""Time an evaluation of 71 any-of classes on 17,000 x 512 simulated features: classifiers, scores and intervals.

    python benchmarks/linear_solver.py --device cuda --out benchmarks/results/linear_solver.json

Features are correlated and labels as rare as those of PTB-XL. The first round warms up and is not counted; of the
others, the medians count, with quartiles beside them.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from command_line import command_line

from clocs_core.contracts.records import Task
from clocs_core.evaluation.features import Features
from clocs_core.evaluation.linear import linear
from clocs_core.evaluation.scoring import Scoring, score_predictions
from clocs_core.grids.machine import describe_machine
from clocs_core.settings.sections import ScoringSettings
from clocs_plugins.classification import clocs_metrics


def main() -> int:
    """Measure, print and write the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=17_000)
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--classes", type=int, default=71)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    device = torch.device(given.device)
    found = {
        "command": command_line(__file__),
        "date": date.today().isoformat(),
        "machine": describe_machine() if device.type == "cpu" else torch.cuda.get_device_name(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("torch", "clocs")}},
        "threads": torch.get_num_threads(),
        "problem": f"{given.classes} any-of classes, {given.rows:,} x {given.features} features, 2,200 test rows",
        "seconds": measure((given.rows, given.features, given.classes), given.rounds, device),
    }
    print(json.dumps(found, indent=1))
    given.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def measure(size: tuple[int, int, int], rounds: int, device: torch.device) -> dict[str, dict[str, float]]:
    """Time classifiers and intervals in `rounds` rounds, after one that is not counted."""
    train, test, task = simulate(*size)
    scoring = Scoring(task, "simulated", tuple(clocs_metrics()), ScoringSettings(), 0, device)
    taken: dict[str, list[float]] = {"classifiers": [], "scores and intervals": [], "both": []}
    for _ in range(rounds + 1):
        fit, predicted = clock(lambda: linear(train, test, task, device))
        score, _ = clock(lambda rows=predicted: score_predictions({("linear", "a", 1.0): rows}, "b", scoring))  # type: ignore[misc]
        for name, seconds in zip(taken, (fit, score, fit + score), strict=True):
            taken[name].append(seconds)
    return {name: summarise(seconds[1:]) for name, seconds in taken.items()}


def simulate(rows: int, features: int, classes: int) -> tuple[Features, Features, Task]:
    """Draw correlated features and labels that depend on them, for training and for 2,200 test rows of 4 a patient."""
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(features, features)) * np.geomspace(1, 0.01, features)
    weights = rng.normal(size=(features, classes)) * 2 / np.sqrt(features)
    parts = []
    for n in (rows, 2200):
        x = rng.normal(size=(n, features))
        at = x @ weights + np.linspace(0, -6, classes)
        label = (rng.random(at.shape) < 1 / (1 + np.exp(-at))).astype(np.int64)
        number = np.arange(n)
        parts.append(Features((x @ mixing).astype(np.float32), label, number // 4, number))
    return parts[0], parts[1], Task("statements", classes=tuple(f"c{i}" for i in range(classes)), kind="any_of")


def clock(work: Callable[[], object]) -> tuple[float, object]:
    """Return how long some work takes, in s, and its result. Results lie on the CPU, so that the GPU is done."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def summarise(seconds: list[float]) -> dict[str, float]:
    """Return the median and the quartiles, in s."""
    low, middle, high = statistics.quantiles(seconds, n=4) if len(seconds) > 1 else seconds * 3
    return {"median": round(middle, 3), "lower quartile": round(low, 3), "upper quartile": round(high, 3)}


if __name__ == "__main__":
    raise SystemExit(main())
