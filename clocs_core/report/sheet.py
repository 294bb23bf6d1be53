"""Make the figure that pictures are drawn on, with its axes, colours and texts, and save it as a file.

The same numbers give the same bytes; no global setting of matplotlib is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.ticker import MaxNLocator
from PIL import Image

from clocs_core.contracts.events import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

DPI = 144
FONT = "DejaVu Sans"  # comes with matplotlib, so that a picture looks the same everywhere

# Okabe and Ito's palette, for readers with any colour vision, without its yellow, which is too faint on white.
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
PALETTE = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY)
MARKERS = ("o", "^", "s")  # the second round of the palette has another shape
INK, GREY, RULE = "#222222", "#8a8a8a", "#e4e4e4"
TEXT: dict[str, Any] = {"color": INK, "fontfamily": FONT, "parse_math": False}  # a patient may be called "$x$"


def sheet(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """Make a white sheet with its axes in reading order; width and height in inches."""
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white", layout="constrained")
    axes = [figure.add_subplot(rows, columns, place + 1) for place in range(rows * columns)]
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.spines[["left", "bottom"]].set_color(GREY)
        each.grid(color=RULE, linewidth=0.6)
        each.set_axisbelow(True)
        each.tick_params(labelsize=8, color=GREY, labelcolor=INK, labelfontfamily=FONT)
    return figure, axes


def set_margins(
    figure: Figure,
    axes: Sequence[Axes],
    left: float,
    bottom: float,
    right: float = 0.1,
    top: float = 0.3,
    between: tuple[float, float] = (0.0, 0.0),
) -> None:
    """Place the axes by given margins, in inches, instead of measured ones, which take half of the time of a picture.

    left, bottom: room for numbers and names of an axis. top: room for a title. between: the room between columns, and
    between rows.
    """
    grid = axes[0].get_subplotspec().get_gridspec()  # type: ignore[union-attr]
    width, height = figure.get_size_inches()
    each = (width - left - right - between[0] * (grid.ncols - 1)) / grid.ncols
    tall = (height - bottom - top - between[1] * (grid.nrows - 1)) / grid.nrows
    figure.set_layout_engine(None)
    figure.subplots_adjust(
        left=left / width,
        right=1 - right / width,
        bottom=bottom / height,
        top=1 - top / height,
        wspace=between[0] / each,
        hspace=between[1] / tall,
    )


def line(
    axes: Axes, x: Sequence[int], y: Sequence[float], colour: str, name: str, dashes: tuple[float, ...] = ()
) -> None:
    """Draw values (n,) by epoch (n,). name: text of the legend."""
    marker = "o" if len(x) < 25 else ""  # one epoch alone would draw no line
    axes.plot(x, y, color=colour, linewidth=1.5, marker=marker, markersize=3, dashes=dashes, label=name)


def label(axes: Axes, title: str, x: str, y: str) -> None:
    """Write a title and the names of both axes; whole numbers along epochs."""
    axes.set_title(printable(title), loc="left", fontsize=9, pad=5, **TEXT)
    axes.set_xlabel(printable(x), fontsize=8, **TEXT)
    axes.set_ylabel(printable(y), fontsize=8, **TEXT)
    if x == "epoch":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def legend(axes: Axes) -> None:
    """Draw a legend inside the axes."""
    words = axes.legend(frameon=False, prop={"family": FONT, "size": 8}, labelcolor=INK)
    for text in words.get_texts():
        text.set_parse_math(False)


def legend_beside(
    axes: Axes,
    names: Sequence[str],
    lines: Sequence[Line2D] | None = None,
    x: float = 1.0,
    columns: int = 1,
    most: int = 24,
) -> None:
    """Draw a legend outside the axes. Names are set afterwards: matplotlib omits one that begins with '_'.

    lines: those that are named, default: all of the axes. x: its left edge, in widths of the axes. most: letters of a
    name.
    """
    words = axes.legend(
        axes.get_lines() if lines is None else lines,
        [str(place) for place in range(len(names))],
        loc="upper left",
        bbox_to_anchor=(x, 1.0),
        ncols=columns,
        frameon=False,
        labelcolor=INK,
        prop={"family": FONT, "size": 8},
    )
    for text, name in zip(words.get_texts(), names, strict=True):
        text.set(text=printable(name, most), parse_math=False)


def printable(text: str, most: int = 90) -> str:
    """Return text in one line, with glyphs that the font has, cut to `most` characters."""
    shown = "".join(letter if ord(letter) in _glyphs() else "?" for letter in " ".join(text.split()))
    return shown if len(shown) <= most else shown[: most - 1] + "…"


@cache
def _glyphs() -> frozenset[int]:
    return frozenset(get_font(findfont(FONT)).get_charmap())


def picture(figure: Figure, name: str, title: str, caption: str) -> Picture:
    """Return the figure as a PNG with its name, title and caption."""
    return Picture(name, title, caption, to_png(figure))


def to_png(figure: Figure, colours: int = 128) -> bytes:
    """Return the figure as a PNG of few colours, a third of the size of full colour, without date and version."""
    buffer, canvas = BytesIO(), FigureCanvasAgg(figure)
    canvas.draw()  # savefig would draw everything twice, which takes half a second per picture
    image = Image.frombuffer("RGBA", canvas.get_width_height(), canvas.buffer_rgba()).convert("RGB")
    dots = figure.dpi, figure.dpi
    few = _quantise(image, colours)
    few.save(buffer, format="png", compress_level=6, dpi=dots)  # level 9: a tenth smaller, in ten times the time
    return buffer.getvalue()


def _quantise(image: Image.Image, colours: int) -> Image.Image:
    """Return a picture on white with few colours, chosen from every 17th pixel: an eighth of the time of all pixels."""
    pixels = np.asarray(image).reshape(-1, 3)[::17]
    palette = Image.fromarray(pixels[None]).quantize(colours, dither=Image.Dither.NONE)
    few = image.quantize(palette=palette, dither=Image.Dither.NONE)
    corner, chosen = few.getpixel((0, 0)), few.getpalette()
    assert isinstance(corner, int)
    assert chosen is not None
    chosen[3 * corner : 3 * corner + 3] = [255] * 3  # it compares six bits of a colour, so white is 252 there
    few.putpalette(chosen)
    return few


def to_svg(figure: Figure, name: str) -> bytes:
    """Return the figure as an SVG without a date; ids inside are derived from its name, so they never change."""
    buffer = BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):  # restored afterwards
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
