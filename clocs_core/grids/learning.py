"""Draw figure 4 of the paper, "doing more with less": the validation score of fine-tuning, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from clocs_core.artifacts.reports import Curve
from clocs_core.contracts.grids import Condition
from clocs_core.contracts.result_offers import FINETUNE
from clocs_core.contracts.scores import RANDOM
from clocs_core.grids.axes import Repeats
from clocs_core.grids.cells import GridCell
from clocs_core.grids.drawing import SMALL, Drawing, finish, legend_at_side
from clocs_core.grids.presets import Preset
from clocs_core.grids.results import Results
from clocs_core.report.sheet import BLUE, GREEN, GREY, ORANGE, PALETTE, label, sheet


@attrs.frozen
class LearningLine:
    """The fine-tunings of one init at one F, by repetition. without: those that are done and have no curve."""

    condition: Condition
    init: str
    curves: tuple[Curve, ...]
    without: int

    @property
    def name(self) -> str:
        """The name in a legend."""
        return f"{self.init}, F = {self.condition.label_fraction:g}"

    @property
    def where(self) -> tuple[str, ...]:
        """The panel of this curve."""
        one = self.condition
        return (one.pretraining, one.downstream, one.leads, f"E = {one.embedding_dim}")


def summarise_learning(conditions: Iterable[Condition], repeats: Repeats, results: Results) -> tuple[LearningLine, ...]:
    """Collect the curves of every method at its F, and of random initialisation at the largest F, once a repetition."""
    wanted = [one for one in conditions if one.protocol == FINETUNE]
    lines = [_line(one, one.row, one.method, repeats.cells(one), results) for one in wanted]
    places: dict[tuple[object, ...], list[Condition]] = {}
    for one in wanted:
        places.setdefault((one.pretraining, one.downstream, one.leads, one.embedding_dim, one.part), []).append(one)
    for rows in places.values():
        most = max(one.label_fraction for one in rows)
        full = [one for one in rows if one.label_fraction == most]
        once: dict[object, GridCell] = {}
        for cell in (cell for one in full for cell in repeats.cells(one) if results.is_done(cell)):
            once.setdefault(cell.random, cell)
        lines.append(_line(full[0], RANDOM, RANDOM, tuple(once.values()), results))
    once_each = {(line.where, line.name, line.condition.part): line for line in lines}  # stand-ins may coincide
    return tuple(line for line in once_each.values() if line.curves or line.without)


def draw_learning(preset: Preset, lines: Sequence[LearningLine]) -> tuple[Drawing, ...]:
    """Draw a panel per pair of data sets: a thin line per repetition, a thick one for their mean."""
    if not lines:
        return ()
    panels = list(dict.fromkeys(line.where for line in lines))
    figure, grid = sheet(1, len(panels), max(5.6, 4.4 * len(panels)), 3.2)
    metrics = dict.fromkeys(curve.metric for line in lines for curve in line.curves)
    for axes, where in zip(grid, panels, strict=True):
        shown = [line for line in lines if line.where == where]
        for line in shown:
            _draw(axes, line, *_dress(line, lines))
        if any(line.curves for line in shown):
            legend_at_side(axes)
        else:
            axes.text(0.5, 0.5, "no curve was kept", transform=axes.transAxes, ha="center", **SMALL)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        label(axes, _say_where(where, panels), "epoch of fine-tuning", f"validation {' or '.join(metrics)}".strip())
    caption = (
        "Score of the whole validation part after every epoch. Thin: each repetition until it stopped; thick: their "
        "mean, over the epochs that all of them have. Random initialisation, orange, has the largest share of labels."
        f"{_say_missing(lines)}"
    )
    return (finish(figure, f"{preset.name}-epochs", f"{preset.title}, by epoch", caption),)


def mean_curve(curves: Sequence[Curve]) -> tuple[list[int], list[float]]:
    """Average curves over the epochs that all of them have a score for. Returns epochs and mean scores.

    Later ones would be a mean over those that stopped late, which are not like the others.
    """
    scores = [{point.epoch: point.validation_score for point in curve.values} for curve in curves]
    shared = [epoch for epoch in sorted(scores[0]) if all(np.isfinite(one.get(epoch, np.nan)) for one in scores)]
    return shared, [float(np.mean([one[epoch] for one in scores])) for epoch in shared]


_DASHES = ("-", "--", ":", "-.")
_COLOURS = (BLUE, GREEN, *(one for one in PALETTE if one not in (BLUE, GREEN, ORANGE, GREY)))


def _dress(line: LearningLine, lines: Sequence[LearningLine]) -> tuple[str, str]:
    """Choose a colour by F and dashes by method: lines with equally many labels look alike. Random is orange."""
    if line.init == RANDOM:
        return ORANGE, "-"
    methods = list(dict.fromkeys(one.init for one in lines if one.init != RANDOM))
    shares = sorted({one.condition.label_fraction for one in lines})
    colour = _COLOURS[shares.index(line.condition.label_fraction) % len(_COLOURS)]
    return colour, _DASHES[methods.index(line.init) % len(_DASHES)]


def _draw(axes: Axes, line: LearningLine, colour: str, dashes: str) -> None:
    if not line.curves:
        return
    for curve in line.curves if len(line.curves) > 1 else ():
        epochs, scores = zip(*((point.epoch, point.validation_score) for point in curve.values), strict=True)
        axes.plot(epochs, scores, color=colour, linewidth=0.6, alpha=0.5, linestyle=dashes)
    shared, means = mean_curve(line.curves)
    marker = "o" if len(shared) == 1 else "None"  # a line of one point cannot be seen
    (thick,) = axes.plot(shared, means, color=colour, linewidth=1.8, linestyle=dashes, label=line.name)
    thick.set(marker=marker, markersize=4)


def _line(condition: Condition, name: str, init: str, cells: Sequence[GridCell], results: Results) -> LearningLine:
    done = [report for cell in cells if (report := results.evaluated(cell))]
    share = condition.label_fraction
    curves = tuple(
        curve for report in done for curve in report.curves if (curve.init, curve.label_fraction) == (init, share)
    )
    return LearningLine(condition, name, curves, len(done) - len(curves))


def _say_where(where: tuple[str, ...], panels: Sequence[tuple[str, ...]]) -> str:
    """Name the data sets of a panel, with leads and E where the panels differ in them."""
    pretraining, downstream, leads, dim = where
    words = [f"{pretraining} → {downstream}"]
    words += [f"{leads} leads"] if len({one[2] for one in panels}) > 1 else []
    words += [dim] if len({one[3] for one in panels}) > 1 else []
    return ", ".join(words)


def _say_missing(lines: Sequence[LearningLine]) -> str:
    without, every = sum(line.without for line in lines), sum(line.without + len(line.curves) for line in lines)
    if not without:
        return ""
    return f" {without} of {every} fine-tunings are of before curves were kept, and are not drawn."
