"""How a workflow reports its progress. The console and a notebook are two displays; core knows neither."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from clocs_core.errors import ClocsWarning
from clocs_core.turns import heed_stop

if TYPE_CHECKING:
    from clocs_core.contracts.events import EpochDone

COMMAND: ContextVar[str] = ContextVar("command", default="")
"""The command line that this process runs, for reports; empty in Python."""

Tick: TypeAlias = Callable[[int, int], None]
"""tick(done, total): `done` of `total` items of the present stage are finished."""


@attrs.define(eq=False)
class Stopwatch:
    """Adds up how long the parts of a workflow take, by name."""

    clock: Callable[[], float]
    seconds: dict[str, float] = attrs.field(factory=dict)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add the time of the block, however it ends."""
        began = self.clock()
        try:
            yield
        finally:
            self.add(name, self.clock() - began)

    def add(self, name: str, seconds: float) -> None:
        """Add a time that was measured elsewhere."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds


class Display:
    """Shows messages and progress. This one shows nothing; the console and a notebook override its methods."""

    def say(self, text: str) -> None:
        """Show a line of information."""

    def warn(self, text: str) -> None:
        """Show a warning."""

    def stage(self, text: str) -> None:
        """Begin a new stage, which may take a while."""

    def tick(self, done: int, total: int) -> None:
        """Show that `done` of `total` items of the stage are finished."""

    def epoch(self, done: EpochDone, epochs: int) -> None:
        """Show that an epoch of at most `epochs` is over."""

    def line(self, name: str, doing: str, done: int = 0, total: int | None = None, detail: str = "") -> None:
        """Show how far one of several runs is, in a line of its own. Without a total, a stage of it begins."""


@attrs.define(eq=False)
class RunDisplay(Display):
    """The display of one of several runs: its messages begin with its name, and its progress is one line.

    said: what runs have said already, which no other run says again. A run that is asked to stop does so at a step.
    """

    shared: Display
    name: str
    said: set[str] = attrs.field(factory=set)
    doing: str = ""
    counts_epochs: bool = False

    def say(self, text: str) -> None:
        """Show a line of information behind the run's name."""
        if text not in self.said:
            self.said.add(text)
            self.shared.say(f"{self.name}: {text}")

    def warn(self, text: str) -> None:
        """Show a warning behind the run's name."""
        self.shared.warn(f"{self.name}: {text}")

    def stage(self, text: str) -> None:
        """Begin a new stage in the run's line."""
        self.doing, self.counts_epochs = text, False
        self.shared.line(self.name, text)

    def tick(self, done: int, total: int) -> None:
        """Show the items of the stage; while epochs are counted, their steps are not shown."""
        heed_stop()
        if not self.counts_epochs:
            self.shared.line(self.name, self.doing, done, total)

    def epoch(self, done: EpochDone, epochs: int) -> None:
        """Count epochs in the run's line, and say how the last one ended."""
        self.counts_epochs = True
        self.shared.line(self.name, self.doing, done.epoch, epochs, describe_losses(done))
        if done.last:
            self.say(describe_training(done))


def describe_losses(done: EpochDone) -> str:
    """Return the losses of an epoch, and the best epoch so far, for a line of progress."""
    score = "" if done.validation_score is None else f" (score {done.validation_score:.3f})"
    losses = f"loss {done.train_loss:.3f}, validation {done.validation_loss:.3f}{score}"
    return f"{losses}, best epoch {done.best_epoch}"


def describe_training(last: EpochDone) -> str:
    """Say how a training ended with its last epoch."""
    return f"trained for {last.epoch} epoch{'s' if last.epoch > 1 else ''}: {describe_losses(last)}"


@attrs.frozen(eq=False)
class _Collector:
    """Collects the warnings of one thread."""

    thread: int
    warn: Callable[[str], None] | None
    collected: list[str]


# warnings.showwarning is one for the whole process; runs in several threads share one replacement of it.
_collectors: list[_Collector] = []
_lock = threading.Lock()
_replaced: list[Any] = []  # what warnings.showwarning was before
_filters: list[warnings.catch_warnings[Any]] = []  # restores the filters that were there before


@contextmanager
def collect_warnings(warn: Callable[[str], None] | None = None) -> Iterator[list[str]]:
    """Collect every ClocsWarning that this thread raises inside, each once, and show it by `warn`, without source.

    Without `warn` they are passed on to whoever collects outside. Other warnings are passed on unchanged.
    """
    mine = _Collector(threading.get_ident(), warn, [])
    with _lock:
        with warnings.catch_warnings():  # makes Python forget which warnings it has shown: each run has its own
            pass
        if not _collectors:
            _replaced.append(warnings.showwarning)
            _filters.append(warnings.catch_warnings())
            _filters[0].__enter__()
            # Python shows the same warning once in a process; here each thread is to hear it. Other filters come first.
            warnings.simplefilter("always", ClocsWarning, append=True)
            warnings.showwarning = _show
        _collectors.append(mine)
    try:
        yield mine.collected
    finally:
        with _lock:
            _collectors.remove(mine)
            if not _collectors:
                _filters.pop().__exit__(None, None, None)
                warnings.showwarning = _replaced.pop()


def _show(message: Warning | str, category: type[Warning], *more: Any, **named: Any) -> None:
    """Hand a ClocsWarning to the collectors of this thread, the innermost first; pass on any other warning."""
    here = [one for one in reversed(_collectors) if one.thread == threading.get_ident()]
    if issubclass(category, ClocsWarning):
        for one in here:
            if str(message) in one.collected:
                return
            one.collected.append(str(message))
            if one.warn is not None:
                one.warn(str(message))
                return
    for before in _replaced:
        before(message, category, *more, **named)
