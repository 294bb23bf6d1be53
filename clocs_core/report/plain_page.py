"""Render sections as one HTML file that opens offline, without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clocs_core.report.blocks import Section
from clocs_core.report.page import page_style, page_template


def render_sections(title: str, lead: str, facts: Mapping[str, str], sections: Sequence[Section]) -> str:
    """Return the page as text. Every name in it is escaped, since names come from files that are not trusted."""
    template = page_template("plain.html.jinja")
    return template.render(style=page_style(), title=title, lead=lead, facts=facts, sections=sections)
