"""Show progress in a terminal: one bar with the time left; without a terminal, a line per stage."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from clocs_core.progress import Display
from clocs_core.report.terminal import Terminal
from clocs_core.report.visible import visible

if TYPE_CHECKING:
    from clocs_core.contracts.events import EpochDone


class ConsoleDisplay(Display):
    """A display on stderr, so that a command's output can be piped. Use as a context manager.

    wording: changes a message before it is shown; for example, turns names of arguments into flags.
    """

    def __init__(self, console: Console | None = None, wording: Callable[[str], str] = str) -> None:
        self.console = console = console or Terminal(stderr=True)
        self.wording = wording
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[detail]}", markup=False),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self.doing = ""  # the present stage
        self.task: TaskID | None = None
        self.epochs: TaskID | None = None

    def __enter__(self) -> ConsoleDisplay:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def say(self, text: str) -> None:
        """Print a line of information."""
        self.console.print(visible(self.wording(text)), highlight=False, markup=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        """Print a warning."""
        shown = f"Warning: {visible(self.wording(text))}"
        self.console.print(shown, style="yellow", highlight=False, markup=False, soft_wrap=True)

    def stage(self, text: str) -> None:
        """Begin a stage with a new bar."""
        for old in (self.task, self.epochs):
            if old is not None:
                self.progress.remove_task(old)
        self.epochs, self.doing = None, text
        self.task = self.progress.add_task(visible(text), total=None, detail="")
        if not self.console.is_terminal:
            self.say(f"{text} …")

    def tick(self, done: int, total: int) -> None:
        """Move the stage's bar."""
        if self.task is not None:
            self.progress.update(self.task, completed=done, total=total)

    def epoch(self, done: EpochDone, epochs: int) -> None:
        """Move the bar of epochs, and show the losses beside it."""
        score = "" if done.validation_score is None else f" (score {done.validation_score:.3f})"
        losses = f"loss {done.train_loss:.3f}, validation {done.validation_loss:.3f}{score}"
        detail = f"{losses}, best epoch {done.best_epoch}"
        if self.epochs is None:
            self.epochs = self.progress.add_task("epochs", total=epochs, detail=detail)
        self.progress.update(self.epochs, completed=done.epoch, total=epochs, detail=detail)
        if done.last:
            self.say(f"trained for {done.epoch} epoch{'s' if done.epoch > 1 else ''}: {detail}")
