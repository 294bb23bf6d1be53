"""Show how a grid gets on: one bar over all jobs with the time that is left; without a terminal, a line per job."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.progress import TimeRemainingColumn

from clocs_core.grids.notes import Note
from clocs_core.grids.pace import say_duration
from clocs_core.report.console import ConsoleDisplay

_OFTEN = 60.0  # seconds between two calls of `keep`


class ConsoleGrid(ConsoleDisplay):
    """The display of a run with a bar for jobs. The time left comes from jobs of the same kind, not from the bar.

    keep: called about once a minute while jobs run, to keep how the grid stands on its page.
    """

    def __init__(
        self, console: Console | None = None, quiet: bool = False, keep: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(console, quiet=quiet)
        self.keep, self.kept = keep, self.clock()  # the first time a minute after the start: short grids need none
        self.progress.columns = tuple(one for one in self.progress.columns if not isinstance(one, TimeRemainingColumn))
        self.bar = self.progress.add_task("grid", total=None, detail="")

    def advance(self, done: int, total: int, seconds_left: float | None, note: Note | None) -> None:
        """Show that so many jobs of `total` have ended."""
        left = f"about {say_duration(seconds_left)} left" if seconds_left is not None else "time left unknown"
        self.progress.update(self.bar, description="grid", completed=done, total=total, detail=left)
        if note is not None and note.error:
            self.say(f"failed: {note.name}: {note.error}")
        elif note is not None and not self.console.is_terminal:
            self.say(f"{done} of {total}: {note.name}, {say_duration(note.seconds)}; {left}")
        if total > done and self.clock() - self.kept > _OFTEN:
            self.keep()
            self.kept = self.clock()

    def tick(self, done: int, total: int) -> None:
        """Show that so many bootstraps of `total` have been made."""
        self.progress.update(self.bar, description="intervals", completed=done, total=total, detail="")
