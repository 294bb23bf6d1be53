"""The inputs of a workflow beside its plan: plugins, listeners, a display, worker processes and a clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import attrs

from clocs_core.contracts.events import (
    TOLD_AGAIN,
    EpochDone,
    EvaluationDone,
    Listener,
    RunDone,
    RunStarted,
    RunStopped,
)
from clocs_core.contracts.result_offers import Tracker
from clocs_core.contracts.returned import returned
from clocs_core.files import is_full_disk
from clocs_core.plan.data import Chosen
from clocs_core.plugins.host import Host, first_line
from clocs_core.progress import Display
from clocs_core.train.ranks import Group
from clocs_core.workflows.shared import SharedRecordings


@attrs.frozen(eq=False)
class Surroundings:
    """Plugins that listen, listeners of this run, the display, processes that read recordings, and a clock in seconds.

    announces: False for a run in memory, so that no plugin writes files.
    trackers: listeners of plugins, each with the name that warnings call it by.
    group: the processes that train together; None for one. Process 0 alone has a display, listeners and files.
    began: the moment, on this clock, at which the command began; None where nothing was imported for it.
    shared: recordings that were read already, for several runs in this process.
    """

    host: Host
    show: Display = attrs.field(factory=Display)
    workers: int = 1
    clock: Callable[[], float] = time.monotonic
    listeners: Sequence[Listener] = ()
    announces: bool = True
    began: float | None = None
    trackers: tuple[tuple[str, Listener], ...] = ()
    group: Group | None = None
    shared: SharedRecordings = attrs.field(factory=SharedRecordings)
    _running: list[RunStarted] = attrs.field(factory=list, init=False, repr=False)
    _failed: set[tuple[str, str]] = attrs.field(factory=set, init=False, repr=False)  # listener and event

    def tracked(self, chosen: Iterable[Chosen[Tracker]]) -> Surroundings:
        """Return surroundings with the listeners that plugins offer. One that cannot be made costs a warning."""
        made = []
        for one in chosen if self.announces else ():
            name = f"listener {one.offer.name!r} of {one.owner or 'a plugin'}"
            try:
                made.append((name, returned(one.offer.listen(one.options), Listener, one.offer, "listen")))
            except (Exception, SystemExit) as problem:  # code of plugins may raise anything
                self.show.warn(f"{name} cannot listen: {first_line(problem).rstrip('.')}")
        return attrs.evolve(self, trackers=tuple(made))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Announce a run that stops inside, by an error or an interruption, and let the error go on."""
        try:
            yield
        except BaseException as problem:
            interrupted = isinstance(problem, KeyboardInterrupt)
            told = "" if interrupted else f"{type(problem).__name__}: {problem}"
            for run in self._running:
                stopped = RunStopped("interrupted" if interrupted else "failed", told)
                self._tell("run_stopped", run=run, stopped=stopped)
            self._running.clear()
            raise

    def started(self, run: RunStarted) -> None:
        """Announce that training begins."""
        self._running[:] = [run]
        self._tell("run_started", run=run)

    def epoch(self, run: RunStarted, epoch: EpochDone) -> None:
        """Announce that an epoch is finished."""
        self._tell("epoch_done", run=run, epoch=epoch)

    def done(self, run: RunStarted, done: RunDone) -> None:
        """Announce that the run is finished."""
        self._running.clear()
        self._tell("run_done", run=run, done=done)

    def evaluated(self, done: EvaluationDone) -> None:
        """Announce that an evaluation is finished."""
        self._tell("evaluation_done", done=done)

    def _tell(self, event: str, **arguments: object) -> None:
        if self.announces:
            self.host.announce(f"clocs_{event}", self.show.warn, **arguments)
        for name, listener in (*self.trackers, *((type(one).__name__, one) for one in self.listeners)):
            try:
                if method := getattr(listener, event, None):  # an older listener lacks later events
                    method(*arguments.values())  # in the order of `Listener`: a subclass may name them otherwise
            except (Exception, SystemExit) as problem:  # a listener may raise anything; training continues
                if is_full_disk(problem) and event in TOLD_AGAIN:
                    raise
                if (name, event) not in self._failed:
                    self._failed.add((name, event))
                    self.show.warn(f"{name}.{event} failed: {type(problem).__name__}: {problem}")
