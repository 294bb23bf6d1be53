"""Keep runs in Weights & Biases; with WANDB_MODE=offline, in the run folder, to be sent by `wandb sync`."""

from __future__ import annotations

from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs

from clocs_core import EpochDone, RunDone, RunStarted, Unavailable
from clocs_plugins.tracking.numbers import epoch_of, scores_of, settings_of


@attrs.define(eq=False)
class WandbRuns:
    """The runs of this process, by folder."""

    _open: dict[Path, Any] = attrs.field(factory=dict)

    def begin(self, run: RunStarted) -> None:
        """Begin a run, or go on with it: its id follows from its folder."""
        library = _library()
        self._open[run.folder] = library.init(
            name=run.folder.name,
            id=sha256(str(run.folder.resolve()).encode()).hexdigest()[:16],
            resume="allow",
            dir=str(run.folder),
            config=settings_of(run),
            reinit="create_new",
        )

    def add_epoch(self, run: RunStarted, epoch: EpochDone) -> None:
        """Add the numbers of an epoch."""
        if run.folder in self._open:
            self._open[run.folder].log(epoch_of(epoch), step=epoch.epoch)

    def end(self, run: RunStarted, done: RunDone) -> None:
        """Add the scores to the summary, and end the run."""
        held = self._open.pop(run.folder, None)
        if held is not None:
            held.summary.update({**scores_of(done), "best_epoch": done.best_epoch})
            held.finish()


def _library() -> Any:
    try:
        return import_module("wandb")
    except ImportError:
        raise Unavailable(
            "WANDB_PROJECT or WANDB_MODE is set, and wandb is not installed: `pip install 'clocs[wandb]'`."
        ) from None
