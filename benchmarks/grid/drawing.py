"""What all figures of a grid share: the sheet, its words, and how it is written."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

import attrs
import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from clocs_core.report.figures import DPI, FONT, GREY, INK, RULE, TEXT

__all__ = ["SMALL", "Drawing", "finish", "label", "legend", "legend_beside", "name_rows", "sheet"]

SMALL = {**TEXT, "fontsize": 8}
"""The dress of words beside a figure."""


@attrs.frozen
class Drawing:
    """A figure with its words, in both formats."""

    name: str
    title: str
    caption: str
    png: bytes
    svg: bytes


def sheet(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A white sheet with its axes in reading order; width and height in inches."""
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white", layout="constrained")
    axes = [figure.add_subplot(rows, columns, place + 1) for place in range(rows * columns)]
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.spines[["left", "bottom"]].set_color(GREY)
        each.grid(color=RULE, linewidth=0.6)
        each.set_axisbelow(True)
        each.tick_params(labelsize=8, color=GREY, labelcolor=INK, labelfontfamily=FONT)
    return figure, axes


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), list(names), parse_math=False)
    axes.grid(visible=False, axis="y")


def label(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, loc="left", fontsize=9, pad=5, **TEXT)
    axes.set_xlabel(x, **SMALL)
    axes.set_ylabel(y, **SMALL)


def legend(axes: Axes) -> None:
    axes.legend(frameon=False, prop={"family": FONT, "size": 7}, labelcolor=INK)


def legend_beside(axes: Axes) -> None:
    """A legend at the right of the axes, where many lines leave no room inside."""
    words = {"family": FONT, "size": 7}
    axes.legend(frameon=False, prop=words, labelcolor=INK, loc="upper left", bbox_to_anchor=(1.01, 1.0))


def finish(figure: Figure, name: str, title: str, caption: str) -> Drawing:
    """The figure in both formats; neither holds a date, so that the same numbers give the same files."""
    png, svg = BytesIO(), BytesIO()
    FigureCanvasAgg(figure)
    figure.savefig(png, format="png", metadata={"Software": None})
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(svg, format="svg", metadata={"Date": None})
    return Drawing(name, title, caption, png.getvalue(), svg.getvalue())
