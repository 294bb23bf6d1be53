"""Show progress in a notebook: one line with a bar that is updated, and the messages above it."""

from __future__ import annotations

import sys
import time
from html import escape
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any

from clocs_core.progress import Display, describe_losses, describe_training

if TYPE_CHECKING:
    from clocs_core.contracts.events import EpochDone

_EVERY = 0.2  # seconds between two updates of the line: a notebook redraws it each time


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    found = None if shell is None else shell.get_ipython()
    return found is not None and hasattr(found, "kernel")


class NotebookDisplay(Display):
    """A display below a cell. Use as a context manager."""

    def __init__(self) -> None:
        shown: Any = import_module("IPython.display")  # every notebook has it, so it is not a dependency
        self.html = shown.HTML
        self.lines: list[str] = []
        self.runs: dict[str, str] = {}  # the lines of several runs
        self.now, self.bar, self.drawn = "", "", 0.0
        self.handle = shown.display(self.html(""), display_id=True)

    def __enter__(self) -> NotebookDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.now = self.bar = ""
        self.runs.clear()
        self._draw(always=True)

    def say(self, text: str) -> None:
        """Add a line of information."""
        self.lines.append(escape(text))
        self._draw(always=True)

    def warn(self, text: str) -> None:
        """Add a warning."""
        self.lines.append(f"<b>Warning:</b> {escape(text)}")
        self._draw(always=True)

    def stage(self, text: str) -> None:
        """Begin a new stage."""
        self.runs.clear()
        self.now, self.bar = text, ""
        self._draw(always=True)

    def tick(self, done: int, total: int) -> None:
        """Move the bar of the stage."""
        if not self.bar or "epoch" not in self.bar:
            self._draw(f"<progress value='{done}' max='{total}'></progress> {done:,} / {total:,}")

    def epoch(self, done: EpochDone, epochs: int) -> None:
        """Move the bar of epochs, and show the losses beside it."""
        losses = describe_losses(done)
        self.bar = f"<progress value='{done.epoch}' max='{epochs}'></progress> epoch {done.epoch} of {epochs}: {losses}"
        if done.last:
            self.lines.append(describe_training(done))
        self._draw(always=done.last)

    def line(self, name: str, doing: str, done: int = 0, total: int | None = None, detail: str = "") -> None:
        """Move the bar of one of several runs."""
        self.now = self.bar = ""
        self.runs[name] = escape(f"{name}: {doing}")
        if total is not None:
            self.runs[name] += f" <progress value='{done}' max='{total}'></progress> {done:,} / {total:,} {detail}"
        self._draw(always=total is None)

    def _draw(self, bar: str = "", always: bool = False) -> None:
        if not always and time.monotonic() - self.drawn < _EVERY:
            return
        self.drawn = time.monotonic()
        last = f"{escape(self.now)} {bar or self.bar}".strip()
        self.handle.update(self.html("<br>".join([*self.lines, *self.runs.values(), *([last] if last else [])])))
