"""The numbers and settings of a run, by names that every tracker takes."""

from __future__ import annotations

import math
import re

from clocs_core import EpochDone, RunDone, RunStarted

_OF_THE_MACHINE = {"root", "data_root", "patients", "labels"}  # paths of this machine are nobody else's business


def settings_of(run: RunStarted) -> dict[str, str | int | float | bool]:
    """Return the settings by "table.name", without paths."""
    found: dict[str, str | int | float | bool] = {"method": run.method, "dataset": run.dataset}
    for table, held in run.settings.items():
        for name, value in held.items():
            if not (table in ("data", "dataset") and name in _OF_THE_MACHINE):
                found[f"{table}.{name}"] = value if isinstance(value, (bool, int, float)) else str(value)
    return found


def epoch_of(epoch: EpochDone) -> dict[str, float]:
    """Return the scalars of an epoch and its seconds, without those that are not finite."""
    found = {**epoch.scalars(), "seconds": epoch.seconds}
    return {_taken(name): value for name, value in found.items() if math.isfinite(value)}


def scores_of(done: RunDone) -> dict[str, float]:
    """Return the scores by name of weights, protocol, metric, level and share of the labels.

    No name is a folder of another one: a store of files could not keep both.
    """
    found = {}
    for score in done.scores:
        weights = "class_prior" if score.protocol == "prior" else score.init
        name = f"score/{weights}/{score.protocol}/{score.metric}/{score.level}/labels_{score.label_fraction:g}"
        for end, value in (("", score.value), ("_low", score.low), ("_high", score.high)):
            if math.isfinite(value):
                found[name + end] = value
    return found


def _taken(name: str) -> str:
    """Replace the characters of a component's name that MLflow refuses: it would lose the whole epoch."""
    return re.sub(r"[^\w.\- /]", "_", name, flags=re.ASCII)
