"""Measure what the order of validation instances does to the validation loss, and to the epoch that it chooses.

    python benchmarks/validation_order.py --root $CLOCS_DATA/ptbxl --out benchmarks/results/validation_order.json

Validation batches follow the order of the recordings, so that the leads and frames of a patient share a batch. Here
each epoch of a training is validated twice, in that order and in a shuffled one, drawn once. Validation changes no
weight: one training serves both.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import torch

from clocs_core.artifacts.run_keeper import RunKeeper
from clocs_core.data.store import Instances
from clocs_core.plan.pretraining import resolve
from clocs_core.plugins.session import installed_session
from clocs_core.train.epochs import Training, plain_epoch
from clocs_core.train.learner import Learner
from clocs_core.train.validation import plain_validation
from clocs_core.workflows import training as stages
from clocs_core.workflows.surroundings import Surroundings

METHODS = ("cmsc", "cmlc", "simclr", "byol")


class BothOrders:
    """Runs epochs plainly, and validates each in two orders; the losses are kept, the first is that of the run."""

    def __init__(self) -> None:
        self.losses: list[tuple[float, float]] = []

    def __call__(self, learner: Learner, training: Training, epoch: int, tick: Any) -> torch.Tensor:
        """Run an epoch."""
        return plain_epoch(learner, training, epoch, tick)

    def validate(self, learner: Learner, training: Training, whole: bool) -> tuple[torch.Tensor, ...]:
        """Validate in the order of the recordings, and in a shuffled one."""
        found = plain_validation(learner, training, whole)
        order = torch.randperm(len(training.validation), generator=torch.Generator().manual_seed(0))
        mixed = Instances(training.validation.frame[order], training.validation.channel[order])
        shuffled = plain_validation(learner, attrs.evolve(training, validation=mixed), whole)
        self.losses.append((float(found[0]), float(shuffled[0])))
        return found


def measure(method: str, given: argparse.Namespace) -> dict[str, Any]:
    """Train a method, and return both losses of every epoch, with the epoch that each chooses."""
    session = installed_session()
    options = [f"epochs={given.epochs}", f"instances={given.instances}", "keep=last", "device=cpu", "channels=4"]
    options += [f"seed={given.seed}", *([f"root={given.root}"] if given.root else [])]
    with TemporaryDirectory() as folder:
        kept = str(Path(given.data_root or folder).absolute())
        tables: dict[str, dict[str, object]] = {"run": {"method": method, "dataset": given.dataset}}
        plan = resolve(session.catalogue, tables, [*options, f"data_root={kept}"])
        around = Surroundings(host=session.host)
        both = BothOrders()
        ready = attrs.evolve(stages.prepare_run(plan, around), run_epoch=both)
        stages.train_run(ready, RunKeeper(), around, False)
    ours, mixed = zip(*both.losses, strict=True)
    best = [1 + losses.index(min(losses)) for losses in (ours, mixed)]
    return {
        "instances": {part: len(ready.instances[part]) for part in ("train", "validation")},
        "in order": [round(loss, 4) for loss in ours],
        "shuffled": [round(loss, 4) for loss in mixed],
        "best epoch": {"in order": best[0], "shuffled": best[1]},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every method, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="ptbxl", help="the data set (default: PTB-XL)")
    parser.add_argument("--root", help="its folder")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("--data-root", help="where prepared frames are kept; default: nowhere")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--instances", type=int, default=2000, help="training instances of a method")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    began = time.monotonic()
    found = {method: measure(method, given) for method in METHODS}
    about = {"epochs": given.epochs, "training instances": given.instances, "seed": given.seed, "leads": 4}
    seconds = round(time.monotonic() - began)
    text = json.dumps({"about": about, "seconds": seconds, "device": "cpu", "methods": found}, indent=1)
    given.out.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
