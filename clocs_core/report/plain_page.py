"""Render sections as one HTML file that opens offline, without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from clocs_core.report.blocks import Section, render_section
from clocs_core.report.page import page_style


def render_sections(title: str, lead: str, facts: Mapping[str, str], sections: Sequence[Section]) -> str:
    """Return the page as text. Every name in it is escaped, since names come from files that are not trusted."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"block": render_section}
    template = environment.from_string(files("clocs_core.report").joinpath("plain.html.jinja").read_text("utf-8"))
    return template.render(style=page_style(), title=title, lead=lead, facts=facts, sections=sections)
