"""Where a story tells how it is getting on. A console is one such place; core knows none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from clocs_core.extend.events import EpochDone

__all__ = ["Display", "TrainingDisplay"]


class Display(Protocol):
    """Lines, and how far the present stage has come."""

    def say(self, text: str) -> None:
        """A line that a person wants to read once."""

    def warn(self, text: str) -> None:
        """A line that a person must read."""

    def stage(self, text: str) -> None:
        """A new stage begins, which may take a while."""

    def tick(self, done: int, total: int) -> None:
        """The stage has come so far."""


class TrainingDisplay(Display, Protocol):
    """The same of a story in which something is trained."""

    def epoch(self, done: EpochDone, epochs: int) -> None:
        """An epoch of at most `epochs` is over."""
