"""Render sections of sentences, tables and settings as one HTML file that opens offline, without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from clocs_core.report.page import page_style, page_template


@attrs.frozen(kw_only=True)
class Table:
    """A table. classes: the CSS classes of cells, by row and column, such as `above-text`; the others have none."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    classes: Mapping[tuple[int, int], str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Section:
    """A section of a page, in this order: sentences, notes, tables, text as it is."""

    name: str
    title: str
    sentences: Sequence[str] = ()
    notes: Sequence[str] = ()
    tables: Sequence[Table] = ()
    text: str = ""
    outcome: str = ""  # of the summary: its colour


def render_sections(title: str, lead: str, facts: Mapping[str, str], sections: Sequence[Section]) -> str:
    """Return the page as text. Every name in it is escaped, since names come from files that are not trusted."""
    template = page_template("plain.html.jinja")
    return template.render(style=page_style(), title=title, lead=lead, facts=facts, sections=sections)
