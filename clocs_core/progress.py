"""How a workflow reports its progress. The console and a notebook are two displays; core knows neither."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from clocs_core.errors import ClocsWarning

if TYPE_CHECKING:
    from clocs_core.contracts.events import EpochDone

Tick: TypeAlias = Callable[[int, int], None]
"""tick(done, total): `done` of `total` items of the present stage are finished."""


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


@contextmanager
def collect_warnings(warn: Callable[[str], None] | None = None) -> Iterator[list[str]]:
    """Collect every ClocsWarning raised inside, each once, and show it by `warn`, without a line of source.

    Without `warn` they are passed on to whoever collects outside. Other warnings are passed on unchanged.
    """
    collected: list[str] = []
    before = warnings.showwarning

    def show(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, *more: object, **named: object
    ) -> None:
        ours = issubclass(category, ClocsWarning)
        if ours and str(message) in collected:
            return
        if ours:
            collected.append(str(message))
        if ours and warn is not None:
            warn(str(message))
        else:
            before(message, category, filename, lineno, *more, **named)  # type: ignore[arg-type]

    warnings.showwarning = show
    try:
        yield collected
    finally:
        warnings.showwarning = before
