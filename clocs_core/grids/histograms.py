"""Draw figures 6 and 9 of the paper: the distributions of distances within a patient and between patients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from clocs_core.artifacts.reports import PatientSeparation
from clocs_core.grids.distances import DistanceLine, say_encoders
from clocs_core.grids.drawing import SMALL, Drawing, finish
from clocs_core.grids.presets import Preset
from clocs_core.report.sheet import BLUE, ORANGE, label, legend, sheet

_POINTS = 64
_COLUMNS = 3


def draw_histograms(preset: Preset, lines: Sequence[DistanceLine]) -> tuple[Drawing, ...]:
    """Draw a panel per encoder with two curves: distances within a patient, and between patients."""
    if not lines:
        return ()
    columns = min(_COLUMNS, len(lines))
    down = -(-len(lines) // columns)
    figure, grid = sheet(down, columns, max(4.8, 3.0 * columns), 2.3 * down)
    for axes, line, name in zip(grid, lines, say_encoders(lines), strict=False):
        _panel(axes, line.found)
        label(axes, name, "Euclidean distance", "density")
    for axes in grid[len(lines) :]:
        axes.set_visible(False)
    for axes in [axes for axes in grid if axes.has_data()][:1]:
        legend(axes)
    caption = (
        "Distances of embeddings of validation patients: within a patient blue, between patients orange. Thick: the "
        f"mean over repetitions; thin: each of them.{_say_missing(lines)}"
    )
    return (finish(figure, f"{preset.name}-histograms", f"{preset.title}, distributions", caption),)


def density(counts: Sequence[int], edges: Sequence[float], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the density of a histogram between neighbouring places `at` (place,), as (place - 1,).

    A bin that is cut is shared out by its width, so that the whole stays 1 where `at` covers all edges.
    """
    share = np.concatenate([[0.0], np.cumsum(counts)]) / sum(counts)
    return np.asarray(np.diff(np.interp(at, edges, share)) / np.diff(at))


def _panel(axes: Axes, found: Sequence[PatientSeparation]) -> None:
    """Draw both curves of one encoder, or say that no run of it kept a histogram."""
    kept = [one for one in found if one.edges]
    if not kept:
        axes.text(0.5, 0.5, "no histogram was kept", transform=axes.transAxes, ha="center", **SMALL)
        return
    at = np.linspace(0, max(one.edges[-1] for one in kept), _POINTS + 1)
    middle = (at[1:] + at[:-1]) / 2
    for kind, colour, name in (("intra", BLUE, "within a patient"), ("inter", ORANGE, "between patients")):
        each = [density(getattr(one, kind), one.edges, at) for one in kept]
        for one in each if len(each) > 1 else ():
            axes.plot(middle, one, color=colour, linewidth=0.6, alpha=0.5)
        mean = np.mean(each, axis=0)
        axes.plot(middle, mean, color=colour, linewidth=1.8, label=name)
        axes.fill_between(middle, mean, color=colour, alpha=0.12, linewidth=0)
    axes.set_ylim(bottom=0)


def _say_missing(lines: Sequence[DistanceLine]) -> str:
    every = [one for line in lines for one in line.found]
    without = sum(not one.edges for one in every)
    if not without:
        return ""
    return f" {without} of {len(every)} were measured before histograms were kept, and are not drawn."
