"""The nearest recordings as one HTML file that opens anywhere: no network, no script, the picture inside."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from clocs_core.extend.events import Picture

__all__ = ["render_neighbours"]


def render_neighbours(
    title: str, sentence: str, headings: Sequence[str], rows: Sequence[Sequence[str]], picture: Picture
) -> str:
    """The page as text. Every name in it is escaped: record ids come from files that anybody may have written."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files("clocs_core.report").joinpath("neighbours.html.jinja").read_text("utf-8"))
    uri = "data:image/png;base64," + b64encode(picture.png).decode("ascii")
    return template.render(title=title, sentence=sentence, headings=headings, rows=rows, picture=picture, uri=uri)
