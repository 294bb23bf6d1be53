"""Keep runs in MLflow, at MLFLOW_TRACKING_URI: a server, or a file such as sqlite:///mlflow.db."""

from __future__ import annotations

import os
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs

from clocs_core import EpochDone, RunDone, RunStarted, Unavailable
from clocs_plugins.tracking.numbers import epoch_of, scores_of, settings_of

ID_FILE = ".mlflow-run"
"""File in the run folder with the id of its run in MLflow, so that a resumed run goes on in it."""

_LONGEST = 500  # letters of a parameter that every server takes
_AT_ONCE = 100  # parameters in a batch


@attrs.define(eq=False)
class MlflowRuns:
    """The runs of this process: the id of each, by folder."""

    _open: dict[Path, str] = attrs.field(factory=dict)

    def begin(self, run: RunStarted) -> None:
        """Begin a run, or go on with it."""
        client, kept = _client(), run.folder / ID_FILE
        if kept.exists():
            self._open[run.folder] = kept.read_text(encoding="utf-8").strip()
            return
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "clocs")
        found = client.get_experiment_by_name(name)
        experiment = client.create_experiment(name) if found is None else found.experiment_id
        begun = client.create_run(experiment, run_name=run.folder.name).info.run_id
        entities = import_module("mlflow.entities")
        held = [entities.Param(key, str(value)[:_LONGEST]) for key, value in settings_of(run).items()]
        for first in range(0, len(held), _AT_ONCE):
            client.log_batch(begun, params=held[first : first + _AT_ONCE])
        kept.write_text(begun, encoding="utf-8")
        self._open[run.folder] = begun

    def add_epoch(self, run: RunStarted, epoch: EpochDone) -> None:
        """Add the numbers of an epoch."""
        self._log(run, epoch_of(epoch), epoch.epoch)

    def end(self, run: RunStarted, done: RunDone) -> None:
        """Add the scores, and end the run."""
        self._log(run, {**scores_of(done), "best_epoch": float(done.best_epoch)}, done.epochs_run)
        if (begun := self._open.pop(run.folder, None)) is not None:
            _client().set_terminated(begun)

    def _log(self, run: RunStarted, values: dict[str, float], step: int) -> None:
        if run.folder not in self._open:
            return
        entities, now = import_module("mlflow.entities"), int(1000 * time.time())
        metrics = [entities.Metric(name, value, now, step) for name, value in values.items()]
        _client().log_batch(self._open[run.folder], metrics=metrics)


def _client() -> Any:
    try:
        return import_module("mlflow").MlflowClient()
    except ImportError:
        raise Unavailable(
            "MLFLOW_TRACKING_URI is set, and mlflow is not installed: `pip install 'clocs[mlflow]'`."
        ) from None
