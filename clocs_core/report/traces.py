"""Draw signals on ruled paper, one scale per row: instances as the encoder reads them, and nearest recordings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import MaxNLocator

from clocs_core.contracts.events import Picture
from clocs_core.report.sheet import GREY, TEXT, label, picture, printable, set_margins, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

PAPER, TRACE = "#f6d5d0", "#1a1a2e"  # colours of the grid and of the signal


def traces(
    signal: NDArray[np.floating],
    titles: Sequence[str],
    views: Sequence[str],
    sampling_rate: float | None = None,
    views_in_all: int | None = None,
) -> Picture:
    """Draw a few instances as the encoder reads them: a row each, a column per view, one scale per row.

    signal is (instance, view, sample); titles name patient, record and label of an instance; views name the columns.
    sampling_rate: in Hz, for an axis in seconds; None counts samples.
    """
    figure = _draw_traces(signal, titles, views, sampling_rate)
    columns = signal.shape[1]
    caption = "Instances as the encoder reads them: a row per instance, a column per view, the same scale along a row."
    if views_in_all is not None and views_in_all > columns:
        caption += f" The first {columns} of {views_in_all} views."
    return picture(figure, "traces", "Signals and their views", caption)


def neighbour_traces(
    signal: NDArray[np.floating],
    titles: Sequence[str],
    channels: Sequence[str],
    sampling_rate: float | None,
    unit: str,
    channels_in_all: int,
) -> Picture:
    """Draw a recording and those nearest to it, one below the other: a row each, a column per channel.

    signal is (recording, channel, sample), the query first, NaN where a channel cannot be used. One title per row.
    """
    figure = _draw_traces(signal, titles, channels, sampling_rate)
    caption = f"The query on top, its neighbours below it, the nearest first; in {unit or 'their own unit'}, the same "
    caption += "scale along a row."
    if channels_in_all > signal.shape[1]:
        caption += f" The first {signal.shape[1]} of {channels_in_all} channels."
    return picture(figure, "neighbours", "Nearest recordings", caption)


def _draw_traces(
    signal: NDArray[np.floating], titles: Sequence[str], names: Sequence[str], sampling_rate: float | None
) -> Figure:
    """Draw signals (row, column, sample) on ruled paper: a title per row, a name per column."""
    rows, columns, samples = signal.shape
    figure, grid = sheet(rows, columns, max(3.4 * columns, 6.4), 0.5 + 1.25 * rows)
    set_margins(figure, grid, left=0.65, bottom=0.5, between=(0.15, 0.3))
    time = np.arange(samples) / (sampling_rate or 1)
    for row in range(rows):
        for column in range(columns):
            axes = grid[row * columns + column]
            axes.plot(time, signal[row, column], color=TRACE, linewidth=0.6)
            _rule_paper(axes, signal[row], float(time[-1]) if samples else 1.0)
            last = row == rows - 1
            label(axes, "" if column else titles[row], ("seconds" if sampling_rate else "sample") if last else "", "")
            axes.tick_params(labelbottom=last, labelleft=column == 0)
            name = axes.text(0.99, 0.97, printable(names[column]), transform=axes.transAxes, fontsize=7, **TEXT)
            name.set(color=GREY, horizontalalignment="right", verticalalignment="top")
    return figure


def _rule_paper(axes: Axes, row: NDArray[np.floating], end: float) -> None:
    """Draw a grid like ECG paper, with one vertical scale for all views of a row."""
    axes.grid(color=PAPER, linewidth=0.6)
    axes.spines[:].set(visible=True, color=PAPER)
    axes.tick_params(length=0)
    axes.set_xlim(0, end or 1.0)
    finite = row[np.isfinite(row)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    room = 0.08 * (high - low) or 0.5
    axes.set_ylim(low - room, high + 2 * room)
    axes.yaxis.set_major_locator(MaxNLocator(4))
