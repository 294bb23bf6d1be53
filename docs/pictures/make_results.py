"""Draw how far each method lies above an untrained encoder on real recordings, into results.png.

Run from anywhere where `clocs` is installed: python docs/pictures/make_results.py

The numbers are the committed ones of benchmarks/results/grid: intervals from its pages, single seeds from scores.csv.
"""

import csv
import re
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import attrs
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator, StrMethodFormatter
from PIL import Image

GRID = Path(__file__).parents[2] / "benchmarks" / "results" / "grid"
FRACTION = "0.5"  # of the labels
METHODS = ("cmsc", "cmsmlc", "cmlc", "mt-ssl", "simclr", "byol", "supervised")  # the paper's own first
INK, PALE, GREY = "#1a1a2e", "#c8ccd6", "#666"
OURS, OTHERS = "#b3261e", "#1f5fa8"


@attrs.frozen
class Panel:
    """A data set, how encoders were evaluated on it, and the page of the grid that has the intervals."""

    title: str
    dataset: str
    page: str


PANELS = (
    Panel("PTB-XL, linear", "ptbxl", "ptbxl-linear.md"),
    Panel("Cardiology, fine-tuned", "cardiology", "ptbxl-transfer.md"),
    Panel("PhysioNet 2017, fine-tuned", "physionet2017", "ptbxl-transfer.md"),
)


@attrs.frozen
class Gain:
    """AUROC of a method less that of the untrained encoder: mean, 95 % interval over seeds and patients, each seed."""

    mean: float
    low: float
    high: float
    seeds: tuple[float, ...]


def read_gains(panel: Panel) -> dict[str, Gain]:
    """The gain of every method, as the grid measured it on four leads."""
    scores = read_scores(panel.dataset)
    page = (GRID / panel.page).read_text(encoding="utf-8")
    found: dict[str, Gain] = {}
    headings: list[str] = []
    for cells in ([cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines()):
        headings = cells if "above random" in cells else headings
        row = dict(zip(headings, cells, strict=True)) if len(cells) == len(headings) else {}
        name = row.get("method", "")
        if name in METHODS and row["downstream"].split()[0] == panel.dataset and row["F"] == FRACTION:
            mean, low, high = map(float, re.findall(r"[-+]\d\.\d+", row["above random"]))
            single = tuple(scores[name][seed] - scores["random"][seed] for seed in scores["random"])
            found[name] = Gain(mean, low, high, single)
    return found


def read_scores(dataset: str) -> Mapping[str, Mapping[str, float]]:
    """AUROC of frames by method and seed, on four leads and the first split."""
    wanted = {"downstream": dataset, "label_fraction": FRACTION, "leads": "4", "split": "0", "options": "resamples=20"}
    found: dict[str, dict[str, float]] = {}
    with (GRID / "scores.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if (row["metric"], row["level"]) == ("auroc", "frame") and wanted.items() <= row.items():
                found.setdefault(row["method"], {})[row["seed"]] = float(row["score"])
    return found


def draw_panel(axes: Axes, panel: Panel) -> None:
    """A line for each method: its interval, its mean, and the seeds as small dots below."""
    gains = read_gains(panel)
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
    for axes, panel in zip(panels, PANELS, strict=True):
        draw_panel(axes, panel)
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
