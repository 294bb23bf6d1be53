"""Draw figures of a grid, which have more than those of a run: both formats, named rows, and a legend at the side."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clocs_core.report.sheet import FONT, INK, TEXT, to_png, to_svg

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


def legend_at_side(axes: Axes) -> None:
    """Put a legend at the right of the axes, where many names have room."""
    words = {"family": FONT, "size": 7}
    axes.legend(frameon=False, prop=words, labelcolor=INK, loc="upper left", bbox_to_anchor=(1.01, 1.0))


def finish(figure: Figure, name: str, title: str, caption: str) -> Drawing:
    """Write the figure in both formats, without a date: the same numbers give the same files."""
    return Drawing(name, title, caption, to_png(figure), to_svg(figure, name))
