"""Print the results of a command: scores, comparisons and notes."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from clocs_core.cli.wording import as_flags, flags_of
from clocs_core.contracts.scores import Comparison, Score


def print_summary(scores: Sequence[Score], comparisons: Sequence[Comparison], notes: Sequence[str]) -> None:
    """Print a row for each classifier and level, with the interval of the first metric; then comparisons and notes."""
    from rich.console import Console
    from rich.table import Table

    from clocs_core.report.tables import comparison_sentence, wide_score_rows

    console = Console(width=None if os.isatty(1) else 120)
    flags = flags_of(click.get_current_context().command)
    if scores:
        headings, rows = wide_score_rows(scores)
        table = Table(*headings, box=None)
        for row in rows:
            table.add_row(*row)
        console.print(table)
    for compared in comparisons:
        if compared.metric == scores[0].metric:
            console.print(comparison_sentence(compared), highlight=False, markup=False)
    for note in notes:
        console.print(as_flags(note, flags), highlight=False, markup=False)
