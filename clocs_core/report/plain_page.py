"""Render sections as one HTML file that opens offline, without scripts, and make the sections that pages share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clocs_core.contracts.scores import Comparison
from clocs_core.report.blocks import Section, Table
from clocs_core.report.page import COMPARISON_ORDER, page_style, page_template
from clocs_core.report.tables import COMPARISON_HEADINGS, comparison_rows, outcome, verdict

_READING = COMPARISON_ORDER.index(8)  # the column that says whether the interval contains 0


def render_sections(title: str, lead: str, facts: Mapping[str, str], sections: Sequence[Section]) -> str:
    """Return the page as text. Every name in it is escaped, since names come from files that are not trusted."""
    template = page_template("plain.html.jinja")
    return template.render(style=page_style(), title=title, lead=lead, facts=facts, sections=sections)


def summary_section(scores: Sequence[object], comparisons: Sequence[Comparison], notes: Sequence[str]) -> Section:
    """Return the section to read first: whether pre-training helped, and the notes."""
    said = verdict(scores, comparisons, notes)
    return Section(
        name="verdict",
        title="Summary",
        sentences=[said.headline, *([said.rest] if said.rest else [])],
        notes=notes,
        outcome=said.outcome,
    )


def comparison_table(title: str, comparisons: Sequence[Comparison]) -> Table:
    """Return a row for each difference; the colour says whether its interval lies above or below 0."""
    headings = tuple(COMPARISON_HEADINGS[place] for place in COMPARISON_ORDER)
    rows = [tuple(row[place] for place in COMPARISON_ORDER) for row in comparison_rows(tuple(comparisons))]
    colours = {(row, _READING): f"{outcome(one)}-text" for row, one in enumerate(comparisons)}
    return Table(title=title, headings=headings, rows=rows, classes=colours)
