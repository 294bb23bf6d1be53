"""Save each epoch of a training, and tell listeners of it when it is saved.

On a CPU this is done at once. On a GPU a thread writes the row of metrics and the checkpoint while the GPU computes the
next epoch, and listeners are told of an epoch when the next one has ended. Writing takes 10 ms, and a short epoch
takes hardly longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import attrs

from clocs_core.artifacts.training_log import TrainingLog, pack_log
from clocs_core.train.checkpoint import save_checkpoint, save_snapshot, take_snapshot
from clocs_core.turns import waiting

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from clocs_core.artifacts.run_keeper import RunKeeper
    from clocs_core.contracts.events import EpochDone, RunStarted
    from clocs_core.train.checkpoint import Held, Snapshot
    from clocs_core.train.learner import Learner
    from clocs_core.workflows.surroundings import Surroundings


@attrs.define(eq=False)
class EpochSaver:
    """Saves the epochs of one run. pool: a thread that writes rows and checkpoints; None to write them at once."""

    run: RunStarted
    keeper: RunKeeper
    around: Surroundings
    pool: ThreadPoolExecutor | None
    _writing: Future[None] | None = None
    _untold: EpochDone | None = None
    _held: Held | None = None
    _packed: list[dict[str, object]] = attrs.field(factory=list, init=False)  # rows of the log

    def hold(self, state: Held) -> None:
        """Keep a state for the next `save`: by then, the next epoch has changed the weights."""
        self._held = state

    def save(self, done: EpochDone, learner: Learner, log: TrainingLog) -> None:
        """Finish with the epoch before, then begin to save this one. log: with all epochs so far."""
        self.finish()
        if self.pool is not None and self._path is not None:
            state = take_snapshot(learner) if self._held is None else self._held.snapshot(learner)
            self._writing = self.pool.submit(self._write, state, log, self._path)
        else:
            self.keeper.keep_epoch(log.rows[-1])
            if self._path is not None:
                save_checkpoint(learner, self._path, pack_log(log, self._packed))
        self._untold, self._held = done, None
        if self.pool is None:
            self.finish()

    def finish(self) -> None:
        """Wait until the last epoch is on the disk, then tell listeners of it."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            with waiting():
                writing.result()
        if self._untold is not None:
            done, self._untold = self._untold, None
            self.around.epoch(self.run, done)
            self.keeper.tell_until(done.epoch)

    @property
    def _path(self) -> Path | None:
        """The checkpoint, if this process writes one."""
        return self.keeper.checkpoint if self.keeper.writes else None

    def _write(self, held: Snapshot, log: TrainingLog, path: Path) -> None:
        self.keeper.keep_epoch(log.rows[-1])
        save_snapshot(held, path, pack_log(log, self._packed))


@contextmanager
def saving(run: RunStarted, keeper: RunKeeper, around: Surroundings, device: torch.device) -> Iterator[EpochSaver]:
    """Give a saver for a training on `device`. At the end, also after an error, no checkpoint is half-written."""
    if device.type == "cpu":
        yield EpochSaver(run, keeper, around, None)
        return
    with ThreadPoolExecutor(1, "checkpoint") as pool:  # waits for its work when the block ends
        saver = EpochSaver(run, keeper, around, pool)
        yield saver
        saver.finish()
