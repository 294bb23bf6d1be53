"""Print the results of a command: scores, comparisons and notes."""

from __future__ import annotations

from collections.abc import Sequence

import click

from clocs_core.cli.wording import as_flags, flags_of
from clocs_core.contracts.scores import Comparison, Score


def print_summary(scores: Sequence[Score], comparisons: Sequence[Comparison], notes: Sequence[str]) -> None:
    """Print a row for each classifier and level, with the interval of the first metric; then comparisons and notes."""
    from clocs_core.report.tables import comparison_sentence, wide_score_rows
    from clocs_core.report.terminal import Terminal

    terminal = Terminal(120)
    flags = flags_of(click.get_current_context().command)
    if scores:
        terminal.print_table(*wide_score_rows(scores))
    for compared in comparisons:
        if compared.metric == scores[0].metric:
            terminal.print(comparison_sentence(compared))
    for note in notes:
        terminal.print(as_flags(note, flags))
