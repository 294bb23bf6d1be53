"""The figures of a grid, as PNG and SVG: ours beside the paper's, by method, E, F, perturbation or patient distance."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes

from clocs_core.report.figures import BLUE, GREEN, GREY, MARKERS, ORANGE, PALETTE, RULE
from grid.axes import Condition
from grid.distances import DistanceLine
from grid.drawing import SMALL, Drawing, finish, label, legend, name_rows, sheet
from grid.summary import Line, Summary
from grid.tables import Preset

__all__ = ["draw_distances", "draw_scores"]

Where = tuple[str, str, str, str]
"""Pre-training set, downstream set, protocol and leads: what a panel holds."""

Axis = Callable[[Condition], float]


def draw_scores(preset: Preset, summary: Summary, metric: str) -> tuple[Drawing, ...]:
    """The figures of a table; none where it has no score yet."""
    lines = [line for line in summary.lines if line.spread]
    if not lines:
        return ()
    if preset.figure == "perturbations":
        return (_perturbations(preset, lines, metric),)
    if preset.figure == "less":
        return (_less(preset, lines, metric),)
    if len({line.condition.label_fraction for line in lines}) > 1:
        return (_curves(preset, lines, metric, "F, the share of labels", lambda one: one.label_fraction),)
    if len({line.condition.embedding_dim for line in lines}) > 1:
        return (_curves(preset, lines, metric, "E, the embedding dimension", lambda one: one.embedding_dim),)
    return (_dots(preset, lines, metric),)


def draw_distances(preset: Preset, lines: Sequence[DistanceLine]) -> tuple[Drawing, ...]:
    """Mean distances within and between patients, a pair of dots for every encoder."""
    if not lines:
        return ()
    figure, (axes,) = sheet(1, 1, 7.2, 1.0 + 0.32 * len(lines))
    for place, line in enumerate(lines):
        axes.plot([line.intra.mean, line.inter.mean], [place, place], color=RULE, linewidth=2.4, zorder=1)
        for found, colour in ((line.intra, BLUE), (line.inter, ORANGE)):
            axes.errorbar(found.mean, place, xerr=found.sd_seeds, color=colour, marker="o", markersize=6, capsize=2)
        beside = axes.get_yaxis_transform()  # x in axes, y in data
        axes.text(1.02, place, f"{line.separation.mean:.3f}", transform=beside, va="center", **SMALL)
    names = [f"{line.init}, E = {line.condition.embedding_dim}" for line in lines]
    name_rows(axes, names)
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
    """A panel per pair of data sets, a row per method: ours with its sd, the paper's beside it."""
    panels = _panels(lines)
    columns = min(3, len(panels))
    deepest = max(sum(_where(line) == where for line in lines) for where in panels)
    down = -(-len(panels) // columns)
    figure, grid = sheet(down, columns, max(4.8, 3.4 * columns), (0.9 + 0.3 * deepest) * down)
    for axes, where in zip(grid, panels, strict=False):
        shown = [line for line in lines if _where(line) == where]
        for place, line in enumerate(shown):
            _dot(axes, line, place)
        name_rows(axes, [line.condition.row for line in shown])
        label(axes, _say_where(where, lines), metric, "")
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    caption = "Filled: ours, mean over seeds with its sd. Open: the paper's, with its sd, where it has a number."
    return finish(figure, preset.name, preset.title, caption)


def _dot(axes: Axes, line: Line, place: int) -> None:
    assert line.spread  # lines without a score were left out
    colour = ORANGE if line.condition.method == "random" else BLUE
    axes.errorbar(line.spread.mean, place - 0.12, xerr=line.spread.sd_seeds, color=colour, marker="o", markersize=5)
    if line.printed:
        paper = line.printed
        axes.errorbar(paper.mean, place + 0.18, xerr=paper.sd, color=GREY, marker="D", markersize=4, mfc="white")


def _curves(preset: Preset, lines: Sequence[Line], metric: str, name: str, x: Axis) -> Drawing:
    """A panel per place, a line per method over one axis; the paper's is dashed."""
    by_labels = name.startswith("F")

    def panel(line: Line) -> tuple[Where, str]:
        one = line.condition
        return _where(line), f"E = {one.embedding_dim}" if by_labels else f"F = {one.label_fraction:g}"

    panels = list(dict.fromkeys(map(panel, lines)))
    columns = min(4, len(panels))
    down = -(-len(panels) // columns)
    figure, grid = sheet(down, columns, max(4.8, 3.0 * columns), 2.6 * down)
    methods = list(dict.fromkeys(line.condition.row for line in lines))
    for axes, one in zip(grid, panels, strict=False):
        for number, method in enumerate(methods):
            shown = [line for line in lines if panel(line) == one and line.condition.row == method]
            _curve(axes, sorted(shown, key=lambda line: x(line.condition)), x, method, number)
        axes.set_xticks(sorted({x(line.condition) for line in lines}))
        label(axes, f"{_say_where(one[0], lines)}, {one[1]}", name, metric)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    legend(grid[0])
    caption = "Ours: solid, mean over seeds with its sd. The paper's: dashed, where it has numbers."
    return finish(figure, preset.name, preset.title, caption)


def _curve(axes: Axes, lines: Sequence[Line], x: Axis, name: str, number: int) -> None:
    colour, marker = _METHODS[number % len(_METHODS)], MARKERS[number // len(_METHODS) % len(MARKERS)]
    colour = ORANGE if name == "random" else colour
    places = [x(line.condition) for line in lines]
    means = [line.spread.mean for line in lines if line.spread]
    sds = [(line.spread.sd_seeds or 0.0) for line in lines if line.spread]
    axes.errorbar(places, means, yerr=sds, color=colour, marker=marker, markersize=4, linewidth=1.5, label=name)
    printed = [(x(line.condition), line.printed.mean) for line in lines if line.printed]
    if printed:
        axes.plot(*zip(*printed, strict=True), color=colour, linewidth=1, linestyle="--", alpha=0.7)


def _perturbations(preset: Preset, lines: Sequence[Line], metric: str) -> Drawing:
    """A panel per method on one scale, a dot per perturbation: single ones blue, sequences green, as in the paper."""
    methods = list(dict.fromkeys(line.condition.method for line in lines if line.condition.method != "random"))
    random = [line.spread.mean for line in lines if line.condition.method == "random" and line.spread]
    figure, grid = sheet(max(1, len(methods)), 1, 7.2, 2.4 * max(1, len(methods)))
    for axes, method in zip(grid, methods, strict=False):
        axes.sharey(grid[0])
        shown = [line for line in lines if line.condition.method == method]
        names = [line.condition.options[0].partition("=")[2] if line.condition.options else "own" for line in shown]
        for place, (line, name) in enumerate(zip(shown, names, strict=True)):
            assert line.spread  # lines without a score were left out
            colour = GREEN if "," in name else BLUE
            axes.errorbar(place, line.spread.mean, yerr=line.spread.sd_seeds, color=colour, marker="o", markersize=6)
        axes.set_xticks(range(len(shown)), [name.replace(",", "\n→ ") for name in names], fontsize=7)
        if random:
            axes.axhline(random[0], color=ORANGE, linewidth=1, linestyle=":")
        label(axes, method, "", metric)
    caption = (
        "Single perturbations blue, Gaussian followed by another green, with the sd over seeds; dotted: the untrained "
        "encoder."
    )
    return finish(figure, preset.name, preset.title, caption)


def _less(preset: Preset, lines: Sequence[Line], metric: str) -> Drawing:
    """A panel per pair of data sets: the method by F, beside random initialisation with all labels."""
    panels = _panels(lines)
    figure, grid = sheet(1, len(panels), max(4.8, 3.8 * len(panels)), 3.0)
    for axes, where in zip(grid, panels, strict=True):
        shown = [line for line in lines if _where(line) == where]
        for number, method in enumerate(dict.fromkeys(line.condition.row for line in shown)):
            own = [one for one in shown if one.condition.row == method]
            own.sort(key=lambda one: one.condition.label_fraction)
            _curve(axes, own, lambda one: one.label_fraction, method, number)
            most = own[-1]
            if method == "random" and most.spread and most.condition.label_fraction == 1:
                axes.axhline(most.spread.mean, color=GREY, linewidth=1, linestyle=":")
        axes.set_xticks(sorted({line.condition.label_fraction for line in shown}))
        label(axes, _say_where(where, lines), "F, the share of labels", metric)
    legend(grid[0])
    caption = "Validation patients; dotted: random initialisation with all labels. Error bars: sd over seeds."
    return finish(figure, preset.name, preset.title, caption)


_METHODS = tuple(colour for colour in PALETTE if colour != ORANGE)  # which is the untrained encoder's, everywhere


def _where(line: Line) -> Where:
    one = line.condition
    return one.pretraining, one.downstream, one.protocol, one.leads


def _panels(lines: Sequence[Line]) -> list[Where]:
    return list(dict.fromkeys(map(_where, lines)))


def _say_where(where: Where, lines: Sequence[Line]) -> str:
    """The data sets of a panel, with protocol and leads where the panels differ in them."""
    pretraining, downstream, protocol, leads = where
    words = [pretraining if pretraining == downstream else f"{pretraining} → {downstream}"]
    words += [protocol] if len({line.condition.protocol for line in lines}) > 1 else []
    words += [f"{leads} leads"] if len({line.condition.leads for line in lines}) > 1 else []
    return ", ".join(words)
