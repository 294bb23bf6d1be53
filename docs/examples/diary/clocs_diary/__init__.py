"""A tracker with options: it writes a line of JSON after every few epochs, and the scores at the end.

`clocs run --plugin cmsc --dataset demo -o diary.file=diary.jsonl -o diary.every=10`
"""

from __future__ import annotations

import json
from pathlib import Path

import attrs

from clocs_core import EpochDone, EvaluationDone, Listener, RunDone, RunStarted, RunStopped, Tracker, hookimpl, option

CLOCS_API = "1.2"


@attrs.frozen
class DiaryOptions:
    """Where the diary is, and how often something is written."""

    file: Path | None = option(None, "File to append to; none: write nothing.")
    every: int = option(1, "Epochs from one line to the next.", check=(lambda n: n > 0, "be positive"))


class Diary(Listener):
    """Appends lines to a file. An exception here costs the user a warning, and never the run."""

    def __init__(self, options: DiaryOptions) -> None:
        self.options = options

    def run_started(self, run: RunStarted) -> None:
        """Write the method and the data set."""
        self._write(event="started", method=run.method, dataset=run.dataset, first_epoch=run.first_epoch)

    def epoch_done(self, _run: RunStarted, epoch: EpochDone) -> None:
        """Write the losses."""
        if epoch.epoch % self.options.every == 0 or epoch.last:
            self._write(event="epoch", epoch=epoch.epoch, train=epoch.train_loss, validation=epoch.validation_loss)

    def run_stopped(self, _run: RunStarted, stopped: RunStopped) -> None:
        """Write why a run ended early."""
        self._write(event="stopped", reason=stopped.reason, problem=stopped.problem)

    def run_done(self, _run: RunStarted, done: RunDone) -> None:
        """Write the scores, those of the controls among them."""
        scores = {f"{one.protocol} {one.init} {one.metric} {one.level}": one.value for one in done.scores}
        self._write(event="done", best_epoch=done.best_epoch, scores=scores)

    def evaluation_done(self, done: EvaluationDone) -> None:
        """Write the scores of an evaluation."""
        self._write(event="evaluated", protocol=done.protocol, scores=len(done.scores))

    def _write(self, **facts: object) -> None:
        if self.options.file is not None:
            with open(self.options.file, "a", encoding="utf-8") as file:
                file.write(json.dumps(facts) + "\n")


@hookimpl
def clocs_listeners() -> list[Tracker]:
    """Offer the tracker."""
    summary = "Writes a line of JSON after every few epochs."
    return [Tracker(name="diary", summary=summary, options=DiaryOptions, listen=Diary)]
