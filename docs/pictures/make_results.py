"""Draw how far each method lies above an untrained encoder on real recordings, into results.png.

Run from anywhere where `clocs` is installed: python docs/pictures/make_results.py

The numbers are the committed ones of benchmarks/results/paper.
"""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import attrs
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator, StrMethodFormatter
from PIL import Image

from clocs_core.contracts.grids import Condition, nothing_published
from clocs_core.grids.exported_files import read_kept
from clocs_core.grids.exported_tables import KeptLines
from clocs_core.grids.grid_file import read_grid_file, settle_grid
from clocs_core.plugins.session import installed_session

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TABLES = ("linear-main", "equal-exposure", "transfer-main")  # the second has supervised pre-training, linear
METHODS = ("cmsc", "cmsmlc", "cmlc", "mt-ssl", "simclr", "byol", "supervised")  # the paper's own first
INK, GREY = "#1a1a2e", "#666"
OURS, OTHERS = "#b3261e", "#1f5fa8"


@attrs.frozen
class Panel:
    """A data set, and how encoders were evaluated on it."""

    title: str
    dataset: str
    protocol: str


PANELS = (
    Panel("PTB-XL, linear", "ptbxl", "linear"),
    Panel("Cardiology, fine-tuned", "cardiology", "finetune"),
    Panel("PhysioNet 2017, fine-tuned", "physionet2017", "finetune"),
)


@attrs.frozen
class Gain:
    """AUROC of a method less that of the untrained encoder: mean, 95 % interval over seeds and patients, each seed."""

    mean: float
    low: float
    high: float
    seeds: tuple[float, ...]


def read_gains() -> Mapping[str, Mapping[str, Gain]]:
    """The gain of every method by data set, on four leads, with E = 128 and half of the labels."""
    grid = settle_grid(read_grid_file(BENCHMARKS / "paper.toml"), installed_session().catalogue)
    kept = read_kept(sorted((BENCHMARKS / "results" / "paper").iterdir()), grid.measure)
    lines = KeptLines(kept, grid.repeats, nothing_published)
    conditions = [one for preset in grid.presets if preset.name in TABLES for one in preset.conditions]
    return {panel.dataset: {name: gain(name, panel, conditions, lines) for name in METHODS} for panel in PANELS}


def gain(method: str, panel: Panel, conditions: list[Condition], lines: KeptLines) -> Gain:
    """How far a method is above the untrained encoder: in all, and seed by seed."""
    place = (method, panel.dataset, panel.protocol, "")
    condition = next(one for one in conditions if (one.row, one.downstream, one.protocol, one.exposure) == place)
    line, (untrained,) = lines.line(condition), lines.random_lines(condition.context, [condition])
    if line.gain is None or line.spread is None or untrained.spread is None:
        raise SystemExit(f"{method} was not scored on {panel.dataset}, or not beside an untrained encoder")
    pairs = zip(line.spread.values[0], untrained.spread.values[0], strict=True)
    return Gain(line.gain.value, line.gain.low, line.gain.high, tuple(ours - theirs for ours, theirs in pairs))


def draw_panel(axes: Axes, panel: Panel, gains: Mapping[str, Gain]) -> None:
    """A line for each method: its interval, its mean, and the seeds as small dots below."""
    axes.axvline(0, color=INK, linewidth=1)
    for place, method in enumerate(reversed(METHODS)):
        gain, colour = gains[method], OURS if method.startswith("cm") else OTHERS
        axes.plot([gain.low, gain.high], [place, place], color=colour, linewidth=3, solid_capstyle="butt")
        axes.plot([gain.mean], [place], "o", color=colour, markersize=6)
        axes.plot(gain.seeds, [place - 0.27] * len(gain.seeds), "o", color=GREY, markersize=3, markeredgewidth=0)
    axes.set_title(panel.title, loc="left", fontsize=9.5, color=INK)
    axes.set_yticks(range(len(METHODS)), METHODS[::-1], family="monospace")
    axes.set_ylim(-0.6, len(METHODS) - 0.5)
    wide = max(gain.mean for gain in gains.values()) > 0.1
    axes.xaxis.set_major_locator(MultipleLocator(0.1 if wide else 0.04))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:+.2f}"))
    axes.grid(axis="x", color="#eee", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, length=0, labelcolor=INK)
    axes.spines[:].set_visible(False)


def main() -> None:
    """Draw the panels and write them beside this script."""
    figure, panels = plt.subplots(1, 3, figsize=(10.5, 3.3), layout="constrained", sharey=True)
    gains = read_gains()
    for axes, panel in zip(panels, PANELS, strict=True):
        draw_panel(axes, panel, gains[panel.dataset])
    figure.supxlabel(
        "AUROC above the untrained encoder. Bar: 95 % interval over seeds and patients. Grey dots: the five seeds.",
        fontsize=8.5,
        color=GREY,
    )
    drawn = BytesIO()
    figure.savefig(drawn, dpi=130)
    # A few colours are enough for dots and lines; with millions the file is twice as large.
    palette = Image.open(drawn).convert("RGB").quantize(64, dither=Image.Dither.NONE)
    palette.save(Path(__file__).with_name("results.png"), optimize=True)


if __name__ == "__main__":
    main()
