"""Show progress in a terminal: one bar with the time left; without a terminal, lines now and then."""

from __future__ import annotations

import time
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

from clocs_core.progress import Display, describe_losses, describe_training
from clocs_core.report.terminal import Terminal
from clocs_core.report.visible import visible

if TYPE_CHECKING:
    from clocs_core.contracts.events import EpochDone


_MINUTE = 60.0  # seconds without a line after which one is printed, where there is no terminal
_SOON = 1.0  # seconds between two lines, at least


class ConsoleDisplay(Display):
    """A display on stderr, so that a command's output can be piped. Use as a context manager.

    wording: changes a message before it is shown; for example, turns names of arguments into flags.
    quiet: show warnings alone. verbose: print a line for every epoch. clock: in seconds.

    Where there is no terminal, a line is printed for each stage, for each tenth of the epochs, and after a minute
    without one.
    """

    def __init__(
        self,
        console: Console | None = None,
        wording: Callable[[str], str] = str,
        quiet: bool = False,
        verbose: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.console = console = console or Terminal(stderr=True)
        self.terminal = console.is_terminal  # asked once: the answer takes up to a millisecond, and every step asks
        self.wording, self.quiet, self.verbose, self.clock = wording, quiet, verbose, clock
        self.began = self.told = clock()  # the stage; the last line
        self.seen = 0  # epochs of this stage
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[detail]}", markup=False),
            console=console,
            disable=quiet or not self.terminal,
            transient=True,
        )
        self.doing = ""  # the present stage
        self.task: TaskID | None = None
        self.epochs: TaskID | None = None
        self.lines: dict[str, TaskID] = {}  # of several runs

    def __enter__(self) -> ConsoleDisplay:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def say(self, text: str) -> None:
        """Print a line of information."""
        if self.quiet:
            return
        self.told = self.clock()
        self.console.print(visible(self.wording(text)), highlight=False, markup=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        """Print a warning."""
        shown = f"Warning: {visible(self.wording(text))}"
        self.console.print(shown, style="yellow", highlight=False, markup=False, soft_wrap=True)

    def stage(self, text: str) -> None:
        """Begin a stage with a new bar."""
        for old in (self.task, self.epochs, *self.lines.values()):
            if old is not None:
                self.progress.remove_task(old)
        self.lines.clear()
        self.epochs, self.doing = None, text
        self.began, self.seen = self.clock(), 0
        self.task = self.progress.add_task(visible(text), total=None, detail="")
        if not self.terminal:
            self.say(f"{text} …")

    def tick(self, done: int, total: int) -> None:
        """Move the stage's bar."""
        if self.task is not None:
            self.progress.update(self.task, completed=done, total=total)
        if not self.terminal and self.clock() - self.told >= _MINUTE:
            self.say(f"{self.doing}: {done:,} of {total:,}")

    def epoch(self, done: EpochDone, epochs: int) -> None:
        """Move the bar of epochs, and show the losses beside it."""
        detail = describe_losses(done)
        if self.epochs is None:
            self.epochs = self.progress.add_task("epochs", total=epochs, detail=detail)
        self.progress.update(self.epochs, completed=done.epoch, total=epochs, detail=detail)
        if done.last:
            self.say(describe_training(done))
        elif self.verbose or not self.terminal:
            self._say_epoch(done, epochs, detail)

    def line(self, name: str, doing: str, done: int = 0, total: int | None = None, detail: str = "") -> None:
        """Move the bar of one of several runs. Without a terminal, print a line where a stage of a run begins."""
        if self.task is not None:  # of the stage before the runs
            self.progress.remove_task(self.task)
            self.task = None
        if name not in self.lines:
            self.lines[name] = self.progress.add_task("", total=None, detail="")
        shown = visible(f"{name}: {doing}")
        self.progress.update(self.lines[name], description=shown, completed=done, total=total, detail=detail)
        if total is None:
            if not self.terminal:
                self.say(f"{name}: {doing} …")
        elif (self.verbose and detail) or (not self.terminal and self.clock() - self.told >= _MINUTE):
            self.say(f"{name}: {doing}, {done:,} of {total:,}{f': {detail}' if detail else ''}")

    def _say_epoch(self, done: EpochDone, epochs: int, detail: str) -> None:
        """Print a line for a tenth of the epochs, or where there was none for a minute; if verbose, for every epoch."""
        self.seen += 1
        now = self.clock()
        tenth = done.epoch * 10 // epochs > (done.epoch - 1) * 10 // epochs
        if not self.verbose and now - self.told < (_SOON if tenth else _MINUTE):
            return
        left = (now - self.began) / self.seen * (epochs - done.epoch)
        rate = done.instances / done.seconds if done.seconds > 0 else 0.0
        self.say(f"epoch {done.epoch} of {epochs}: {detail}; {rate:,.0f} instances/s, at most {_duration(left)} left")


def _duration(seconds: float) -> str:
    """Return a time for people: 42 s, 13 min, 2 h 05 min."""
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"
