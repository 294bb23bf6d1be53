"""Choose where a call from Python shows its progress: below the cell of a notebook, in the terminal, or nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from clocs_core.progress import Display
from clocs_core.report.notebook import NotebookDisplay, in_notebook


@contextmanager
def open_display(progress: bool) -> Iterator[Display]:
    """The display for this process; one that shows nothing where no progress is wanted."""
    if not progress:
        yield Display()
    elif in_notebook():
        with NotebookDisplay() as notebook:
            yield notebook
    else:
        from clocs_core.report.console import ConsoleDisplay

        with ConsoleDisplay() as console:
            yield console
