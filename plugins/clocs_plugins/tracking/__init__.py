"""Follow runs in Weights & Biases and in MLflow: settings, losses and health by epoch, scores at the end.

Each listens only where its own variables are set, since it may send what it hears to a server: `WANDB_PROJECT` or
`WANDB_MODE`, and `MLFLOW_TRACKING_URI`. Recordings, ids of patients and paths are never sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clocs_core import hookimpl

if TYPE_CHECKING:
    from clocs_core import EpochDone, RunDone, RunStarted


@hookimpl
def clocs_run_started(run: RunStarted) -> None:
    """Begin a run in each tracker that is asked for; a resumed run goes on in its own."""
    from clocs_plugins.tracking.choice import trackers

    for tracker in trackers():
        tracker.begin(run)


@hookimpl
def clocs_epoch_done(run: RunStarted, epoch: EpochDone) -> None:
    """Add the numbers of an epoch."""
    from clocs_plugins.tracking.choice import trackers

    for tracker in trackers():
        tracker.add_epoch(run, epoch)


@hookimpl
def clocs_run_done(run: RunStarted, done: RunDone) -> None:
    """Add the scores, and end the run."""
    from clocs_plugins.tracking.choice import trackers

    for tracker in trackers():
        tracker.end(run, done)
