"""Show a run in TensorBoard: losses and health by epoch; scores, pictures and embeddings at the end.

`tensorboard --logdir` on a folder of runs shows them side by side, and `clocs tensorboard` adds their evaluations.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from clocs_core import hookimpl

if TYPE_CHECKING:
    import click

    from clocs_core import EpochDone, RunDone, RunStarted


@hookimpl
def clocs_commands(cli: click.Group) -> None:
    """Add the command that shows evaluations."""
    from clocs_plugins.tensorboard.command import tensorboard_command

    cli.add_command(tensorboard_command)


@hookimpl
def clocs_run_started(run: RunStarted) -> None:
    """Begin an events file; a resumed run begins another one."""
    from clocs_plugins.tensorboard.writer import begin

    begin(run, time.time())


@hookimpl
def clocs_epoch_done(run: RunStarted, epoch: EpochDone) -> None:
    """Add the scalars of an epoch."""
    from clocs_plugins.tensorboard.writer import add_epoch

    add_epoch(run, epoch, time.time())


@hookimpl
def clocs_run_done(run: RunStarted, done: RunDone) -> None:
    """Add scores and pictures, and write the embeddings for the projector."""
    from clocs_plugins.tensorboard.writer import add_results

    add_results(run, done, time.time())
