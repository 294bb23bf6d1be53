"""Draw a recording as clinicians read it: every channel on ruled paper, 25 mm/s and, for millivolts, 10 mm/mV."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from clocs_core.contracts.records import Record
from clocs_core.contracts.units import MICROVOLTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

SECONDS = 10.0  # drawn of a recording: as much as fits on a sheet
ROW = 1.6  # height of a row in millivolts, or in spans of a channel that is not a voltage
PINK, RED, INK = "#f7d6d6", "#eeb0b0", "#1a1a1a"


def draw_recording(record: Record, title: str, seconds: float = SECONDS) -> bytes:
    """Draw a PNG of the first seconds of all channels, one below the other, on a grid of 0.2 s and 0.5 mV."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    from clocs_core.report.sheet import TEXT, printable

    values = record.physical()
    shown = min(values.shape[1], max(1, int(seconds * record.sampling_rate)))
    rows = _rows(values[:, :shown], record.unit)
    # True to scale: 25 mm a second, 10 mm a millivolt, and a margin for the names.
    width, height = 25 * max(shown / record.sampling_rate, 0.2), 10 * ROW * (len(rows) + 1)
    figure = Figure(figsize=((width + 20) / 25.4, (height + 10) / 25.4), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    time = np.arange(shown) / record.sampling_rate
    for number, (name, row) in enumerate(zip(record.channels, rows, strict=True)):
        base = -ROW * number
        axes.plot(time, np.clip(row, -ROW, ROW) + base, color=INK, linewidth=0.7)
        axes.text(-0.01 * time[-1], base, printable(name, 12), ha="right", va="center", fontsize=9, **TEXT)
    _rule(axes, float(time[-1]), len(rows))
    voltage = record.unit in MICROVOLTS
    scale = "10 mm/mV" if voltage else f"each channel to its own span, in {record.unit or 'its own unit'}"
    told = f"{printable(title)}   25 mm/s, {printable(scale)}, {record.sampling_rate:g} Hz"
    axes.set_title(told, fontsize=9, loc="left", **TEXT)
    drawn, target = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", metadata={"Software": ""})
    with Image.open(drawn) as whole:  # 32 colours are enough, and take a third of the bytes
        whole.convert("RGB").quantize(32).save(target, format="png", optimize=True)
    return target.getvalue()


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
    axes.set_xticks(np.arange(0, end + 0.2, 0.2))
    axes.set_yticks(np.arange(np.floor(low * 2) / 2, high, 0.5))
    axes.set_xticks(np.arange(0, end + 0.04, 0.04), minor=True)
    axes.grid(which="minor", axis="x", color=PINK, linewidth=0.3)
    axes.grid(which="major", color=RED, linewidth=0.5)
    axes.tick_params(which="both", length=0, labelleft=False, labelbottom=False)
    axes.set_axisbelow(True)
    axes.set_aspect(0.2 / 0.5)  # a large box is 0.2 s wide and 0.5 mV high, and square
    for side in axes.spines.values():
        side.set_visible(False)
