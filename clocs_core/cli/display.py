"""Show the progress of a command on stderr, in the words of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import click

from clocs_core.cli.wording import as_flags, flags_of
from clocs_core.progress import collect_warnings

if TYPE_CHECKING:
    from clocs_core.report.console import ConsoleDisplay

Loudness: TypeAlias = Literal["quiet", "usual", "verbose"]
"""How much progress is shown: none, the usual, or a line for every epoch."""

LOUDNESS = "clocs.loudness"  # key of a context


@contextmanager
def console_display() -> Iterator[ConsoleDisplay]:
    """Show progress on stderr. Warnings of plugins are printed at the end, below all other messages."""
    from clocs_core.report.console import ConsoleDisplay  # imports rich, which `clocs --help` does not need

    context = click.get_current_context(silent=True)
    wording = partial(as_flags, flags=flags_of(None if context is None else context.command))
    loudness: Loudness = "usual" if context is None else context.meta.get(LOUDNESS, "usual")
    display = ConsoleDisplay(wording=wording, quiet=loudness == "quiet", verbose=loudness == "verbose")
    with collect_warnings(lambda text: None) as warnings, display as show:
        try:
            yield show
        except Exception as problem:
            if show.doing:
                problem.add_note(f"while {show.doing}")  # for an error that nobody foresaw
            raise
        finally:
            for text in warnings:
                show.warn(text)
