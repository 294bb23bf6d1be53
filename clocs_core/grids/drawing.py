"""Draw figures of a grid, which have more than those of a run: both formats, named rows, and a legend at the side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap

import attrs
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clocs_core.report.sheet import FONT, INK, TEXT, printable, to_png, to_svg

UNBROKEN = "\N{NO-BREAK SPACE}"
SMALL = {**TEXT, "fontsize": 8}
"""How words beside a figure look."""


@attrs.frozen
class Drawing:
    """A figure with its words, in both formats."""

    name: str
    title: str
    caption: str
    png: bytes
    svg: bytes


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Give the axes a row for each name, the first at the top."""
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), list(names), parse_math=False)
    axes.grid(visible=False, axis="y")


def title_in_lines(axes: Axes, title: str, letters: int) -> None:
    """Write a title over its axes, in lines of at most so many letters: a longer one would run over its neighbour.

    A line ends at a comma, where the part before it fits.
    """
    whole = ", ".join(part.replace(" ", UNBROKEN) if len(part) < letters else part for part in title.split(", "))
    lines = [printable(line) for line in wrap(whole, letters)]
    axes.set_title("\n".join(lines), loc="left", fontsize=9, pad=5, **TEXT)


def legend_below(figure: Figure, drawn: Mapping[str, Artist]) -> None:
    """Put one legend below all axes. drawn: what each name looks like."""
    longest = max(len(name) for name in drawn)
    columns = max(1, min(len(drawn), int(figure.get_figwidth() / (0.6 + 0.07 * longest))))
    words = {"family": FONT, "size": 8}
    found = figure.legend(
        list(drawn.values()),
        [str(place) for place in range(len(drawn))],  # matplotlib omits a name that begins with '_'
        loc="outside lower left",
        ncols=columns,
        frameon=False,
        prop=words,
        labelcolor=INK,
    )
    for text, name in zip(found.get_texts(), drawn, strict=True):
        text.set(text=printable(name, 40), parse_math=False)


def legend_at_side(axes: Axes) -> None:
    """Put a legend at the right of the axes, where many names have room."""
    words = {"family": FONT, "size": 7}
    axes.legend(frameon=False, prop=words, labelcolor=INK, loc="upper left", bbox_to_anchor=(1.01, 1.0))


def finish(figure: Figure, name: str, title: str, caption: str) -> Drawing:
    """Write the figure in both formats, without a date: the same numbers give the same files."""
    return Drawing(name, title, caption, to_png(figure), to_svg(figure, name))
