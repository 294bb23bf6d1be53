"""Print lines. Names in them come from files that are not trusted, so control characters are shown escaped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import TextIOWrapper
from typing import TextIO

import click

from clocs_core.plugins.printing import printing_to_stderr
from clocs_core.report.visible import visible

_results: ContextVar[TextIO | None] = ContextVar("results", default=None)


def echo(text: str, err: bool = False, nl: bool = True, bold: bool | None = None) -> None:
    """Print a text to stdout, or to stderr with `err`, with a line break at the end unless `nl` is False."""
    click.secho(visible(text), file=None if err else _results.get(), err=err, nl=nl, bold=bold)


def show_all_characters(*streams: TextIO) -> None:
    """Let streams that cannot encode a character, such as µ in ASCII, show it escaped. Printing would fail half-way."""
    for stream in streams:
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def only_results_on_stdout() -> Iterator[None]:
    """Let `echo` alone print to stdout. What plugins print, such as at import, goes to stderr and spoils no JSON."""
    with printing_to_stderr() as stdout:
        before = _results.set(stdout)
        try:
            yield
        finally:
            _results.reset(before)
