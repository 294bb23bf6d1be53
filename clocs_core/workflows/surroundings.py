"""The inputs of a workflow beside its plan: plugins, listeners, a display, worker processes and a clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import attrs

from clocs_core.contracts.events import EpochDone, RunDone, RunStarted
from clocs_core.plugins.host import Host
from clocs_core.progress import Display


class Listener:
    """Follows one run from Python. Override what you need; a method that raises causes a warning, the run continues."""

    def run_started(self, run: RunStarted) -> None:
        """Called once, before the first epoch of this process."""

    def epoch_done(self, run: RunStarted, epoch: EpochDone) -> None:
        """Called after every epoch, when its metrics and checkpoint are on disk."""

    def run_done(self, run: RunStarted, done: RunDone) -> None:
        """Called once, last, when the report is written."""


@attrs.frozen(eq=False)
class Surroundings:
    """Plugins that listen, listeners of this run, the display, processes that read recordings, and a clock in seconds.

    announces: False for a run in memory, so that no plugin writes files.
    began: the moment, on this clock, at which the command began; None where nothing was imported for it.
    """

    host: Host
    show: Display = attrs.field(factory=Display)
    workers: int = 1
    clock: Callable[[], float] = time.monotonic
    listeners: Sequence[Listener] = ()
    announces: bool = True
    began: float | None = None

    def started(self, run: RunStarted) -> None:
        """Announce that training begins."""
        self._tell("run_started", run=run)

    def epoch(self, run: RunStarted, epoch: EpochDone) -> None:
        """Announce that an epoch is finished."""
        self._tell("epoch_done", run=run, epoch=epoch)

    def done(self, run: RunStarted, done: RunDone) -> None:
        """Announce that the run is finished."""
        self._tell("run_done", run=run, done=done)

    def _tell(self, event: str, **arguments: object) -> None:
        if self.announces:
            self.host.announce(f"clocs_{event}", self.show.warn, **arguments)
        for listener in self.listeners:
            try:
                getattr(listener, event)(**arguments)
            except (Exception, SystemExit) as problem:  # a listener may raise anything; training continues
                self.show.warn(f"{type(listener).__name__}.{event} failed: {type(problem).__name__}: {problem}")
