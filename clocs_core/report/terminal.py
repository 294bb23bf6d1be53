"""A terminal that prints names as they are: no markup, no emoji codes, no control characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from clocs_core.report.visible import visible


class Terminal(Console):
    """A console of rich for texts that come from files. wide: columns of the output where it is no terminal."""

    def __init__(self, wide: int | None = None, **more: Any) -> None:
        super().__init__(markup=False, highlight=False, emoji=False, **more)
        if wide is not None and not self.is_terminal:
            self.width = wide

    def render_str(self, text: str, **more: Any) -> Text:
        """Render text, of cells and headings too, with control characters escaped."""
        return super().render_str(visible(text), **more)

    def print_table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table without lines."""
        table = Table(*headings, box=None)
        for row in rows:
            table.add_row(*row)
        self.print(table)
