"""Draw a recording as clinicians read it: every channel on ruled paper, 25 mm/s and, for millivolts, 10 mm/mV."""

from __future__ import annotations

import io
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from clocs_core.contracts.records import Record
from clocs_core.contracts.units import MICROVOLTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

SECONDS = 10.0  # drawn of a recording: as much as fits on a sheet
ROW = 1.6  # height of a row in millivolts, or in spans of a channel that is not a voltage
DPI = 130  # dots per inch of a .png
POINTS, LINE = 9, 4.2  # size of the texts; height of a line of the title in mm
NARROWEST = 80  # mm: narrower paper has no room for a title
LONGEST = 600  # characters of a title
ENDINGS = (".png", ".svg", ".pdf")
PINK, RED, INK = "#f7d6d6", "#eeb0b0", "#1a1a1a"


def draw_recording(record: Record, title: str, seconds: float = SECONDS, ending: str = ".png", dpi: int = DPI) -> bytes:
    """Draw the first seconds of all channels, one below the other, on a grid of 0.2 s and 0.5 mV.

    ending: of the file, one of ENDINGS; the bytes are of its format. The same recording gives the same bytes.
    """
    from clocs_core.report import sheet

    figure = draw_paper(record, title, seconds, dpi)
    if ending == ".svg":
        return sheet.to_svg(figure, title)
    if ending == ".pdf":
        drawn = io.BytesIO()
        figure.savefig(drawn, format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})
        return drawn.getvalue()
    return sheet.to_png(figure, colours=32)  # enough, and a third of the bytes


def draw_paper(record: Record, title: str, seconds: float, dpi: int = DPI) -> Figure:
    """Draw the figure of `draw_recording`. The title has as many lines as the width of the paper asks for."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from clocs_core.report.sheet import TEXT, printable

    values = record.physical()
    shown = min(values.shape[1], max(1, int(seconds * record.sampling_rate)))
    rows = _rows(values[:, :shown], record.unit)
    # True to scale: 25 mm a second, 10 mm a millivolt, and a margin for the names.
    width = max(25 * max(shown / record.sampling_rate, 0.2) + 20, NARROWEST)
    height = 10 * ROW * (len(rows) + 1) + 10
    scale = "10 mm/mV" if record.unit in MICROVOLTS else f"each channel to its own span, in {record.unit or 'its unit'}"
    told = f"{printable(title, LONGEST)}   25 mm/s, {printable(scale)}, {record.sampling_rate:g} Hz"
    figure = Figure(dpi=dpi, layout="constrained")
    lines = _wrap(FigureCanvasAgg(figure), told, (width - 4) / 25.4 * figure.dpi)
    height += LINE * (len(lines) - 1)
    figure.set_size_inches(width / 25.4, height / 25.4)
    figure.suptitle("\n".join(lines), x=2 / width, ha="left", fontsize=POINTS, **TEXT)
    axes = figure.add_subplot(anchor="W")
    time = np.arange(shown) / record.sampling_rate
    for number, (name, row) in enumerate(zip(record.channels, rows, strict=True)):
        base = -ROW * number
        axes.plot(time, np.clip(row, -ROW, ROW) + base, color=INK, linewidth=0.7)
        axes.text(-0.01 * time[-1], base, printable(name, 12), ha="right", va="center", fontsize=POINTS, **TEXT)
    _rule(axes, float(time[-1]), len(rows))
    return figure


def _wrap(canvas: FigureCanvasAgg, text: str, width: float) -> list[str]:
    """Break text into lines of at most `width` pixels."""
    from matplotlib.font_manager import FontProperties

    from clocs_core.report.sheet import FONT

    font, renderer = FontProperties(family=FONT, size=POINTS), canvas.get_renderer()
    most = len(text)
    while True:
        lines = textwrap.wrap(text, most)
        widest = max(renderer.get_text_width_height_descent(line, font, False)[0] for line in lines)
        if widest <= width or most == 1:
            return lines
        most = max(1, min(most - 1, int(most * width / widest) + 1))


def _rows(values: NDArray[np.float64], unit: str) -> NDArray[np.float64]:
    """Centre every channel at zero, in millivolts or in units of its span."""
    with np.errstate(all="ignore"):
        centre = np.nan_to_num(np.nanmedian(np.where(np.isnan(values).all(1, keepdims=True), 0, values), axis=1))
        around = values - centre[:, None]
        if unit in MICROVOLTS:
            return np.asarray(around * (MICROVOLTS[unit] / MICROVOLTS["mV"]))
        span = np.nan_to_num(np.nanmax(np.abs(np.nan_to_num(around)), axis=1))
    return np.asarray(around / np.where(span > 0, span, 1.0)[:, None])


def _rule(axes: Axes, end: float, rows: int) -> None:
    low, high = -ROW * (rows - 1) - ROW, ROW
    axes.set_xlim(0, max(end, 0.2))
    axes.set_ylim(low, high)
    axes.set_xticks([])  # 300 ticks with their grid would take most of the time
    axes.set_yticks([])
    heights = np.arange(np.floor(low * 2) / 2, high, 0.5)
    axes.vlines(np.arange(0, end + 0.04, 0.04), low, high, colors=PINK, linewidth=0.3, zorder=0.5)
    axes.vlines(np.arange(0, end + 0.2, 0.2), low, high, colors=RED, linewidth=0.5, zorder=0.5)
    axes.hlines(heights, 0, max(end, 0.2), colors=RED, linewidth=0.5, zorder=0.5)
    axes.set_aspect(0.2 / 0.5)  # a large box is 0.2 s wide and 0.5 mV high, and square
    for side in axes.spines.values():
        side.set_visible(False)
