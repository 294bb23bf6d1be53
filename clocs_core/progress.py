"""How a workflow reports its progress. The console and a notebook are two displays; core knows neither."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from clocs_core.errors import ClocsWarning

if TYPE_CHECKING:
    from clocs_core.contracts.events import EpochDone

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
            warnings.showwarning = _show
        _collectors.append(mine)
    try:
        yield mine.collected
    finally:
        with _lock:
            _collectors.remove(mine)
            if not _collectors:
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
