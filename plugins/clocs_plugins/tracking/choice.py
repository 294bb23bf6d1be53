"""Choose the trackers that the environment asks for."""

from __future__ import annotations

import os
from functools import cache
from typing import Protocol

from clocs_core import EpochDone, RunDone, RunStarted
from clocs_plugins.tracking.mlflow_runs import MlflowRuns
from clocs_plugins.tracking.wandb_runs import WandbRuns


class Runs(Protocol):
    """The functions of a tracker, one for each event of a run."""

    def begin(self, run: RunStarted) -> None:
        """Begin a run, or go on with it."""

    def add_epoch(self, run: RunStarted, epoch: EpochDone) -> None:
        """Add the numbers of an epoch."""

    def end(self, run: RunStarted, done: RunDone) -> None:
        """Add the scores, and end the run."""


def trackers() -> list[Runs]:
    """Return the trackers that are asked for, each made once."""
    chosen: list[Runs] = []
    if os.environ.get("WANDB_MODE") != "disabled" and {"WANDB_PROJECT", "WANDB_MODE"} & os.environ.keys():
        chosen.append(_wandb())
    if os.environ.get("MLFLOW_TRACKING_URI"):
        chosen.append(_mlflow())
    return chosen


@cache
def _wandb() -> WandbRuns:
    return WandbRuns()


@cache
def _mlflow() -> MlflowRuns:
    return MlflowRuns()
