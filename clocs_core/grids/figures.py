"""Draw the figures of a grid: ours beside the paper's, by method, E, F, perturbation or patient distance."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten

import attrs
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from clocs_core.contracts.grids import Condition
from clocs_core.contracts.scores import RANDOM
from clocs_core.grids.distances import DistanceLine, say_encoders
from clocs_core.grids.drawing import SMALL, Drawing, finish, legend_below, name_rows, title_in_lines
from clocs_core.grids.panels import DIMENSION, LABELS, Axis, Panel, panels_of
from clocs_core.grids.presets import Preset
from clocs_core.grids.summary import Line, Summary
from clocs_core.report.sheet import BLUE, GREEN, GREY, MARKERS, ORANGE, PALETTE, RULE, label, legend, sheet


def draw_scores(preset: Preset, summary: Summary, metric: str) -> tuple[Drawing, ...]:
    """Draw the figures of a table; none where it has no score yet."""
    lines = [line for line in summary.lines if line.spread]
    if not lines:
        return ()
    if preset.figure == "perturbations":
        return (_perturbations(preset, lines, metric),)
    if preset.figure == "less":
        return (_less(preset, lines, metric),)
    axes = (DIMENSION, LABELS) if preset.figure == "dimension" else (LABELS, DIMENSION)
    varied = [axis for axis in axes if len({axis.of(line.condition) for line in lines}) > 1]
    return (_curves(preset, lines, metric, varied[0]) if varied else _dots(preset, lines, metric),)


def draw_distances(preset: Preset, lines: Sequence[DistanceLine]) -> tuple[Drawing, ...]:
    """Draw mean distances within and between patients, a pair of dots for every encoder."""
    if not lines:
        return ()
    figure, (axes,) = sheet(1, 1, 7.2, 1.0 + 0.32 * len(lines))
    for place, line in enumerate(lines):
        axes.plot([line.intra.mean, line.inter.mean], [place, place], color=RULE, linewidth=2.4, zorder=1)
        for found, colour in ((line.intra, BLUE), (line.inter, ORANGE)):
            axes.errorbar(found.mean, place, xerr=found.sd_seeds, color=colour, marker="o", markersize=6, capsize=2)
        beside = axes.get_yaxis_transform()  # x in axes, y in data
        axes.text(1.02, place, f"{line.separation.mean:.3f}", transform=beside, va="center", **SMALL)
    name_rows(axes, say_encoders(lines))
    axes.plot([], [], "o", color=BLUE, label="within a patient")
    axes.plot([], [], "o", color=ORANGE, label="between patients")
    legend(axes)
    label(axes, "", "mean Euclidean distance", "")
    caption = (
        "Mean distances of embeddings of validation patients, with the sd over seeds. At the right: the probability "
        "that two of one patient are nearer to each other than two of different ones."
    )
    return (finish(figure, preset.name, preset.title, caption),)


def _dots(preset: Preset, lines: Sequence[Line], metric: str) -> Drawing:
    """Draw a panel per place, a row per method: ours with its sd, the paper's beside it."""
    panels = panels_of(lines)
    deepest = max(len(panel.lines) for panel in panels)
    figure, grid = _arrange(panels, columns=3, width=3.4, height=0.9 + 0.3 * deepest)
    for axes, panel in zip(grid, panels, strict=True):
        for place, line in enumerate(panel.lines):
            _dot(axes, line, place)
        name_rows(axes, [shorten(line.condition.row, 40, placeholder=" …") for line in panel.lines])
        label(axes, "", metric, "")
        title_in_lines(axes, panel.title, letters=30)
    caption = "Filled: ours, mean over seeds with its sd. Open: the paper's, with its sd, where it has a number."
    return finish(figure, preset.name, preset.title, caption)


def _dot(axes: Axes, line: Line, place: int) -> None:
    assert line.spread  # lines without a score were left out
    colour = ORANGE if line.condition.method == RANDOM else BLUE
    axes.errorbar(line.spread.mean, place - 0.12, xerr=line.spread.sd_seeds, color=colour, marker="o", markersize=5)
    if line.printed:
        paper = line.printed
        axes.errorbar(paper.mean, place + 0.18, xerr=paper.sd, color=GREY, marker="D", markersize=4, mfc="white")


def _curves(preset: Preset, lines: Sequence[Line], metric: str, axis: Axis) -> Drawing:
    """Draw a panel per place, a line per method over one axis; the paper's is dashed."""
    figure, _, _ = _curve_panels(lines, metric, axis)
    caption = "Ours: solid, mean over seeds with its sd. The paper's: dashed, where it has numbers."
    return finish(figure, preset.name, preset.title, caption)


def _less(preset: Preset, lines: Sequence[Line], metric: str) -> Drawing:
    """Draw a panel per place: the method by F, beside random initialisation with all labels."""
    figure, grid, panels = _curve_panels(lines, metric, LABELS)
    for axes, panel in zip(grid, panels, strict=True):
        for line in panel.lines:
            if line.condition.method == RANDOM and line.condition.label_fraction == 1 and line.spread:
                axes.axhline(line.spread.mean, color=GREY, linewidth=1, linestyle=":")
    caption = "Validation patients; dotted: random initialisation with all labels. Error bars: sd over seeds."
    return finish(figure, preset.name, preset.title, caption)


def _curve_panels(lines: Sequence[Line], metric: str, axis: Axis) -> tuple[Figure, list[Axes], tuple[Panel, ...]]:
    panels = panels_of(lines, axis)
    figure, grid = _arrange(panels, columns=4, width=3.0, height=2.6)
    looks = _looks(lines)
    for axes, panel in zip(grid, panels, strict=True):
        for method, look in looks.items():
            shown = [line for line in panel.lines if line.condition.row == method]
            if shown:
                _curve(axes, sorted(shown, key=lambda line: axis.of(line.condition)), axis, look)
        axes.set_xticks(sorted({axis.of(line.condition) for line in lines}))
        label(axes, "", axis.title, metric)
        title_in_lines(axes, panel.title, letters=34)
    drawn = {method: Line2D([], [], **attrs.asdict(look), markersize=4) for method, look in looks.items()}
    if any(line.printed for line in lines):
        drawn["the paper's"] = Line2D([], [], color=GREY, linewidth=1, linestyle="--")
    legend_below(figure, drawn)
    return figure, grid, panels


@attrs.frozen
class _Look:
    """How the line of a method is drawn, in every panel."""

    color: str
    marker: str


def _looks(lines: Sequence[Line]) -> dict[str, _Look]:
    methods = [name for name in dict.fromkeys(line.condition.row for line in lines) if name != RANDOM]
    rounds = ((number // len(_METHODS) % len(MARKERS), number % len(_METHODS)) for number in range(len(methods)))
    looks = {name: _Look(_METHODS[of], MARKERS[turn]) for name, (turn, of) in zip(methods, rounds, strict=True)}
    return {RANDOM: _Look(ORANGE, MARKERS[0]), **looks}


def _curve(axes: Axes, lines: Sequence[Line], axis: Axis, look: _Look) -> None:
    places = [axis.of(line.condition) for line in lines]
    means = [line.spread.mean for line in lines if line.spread]
    sds = [(line.spread.sd_seeds or 0.0) for line in lines if line.spread]
    axes.errorbar(places, means, yerr=sds, color=look.color, marker=look.marker, markersize=4, linewidth=1.5)
    printed = [(axis.of(line.condition), line.printed.mean) for line in lines if line.printed]
    if printed:
        axes.plot(*zip(*printed, strict=True), color=look.color, linewidth=1, linestyle="--", alpha=0.7)


def _perturbations(preset: Preset, lines: Sequence[Line], metric: str) -> Drawing:
    """Draw a row per method, a column per place, on one scale; a dot per perturbation, as in the paper."""
    panels = panels_of(lines)
    methods = list(dict.fromkeys(line.condition.method for line in lines if line.condition.method != RANDOM))
    down, across = max(1, len(methods)), len(panels)
    figure, grid = sheet(down, across, max(7.2, 5.4 * across), 2.4 * down)
    for row, method in enumerate(methods):
        for column, panel in enumerate(panels):
            axes = grid[row * across + column]
            axes.sharey(grid[0])
            _perturbed(axes, panel, method)
            label(axes, method if across == 1 else f"{method}, {panel.title}", "", metric)
    caption = (
        "Single perturbations blue, Gaussian followed by another green, with the sd over seeds; dotted: the untrained "
        "encoder."
    )
    return finish(figure, preset.name, preset.title, caption)


def _perturbed(axes: Axes, panel: Panel, method: str) -> None:
    shown = [line for line in panel.lines if line.condition.method == method]
    names = [_perturbation(line.condition) for line in shown]
    for place, (line, name) in enumerate(zip(shown, names, strict=True)):
        assert line.spread  # lines without a score were left out
        colour = GREEN if "," in name else BLUE
        axes.errorbar(place, line.spread.mean, yerr=line.spread.sd_seeds, color=colour, marker="o", markersize=6)
    axes.set_xticks(range(len(shown)), [name.replace(",", "\n→ ") for name in names], fontsize=7)
    for line in panel.lines:
        if line.condition.method == RANDOM and line.spread:
            axes.axhline(line.spread.mean, color=ORANGE, linewidth=1, linestyle=":")


def _perturbation(one: Condition) -> str:
    chosen = (option.partition("=")[2] for option in one.options if option.startswith("perturbations="))
    return next(chosen, "own")


_METHODS = tuple(colour for colour in PALETTE if colour != ORANGE)  # which is the untrained encoder's, everywhere


def _arrange(panels: Sequence[Panel], columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """Make a sheet with axes for each panel, at most `columns` in a row. width, height: of a panel, in inches."""
    across = min(columns, len(panels))
    down = -(-len(panels) // across)
    figure, grid = sheet(down, across, max(4.8, width * across), height * down)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    return figure, grid[: len(panels)]
