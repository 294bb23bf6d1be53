"""The sections of a page: sentences, notes, tables, pictures and text, as HTML that is escaped."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import attrs
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from clocs_core.contracts.events import Picture


@attrs.frozen(kw_only=True)
class Table:
    """A table. classes: the CSS classes of cells, by row and column, such as `above-text`; the others have none."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    classes: Mapping[tuple[int, int], str] = attrs.field(factory=dict)
    caption: str = ""


@attrs.frozen(kw_only=True)
class Section:
    """A section of a page, in this order: sentences, notes, tables, pictures, text as it is."""

    name: str
    title: str
    sentences: Sequence[str] = ()
    notes: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    text: str = ""
    outcome: str = ""  # of the summary: its colour


def render_section(section: Section) -> Markup:
    """Return a section as HTML. Every name in it is escaped, since names come from files that are not trusted."""
    return Markup(_template().render(section=section))


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"css_width": css_width, "data_uri": data_uri}
    return environment.from_string(files("clocs_core.report").joinpath("section.html.jinja").read_text("utf-8"))


def data_uri(png: bytes) -> str:
    """Return a picture as an address that holds it."""
    return "data:image/png;base64," + b64encode(png).decode("ascii")


def css_width(png: bytes) -> int:
    """Return the width of a picture in CSS pixels: two for three dots at 144 dpi. Bytes 16 to 20 have its width."""
    return int.from_bytes(png[16:20], "big") * 2 // 3
