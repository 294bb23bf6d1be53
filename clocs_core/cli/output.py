"""Print lines. Names in them come from files that are not trusted, so control characters are shown escaped."""

from __future__ import annotations

import click

from clocs_core.report.visible import visible


def echo(text: str, err: bool = False, nl: bool = True, bold: bool | None = None) -> None:
    """Print a text to stdout, or to stderr with `err`, with a line break at the end unless `nl` is False."""
    click.secho(visible(text), err=err, nl=nl, bold=bold)
