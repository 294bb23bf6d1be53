"""The pictures of a report, as PNG bytes. The same numbers give the same bytes; nothing global is touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.ticker import MaxNLocator
from PIL import Image

from clocs_core.evaluate.patients import PatientDistances
from clocs_core.extend.events import EmbeddingMap, Picture
from clocs_core.report.document import EpochRow
from clocs_core.report.tables import initial_weights, show_number
from clocs_core.scores import Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = [
    "distance_histogram",
    "embedding_map",
    "health_curves",
    "loss_curves",
    "neighbour_traces",
    "score_bars",
    "traces",
]

DPI = 144
POINTS = 1500  # of an embedding map: more only hide each other
PATIENTS = 12  # that get a colour of their own
FONT = "DejaVu Sans"  # ships with matplotlib, so that a picture looks the same everywhere

# Okabe and Ito's palette, told apart by readers with any colour vision. Its yellow is too faint on white.
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
PALETTE = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY)
MARKERS = ("o", "^", "s")  # a second round of the palette comes with another shape
INK, GREY, RULE = "#222222", "#8a8a8a", "#e4e4e4"
TEXT: dict[str, Any] = {"color": INK, "fontfamily": FONT, "parse_math": False}  # a patient may be called "$x$"
PAPER, TRACE = "#f6d5d0", "#1a1a2e"  # the lines of ECG paper, and of the pen


def loss_curves(rows: Sequence[EpochRow], best_epoch: int) -> Picture:
    """Training and validation loss by epoch, the epoch whose weights were kept marked."""
    figure, (axes,) = _sheet(1, 1, 7.2, 3.4)
    epochs = [row.epoch for row in rows]
    _line(axes, epochs, [row.train_loss for row in rows], BLUE, "training")
    _line(axes, epochs, [row.validation_loss for row in rows], VERMILION, "validation", dashes=(4, 1.5))
    for row in rows:
        if row.epoch == best_epoch:
            axes.axvline(best_epoch, color=GREY, linewidth=0.8, linestyle=":", zorder=1)
            axes.plot([best_epoch], [row.validation_loss], "o", color=VERMILION, markersize=6, zorder=4)
    _label(axes, "", "epoch", "loss")
    _legend(axes)
    return _picture(
        figure,
        "loss",
        "Loss",
        f"Training and validation loss by epoch. The dot marks epoch {best_epoch}, whose weights were kept.",
    )


def health_curves(rows: Sequence[EpochRow]) -> Picture:
    """Whether the validation embeddings stay spread out and apart by patient, by epoch."""
    figure, (rank, cosine, guess) = _sheet(1, 3, 9.6, 3.1)
    epochs = [row.epoch for row in rows]
    _line(rank, epochs, [row.effective_rank for row in rows], BLUE, "")
    rank.set_ylim(bottom=0)
    _label(rank, "Effective rank", "epoch", "")
    _line(cosine, epochs, [row.same_patient for row in rows], BLUE, "same patient")
    _line(cosine, epochs, [row.other_patient for row in rows], VERMILION, "other patients", dashes=(4, 1.5))
    _label(cosine, "Mean cosine", "epoch", "")
    _legend(cosine)
    _line(guess, epochs, [row.loss_over_log_batch for row in rows], BLUE, "")
    guess.axhline(1.0, color=GREY, linewidth=0.8, linestyle=":")
    _label(guess, "Loss / log(batch size)", "epoch", "")
    caption = (
        "Left: effective rank of the validation embeddings; near 1 they have collapsed. Middle: mean cosine within a "
        "patient and between patients; the gap says how well patients are told apart. Right: training loss divided by "
        "log(batch size), which is what a guess costs in one cross-entropy; a loss that sums several starts at several."
    )
    return _picture(figure, "health", "Health of the embeddings", caption)


def score_bars(scores: Sequence[Score]) -> Picture:
    """Every score with its interval, the method beside its controls; a panel per metric and level."""
    panels = list(dict.fromkeys((score.metric, score.level) for score in scores))
    columns = min(len(panels), 2) or 1
    deepest = max((sum((s.metric, s.level) == panel for s in scores) for panel in panels), default=1)
    down = max(1, -(-len(panels) // columns))
    figure, grid = _sheet(down, columns, 4.6 * columns, (0.9 + 0.3 * deepest) * down)
    for axes, panel in zip(grid, panels, strict=False):
        _draw_scores(axes, [score for score in scores if (score.metric, score.level) == panel])
        _label(axes, f"{panel[0]}, {panel[1]} level", "", "")
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    caption = "Each score with its 95 % interval by bootstrap over patients. F is the fraction of labels used."
    return _picture(figure, "scores", "Scores beside their controls", caption)


def embedding_map(embeddings: EmbeddingMap, by: Literal["label", "patient"]) -> Picture:
    """The embeddings of the scored part on their first two principal components, coloured by label or by patient."""
    figure, (axes,) = _sheet(1, 1, 7.2, 4.6)
    usable = np.flatnonzero(np.isfinite(embeddings.embedding).all(axis=1))
    kept = usable[_evenly(len(usable), POINTS)]
    plane, share = _principal_plane(embeddings.embedding[kept].astype(np.float64))
    names = embeddings.label if by == "label" else embeddings.patient
    _scatter(axes, plane, [names[row] for row in kept], by)
    _label(axes, "", f"first component ({share[0]:.0%})", f"second component ({share[1]:.0%})")
    count = f"{len(kept):,} of {len(names):,} embeddings" if len(kept) < len(names) else f"{len(kept):,} points"
    caption = f"Embeddings of the {embeddings.part} part by {by}, on their first two principal components ({count}). "
    caption += "Distances in two dimensions are a hint, not a score."
    return _picture(figure, f"embedding-by-{by}", f"Embeddings by {by}", caption)


def distance_histogram(distances: PatientDistances) -> Picture:
    """How far apart two embeddings of one patient lie, and two of different patients."""
    figure, (axes,) = _sheet(1, 1, 7.2, 3.2)
    last = int(np.flatnonzero(distances.intra + distances.inter)[-1]) + 1
    step = max(1, last // 80)  # bins of a picture
    edges = distances.edges[: last + step : step]
    for counts, colour, name in (
        (distances.intra, BLUE, "same patient"),
        (distances.inter, VERMILION, "different patients"),
    ):
        share = np.add.reduceat(counts, np.arange(0, last, step)) / counts.sum()
        axes.stairs(share, edges[: len(share) + 1], fill=True, color=colour, alpha=0.35)
        axes.stairs(share, edges[: len(share) + 1], color=colour, linewidth=1.4, label=name)
    for mean, colour in ((distances.intra_mean, BLUE), (distances.inter_mean, VERMILION)):
        axes.axvline(mean, color=colour, linewidth=1, linestyle=":")
    _label(axes, "", "Euclidean distance", "share of pairs")
    axes.set_ylim(bottom=0)
    _legend(axes)
    caption = (
        "Pairwise distances of embeddings, within a patient and between patients, with their means dotted. Two of one "
        f"patient are nearer to each other than two of different ones with probability {distances.separation:.3f}; "
        "0.5 would say nothing about patients."
    )
    return _picture(figure, "distances", "Distances within and between patients", caption)


def traces(
    signal: NDArray[np.floating],
    titles: Sequence[str],
    views: Sequence[str],
    sampling_rate: float | None = None,
    views_in_all: int | None = None,
) -> Picture:
    """A few instances as the encoder sees them: a row each, a column per view, one scale per row.

    signal is (instance, view, sample); titles name patient, record and label of an instance; views name the columns.
    sampling_rate: in Hz, for an axis in seconds; None counts samples.
    """
    figure = _draw_traces(signal, titles, views, sampling_rate)
    columns = signal.shape[1]
    caption = "Instances as the encoder reads them: a row per instance, a column per view, the same scale along a row."
    if views_in_all is not None and views_in_all > columns:
        caption += f" The first {columns} of {views_in_all} views."
    return _picture(figure, "traces", "Signals and their views", caption)


def neighbour_traces(
    signal: NDArray[np.floating],
    titles: Sequence[str],
    channels: Sequence[str],
    sampling_rate: float | None,
    unit: str,
    channels_in_all: int,
) -> Picture:
    """A recording and those that are nearest to it, one below the other: a row each, a column per channel.

    signal is (recording, channel, sample), the query first, NaN where a channel cannot be used; titles say whose it is.
    """
    figure = _draw_traces(signal, titles, channels, sampling_rate)
    caption = f"The query on top, its neighbours below it, the nearest first; in {unit or 'their own unit'}, the same "
    caption += "scale along a row."
    if channels_in_all > signal.shape[1]:
        caption += f" The first {signal.shape[1]} of {channels_in_all} channels."
    return _picture(figure, "neighbours", "Nearest recordings", caption)


def _draw_traces(
    signal: NDArray[np.floating], titles: Sequence[str], names: Sequence[str], sampling_rate: float | None
) -> Figure:
    """Signals (row, column, sample) on ruled paper: a title per row, a name per column."""
    rows, columns, samples = signal.shape
    figure, grid = _sheet(rows, columns, max(3.4 * columns, 6.4), 0.5 + 1.25 * rows)
    time = np.arange(samples) / (sampling_rate or 1)
    for row in range(rows):
        for column in range(columns):
            axes = grid[row * columns + column]
            axes.plot(time, signal[row, column], color=TRACE, linewidth=0.6)
            _rule_paper(axes, signal[row], float(time[-1]) if samples else 1.0)
            last = row == rows - 1
            _label(axes, "" if column else titles[row], ("seconds" if sampling_rate else "sample") if last else "", "")
            axes.tick_params(labelbottom=last, labelleft=column == 0)
            name = axes.text(0.99, 0.97, _printable(names[column]), transform=axes.transAxes, fontsize=7, **TEXT)
            name.set(color=GREY, horizontalalignment="right", verticalalignment="top")
    return figure


def _sheet(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
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


def _line(
    axes: Axes, x: Sequence[int], y: Sequence[float], colour: str, name: str, dashes: tuple[float, ...] = ()
) -> None:
    marker = "o" if len(x) < 25 else ""  # one epoch alone would draw no line
    axes.plot(x, y, color=colour, linewidth=1.5, marker=marker, markersize=3, dashes=dashes, label=name)


def _label(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(_printable(title), loc="left", fontsize=9, pad=5, **TEXT)
    axes.set_xlabel(_printable(x), fontsize=8, **TEXT)
    axes.set_ylabel(_printable(y), fontsize=8, **TEXT)
    if x == "epoch":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _legend(axes: Axes) -> None:
    axes.legend(frameon=False, prop={"family": FONT, "size": 8}, labelcolor=INK)


def _draw_scores(axes: Axes, scores: Sequence[Score]) -> None:
    """A dot and a whisker per score, the first on top, its number at the right."""
    names = [_score_name(score) for score in scores]
    for place, score in enumerate(scores):
        colour = _colour_of(score)
        if np.isfinite([score.low, score.high]).all():
            axes.plot([score.low, score.high], [place, place], color=colour, linewidth=2.4, solid_capstyle="butt")
        axes.plot([score.value], [place], "o", color=colour, markersize=6)
        beside = axes.get_yaxis_transform()  # x in axes, y in data
        axes.text(1.02, place, show_number(score.value), transform=beside, fontsize=8, va="center", **TEXT)
    axes.set_ylim(len(scores) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), [_printable(name) for name in names], parse_math=False)
    axes.grid(visible=False, axis="y")


def _score_name(score: Score) -> str:
    name = initial_weights(score)
    return name if score.protocol == "prior" else f"{name}, {score.protocol}, F = {score.label_fraction:g}"


def _colour_of(score: Score) -> str:
    if score.protocol == "prior":
        return GREY
    return {"random": ORANGE, "supervised": GREEN}.get(score.init, BLUE)


def _evenly(count: int, most: int) -> NDArray[np.intp]:
    """At most `most` of `count` positions, evenly spaced: the same ones every time."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.intp)) if count else np.arange(0)


def _principal_plane(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], tuple[float, float]]:
    """Points (n, dim) on their first two principal components, and the share of the variance that each explains."""
    plane = np.zeros((len(points), 2))
    if len(points) < 2:
        return plane, (0.0, 0.0)
    left, singular, right = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    # An SVD leaves the signs open: the largest weight of each component is made positive.
    signs = np.sign(right[np.arange(len(right)), np.abs(right).argmax(axis=1)])
    axes = min(2, len(singular))
    plane[:, :axes] = (left * singular * signs)[:, :axes]
    variance = np.append(singular**2, [0.0, 0.0]) / max(float((singular**2).sum()), np.finfo(float).tiny)
    return plane, (float(variance[0]), float(variance[1]))


def _scatter(axes: Axes, plane: NDArray[np.float64], names: Sequence[str], by: str) -> None:
    """A colour and a shape for each of the most frequent names, grey for the rest."""
    most = PATIENTS if by == "patient" else len(PALETTE) * 2
    counted = sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))
    frequent = sorted(name for name, _ in counted[:most])  # by name: a class keeps its colour from run to run
    rest = np.array([name not in frequent for name in names], dtype=bool)
    shown: list[str] = []
    if rest.any():
        axes.plot(*plane[rest].T, "o", color="#c9c9c9", markersize=2.5, markeredgewidth=0)
        shown.append(f"{len(set(names)) - len(frequent):,} others")
    for place, name in enumerate(frequent):
        colour, marker = PALETTE[place % len(PALETTE)], MARKERS[place // len(PALETTE)]
        mine = np.array([other == name for other in names])
        axes.plot(*plane[mine].T, marker, color=colour, markersize=4, markeredgewidth=0, alpha=0.8)
        shown.append(name or f"no {by}")
    _legend_beside(axes, shown)


def _legend_beside(axes: Axes, names: Sequence[str]) -> None:
    """A legend outside the axes. Names are set afterwards: matplotlib would leave out one that begins with '_'."""
    legend = axes.legend(
        axes.get_lines(),
        [str(place) for place in range(len(names))],
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        frameon=False,
        labelcolor=INK,
        prop={"family": FONT, "size": 8},
    )
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set(text=_printable(name, 24), parse_math=False)


def _rule_paper(axes: Axes, row: NDArray[np.floating], end: float) -> None:
    """Rule the axes like ECG paper, with one vertical scale for all views of a row."""
    axes.grid(color=PAPER, linewidth=0.6)
    axes.spines[:].set(visible=True, color=PAPER)
    axes.tick_params(length=0)
    axes.set_xlim(0, end or 1.0)
    finite = row[np.isfinite(row)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    room = 0.08 * (high - low) or 0.5
    axes.set_ylim(low - room, high + 2 * room)
    axes.yaxis.set_major_locator(MaxNLocator(4))


def _printable(text: str, most: int = 90) -> str:
    """Text in one line that the font has glyphs for, cut to `most` characters."""
    line = "".join(letter if ord(letter) in _glyphs() else "?" for letter in " ".join(text.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


@cache
def _glyphs() -> frozenset[int]:
    return frozenset(get_font(findfont(FONT)).get_charmap())


def _picture(figure: Figure, name: str, title: str, caption: str) -> Picture:
    """The figure as a PNG of 128 colours, a third of the size of one with all; it holds no date and no version."""
    drawn, buffer = BytesIO(), BytesIO()
    canvas = FigureCanvasAgg(figure)
    figure.savefig(drawn, format="rgba")
    image = Image.frombytes("RGBA", canvas.get_width_height(), drawn.getvalue()).convert("RGB")
    image.quantize(128, dither=Image.Dither.NONE).save(buffer, format="png", optimize=True, dpi=(DPI, DPI))
    return Picture(name, title, caption, buffer.getvalue())
