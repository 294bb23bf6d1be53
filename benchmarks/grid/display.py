"""How a grid shows itself: one bar over all jobs with the time that is left; without a terminal, a line per job."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from grid.ledger import Entry
from grid.pace import say_duration

__all__ = ["ConsoleGrid"]


class ConsoleGrid:
    """Progress on stderr. Use as a context manager."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self.task = self.progress.add_task("grid", total=None, left="")

    def __enter__(self) -> ConsoleGrid:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def say(self, text: str) -> None:
        """A line that a person wants to read once."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def advance(self, done: int, total: int, seconds_left: float | None, entry: Entry | None) -> None:
        """So many jobs of `total` have ended."""
        left = f"about {say_duration(seconds_left)} left" if seconds_left is not None else "time left unknown"
        self.progress.update(self.task, description="grid", completed=done, total=total, left=left)
        if entry is None:
            return
        if entry.status == "failed":
            self.say(f"failed: {entry.name}: {entry.error}")
        elif not self.console.is_terminal:
            self.say(f"{done} of {total}: {entry.name}, {say_duration(entry.seconds)}; {left}")

    def tick(self, done: int, total: int) -> None:
        """So many bootstraps of `total` have been made."""
        self.progress.update(self.task, description="intervals", completed=done, total=total, left="")
