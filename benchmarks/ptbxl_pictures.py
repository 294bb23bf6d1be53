"""Draw the scores on PTB-XL: all rows beside their controls and published ones, and scores by label fraction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.lines import Line2D
from ptbxl_scores import by_fraction, is_main

from clocs_core.report.sheet import BLUE, GREY, INK, MARKERS, PALETTE, VERMILION, label, legend_beside, sheet, to_png

SHOWN = ("all", "superclass", "rhythm")
"""Tasks of the picture of all rows."""


def overview(rows: Sequence[dict[str, Any]], others: Iterable[dict[str, Any]]) -> bytes | None:
    """Draw the AUROC of every row with its interval, and of its untrained encoder; None without figures.

    others: published rows; a line shows the best linear one of each task.
    """
    published = [one["scores"] for one in others if one["protocol"] == "linear" and "supervised" not in one["name"]]
    kept = [row for row in rows if any(is_main(one) and one["task"] in SHOWN for one in row["scores"])]
    if not kept:
        return None
    figure, panels = sheet(1, len(SHOWN), 9.5, 1.2 + 0.24 * len(kept))
    for axes, task in zip(panels, SHOWN, strict=True):
        for place, row in enumerate(kept):
            for one in (one for one in row["scores"] if is_main(one) and one["task"] == task):
                for which, colour, fill in (("random", GREY, "white"), ("auroc", BLUE, BLUE)):
                    value, low, high = one[which]
                    axes.plot([low, high], [place, place], color=colour, linewidth=1.2)
                    axes.plot([value], [place], "o", color=colour, markerfacecolor=fill, markersize=4.5)
        if best := [scores[task] for scores in published if task in scores]:
            axes.axvline(max(best), color=VERMILION, linewidth=1.0, linestyle="--")
        axes.set_yticks(range(len(kept)), [row["name"] for row in kept] if axes is panels[0] else [""] * len(kept))
        axes.set_ylim(len(kept) - 0.5, -0.5)
        label(axes, task, "macro AUROC, fold 10", "")
    handles = [
        Line2D([], [], color=BLUE, marker="o", markersize=4.5, linewidth=1.2),
        Line2D([], [], color=GREY, marker="o", markerfacecolor="white", markersize=4.5, linewidth=1.2),
        Line2D([], [], color=VERMILION, linestyle="--", linewidth=1.0),
    ]
    names = ["after pre-training", "the encoder untrained", "best published, without labels"]
    words = figure.legend(
        handles, names, loc="outside lower center", ncols=3, frameon=False, labelcolor=INK, fontsize=8
    )
    for text in words.get_texts():
        text.set_parse_math(False)
    return to_png(figure)


def label_efficiency(rows: Iterable[dict[str, Any]]) -> bytes | None:
    """Draw AUROC by label fraction, solid for a method and dashed for its untrained encoder; None without figures."""
    figure, (axes,) = sheet(1, 1, 8.5, 3.6)
    held = [(row["name"], task, scores) for row in rows for task, scores in by_fraction(row).items()]
    lines: dict[str, list[Line2D]] = {"auroc": [], "random": []}
    for place, (_, _, scores) in enumerate(held):
        colour, marker = PALETTE[place % len(PALETTE)], MARKERS[place // len(PALETTE) % len(MARKERS)]
        x = [100 * one["label_fraction"] for one in scores]
        for which, style in (("auroc", "-"), ("random", "--")):
            middle, low, high = zip(*(one[which] for one in scores), strict=True)
            axes.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0)
            lines[which] += axes.plot(
                x, middle, color=colour, marker=marker, markersize=4, linewidth=1.5, linestyle=style
            )
    if not held:
        return None
    axes.set_xscale("log")
    axes.set_xticks(x, [f"{percent:g}" for percent in x])  # those of the last row; rows share them
    axes.minorticks_off()
    label(axes, "Fewer labels", "patients with labels, %", "macro AUROC, fold 10")
    names = [f"{name}: {task}" for name, task, _ in held]
    (untrained,) = axes.plot([], [], color="grey", linewidth=1.5, linestyle="--")
    legend_beside(axes, [*names, "dashed: the encoder untrained"], [*lines["auroc"], untrained], x=1.02, most=50)
    return to_png(figure)
