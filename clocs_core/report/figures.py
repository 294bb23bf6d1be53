"""Draw the pictures of a report as PNG bytes. The same numbers give the same bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from clocs_core.artifacts.metrics import EpochRow
from clocs_core.contracts.events import EmbeddingMap, Picture
from clocs_core.contracts.scores import RANDOM, Score
from clocs_core.evaluation.distance_bins import PatientDistances
from clocs_core.report.sheet import (
    BLUE,
    GREEN,
    GREY,
    MARKERS,
    ORANGE,
    PALETTE,
    TEXT,
    VERMILION,
    label,
    legend,
    legend_beside,
    line,
    picture,
    printable,
    set_margins,
    sheet,
)
from clocs_core.report.tables import initial_weights, show_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

POINTS = 1500  # points of an embedding map: more only hide each other
PATIENTS = 12  # patients with their own colour


def loss_curves(rows: Sequence[EpochRow], best_epoch: int) -> Picture:
    """Draw training and validation loss by epoch, and mark the epoch whose weights were kept."""
    figure, (axes,) = sheet(1, 1, 7.2, 3.4)
    set_margins(figure, (axes,), left=0.7, bottom=0.5, top=0.1)
    epochs = [row.epoch for row in rows]
    line(axes, epochs, [row.train_loss for row in rows], BLUE, "training")
    line(axes, epochs, [row.validation_loss for row in rows], VERMILION, "validation", dashes=(4, 1.5))
    for row in rows:
        if row.epoch == best_epoch:
            axes.axvline(best_epoch, color=GREY, linewidth=0.8, linestyle=":", zorder=1)
            axes.plot([best_epoch], [row.validation_loss], "o", color=VERMILION, markersize=6, zorder=4)
    label(axes, "", "epoch", "loss")
    legend(axes)
    return picture(
        figure,
        "loss",
        "Loss",
        f"Training and validation loss by epoch. The dot marks epoch {best_epoch}, whose weights were kept.",
    )


def health_curves(rows: Sequence[EpochRow]) -> Picture:
    """Draw by epoch whether the validation embeddings stay spread out and separate patients."""
    figure, (rank, cosine, guess) = sheet(1, 3, 9.6, 3.1)
    set_margins(figure, (rank, cosine, guess), left=0.45, bottom=0.5, between=(0.5, 0))
    epochs = [row.epoch for row in rows]
    line(rank, epochs, [row.effective_rank for row in rows], BLUE, "")
    rank.set_ylim(bottom=0)
    label(rank, "Effective rank", "epoch", "")
    line(cosine, epochs, [row.same_patient for row in rows], BLUE, "same patient")
    line(cosine, epochs, [row.other_patient for row in rows], VERMILION, "other patients", dashes=(4, 1.5))
    label(cosine, "Mean cosine", "epoch", "")
    legend(cosine)
    line(guess, epochs, [row.loss_over_log_batch for row in rows], BLUE, "")
    guess.axhline(1.0, color=GREY, linewidth=0.8, linestyle=":")
    label(guess, "Loss / log(batch size)", "epoch", "")
    caption = (
        "Left: effective rank of the validation embeddings; near 1 they have collapsed. Middle: mean cosine within a "
        "patient and between patients; the gap says how well patients are told apart. Right: training loss divided by "
        "log(batch size), the loss of a random guess in one cross-entropy; a sum of several losses starts at several."
    )
    return picture(figure, "health", "Health of the embeddings", caption)


def score_bars(scores: Sequence[Score]) -> Picture:
    """Draw every score with its interval, the method beside its controls; a panel per metric and level."""
    panels = list(dict.fromkeys((score.metric, score.level) for score in scores))
    columns = min(len(panels), 2) or 1
    deepest = max((sum((s.metric, s.level) == panel for s in scores) for panel in panels), default=1)
    down = max(1, -(-len(panels) // columns))
    names = 0.3 + 0.065 * max((len(printable(_score_name(score))) for score in scores), default=0)  # of 8 points
    figure, grid = sheet(down, columns, (2.9 + names) * columns, (0.9 + 0.3 * deepest) * down)
    set_margins(figure, grid, left=names, bottom=0.35, right=0.55, between=(names + 0.55, 0.6))
    for axes, panel in zip(grid, panels, strict=False):
        _draw_scores(axes, [score for score in scores if (score.metric, score.level) == panel])
        label(axes, f"{panel[0]}, {panel[1]} level", "", "")
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    caption = "Each score with its 95 % interval by bootstrap over patients. F is the fraction of labels used."
    return picture(figure, "scores", "Scores beside their controls", caption)


def embedding_map(embeddings: EmbeddingMap, by: Literal["label", "patient"]) -> Picture:
    """Draw embeddings of the scored part on their first two principal components, coloured by label or by patient."""
    figure, (axes,) = sheet(1, 1, 7.2, 4.6)
    usable = np.flatnonzero(np.isfinite(embeddings.embedding).all(axis=1))
    kept = usable[_evenly(len(usable), POINTS)]
    plane, share = _principal_plane(embeddings.embedding[kept].astype(np.float64))
    names = embeddings.label if by == "label" else embeddings.patient
    shown = _scatter(axes, plane, [names[row] for row in kept], by)
    beside = 0.5 + 0.08 * max((len(printable(name, 24)) for name in shown), default=0)  # the legend, of 8 points
    set_margins(figure, (axes,), left=0.7, bottom=0.5, right=beside, top=0.1)
    label(axes, "", f"first component ({share[0]:.0%})", f"second component ({share[1]:.0%})")
    count = f"{len(kept):,} of {len(names):,} embeddings" if len(kept) < len(names) else f"{len(kept):,} points"
    caption = f"Embeddings of the {embeddings.part} part by {by}, on their first two principal components ({count}). "
    caption += "Distances in two dimensions are a hint, not a score."
    return picture(figure, f"embedding-by-{by}", f"Embeddings by {by}", caption)


def distance_histogram(distances: PatientDistances) -> Picture:
    """Draw the distances of two embeddings of one patient, and of two of different patients."""
    figure, (axes,) = sheet(1, 1, 7.2, 3.2)
    set_margins(figure, (axes,), left=0.7, bottom=0.5, top=0.1)
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
    label(axes, "", "Euclidean distance", "share of pairs")
    axes.set_ylim(bottom=0)
    legend(axes)
    caption = (
        "Pairwise distances of embeddings, within a patient and between patients, with their means dotted. Two of one "
        f"patient are nearer to each other than two of different ones with probability {distances.separation:.3f}; "
        "0.5 is chance."
    )
    return picture(figure, "distances", "Distances within and between patients", caption)


def _draw_scores(axes: Axes, scores: Sequence[Score]) -> None:
    """Draw a dot and a whisker per score, the first on top, its number at the right."""
    names = [_score_name(score) for score in scores]
    for place, score in enumerate(scores):
        colour = _colour_of(score)
        if np.isfinite([score.low, score.high]).all():
            axes.plot([score.low, score.high], [place, place], color=colour, linewidth=2.4, solid_capstyle="butt")
        axes.plot([score.value], [place], "o", color=colour, markersize=6)
        beside = axes.get_yaxis_transform()  # x in axes, y in data
        axes.text(1.02, place, show_number(score.value), transform=beside, fontsize=8, va="center", **TEXT)
    axes.set_ylim(len(scores) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), [printable(name) for name in names], parse_math=False)
    axes.grid(visible=False, axis="y")


def _score_name(score: Score) -> str:
    name = initial_weights(score)
    return name if score.is_prior else f"{name}, {score.protocol}, F = {score.label_fraction:g}"


def _colour_of(score: Score) -> str:
    if score.is_prior:
        return GREY
    return {RANDOM: ORANGE, "supervised": GREEN}.get(score.init, BLUE)


def _evenly(count: int, most: int) -> NDArray[np.intp]:
    """Choose at most `most` of `count` positions, evenly spaced and deterministic."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.intp)) if count else np.arange(0)


def _principal_plane(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], tuple[float, float]]:
    """Project points (n, dim) on their first two principal components; return also each one's share of the variance."""
    plane = np.zeros((len(points), 2))
    if len(points) < 2:
        return plane, (0.0, 0.0)
    centred = points - points.mean(axis=0)
    # The eigenvectors of dim x dim products take a tenth of the time of an SVD, and half of the digits suffice to draw.
    variance, directions = np.linalg.eigh(centred.T @ centred)  # rising
    variance, directions = variance[::-1].clip(min=0.0), directions[:, ::-1]
    # Nothing fixes the signs, so the largest weight of each component is made positive.
    signs = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(len(directions))])
    axes = min(2, len(variance))
    plane[:, :axes] = centred @ (directions * signs)[:, :axes]
    share = np.append(variance, [0.0, 0.0]) / max(float(variance.sum()), np.finfo(float).tiny)
    return plane, (float(share[0]), float(share[1]))


def _scatter(axes: Axes, plane: NDArray[np.float64], names: Sequence[str], by: str) -> list[str]:
    """Draw points, with a colour and a shape for each of the most frequent names, grey for the rest.

    Returns the names in the legend.
    """
    most = PATIENTS if by == "patient" else len(PALETTE) * 2
    counted = sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))
    frequent = sorted(name for name, _ in counted[:most])  # sorted, so that a class has the same colour in every run
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
    legend_beside(axes, shown)
    return shown
