"""Print lines. Names in them come from files that are not trusted, so control characters are shown escaped."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from typing import TextIO

import click

from clocs_core.report.visible import visible

_results: ContextVar[TextIO | None] = ContextVar("results", default=None)


def echo(text: str, err: bool = False, nl: bool = True, bold: bool | None = None) -> None:
    """Print a text to stdout, or to stderr with `err`, with a line break at the end unless `nl` is False."""
    click.secho(visible(text), file=None if err else _results.get(), err=err, nl=nl, bold=bold)


@contextmanager
def only_results_on_stdout() -> Iterator[None]:
    """Let `echo` alone print to stdout. What plugins print, such as at import, goes to stderr and spoils no JSON."""
    before = _results.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _results.reset(before)
