"""Draw the results for clinicians as PNG bytes: curves of each class, and predicted against true numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from clocs_core.artifacts.clinical import ClassResult, Clinical
from clocs_core.contracts.events import Picture
from clocs_core.report.sheet import BLUE, GREY, PALETTE, label, legend_beside, picture, set_margins, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST = 5  # rows of a bin of the reliability diagram: with fewer, its share says little
_DASHES = ("-", "--", ":", "-.")  # every round of the palette has its own


def class_curves(clinical: Clinical) -> Picture | None:
    """Draw ROC, precision-recall and reliability, a line per class; None where no class has a curve."""
    shown = [one for one in clinical.classes if one.init == clinical.init and one.roc]
    if not shown:
        return None
    figure, (roc, precision, reliability, names) = sheet(2, 2, 7.6, 7.2)  # two columns are readable on a phone
    set_margins(figure, (roc, precision, reliability, names), left=0.6, bottom=0.5, right=0.15, between=(0.75, 0.75))
    for place, one in enumerate(shown):
        _draw_class(place, one, (roc, precision, reliability))
    diagonal = [0.0, 1.0]
    for axes in (roc, reliability):
        axes.plot(diagonal, diagonal, color=GREY, linewidth=0.8, linestyle=":")
    for axes in (roc, precision, reliability):
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.set_aspect("equal")
    label(roc, "ROC", "1 - specificity", "sensitivity")
    label(precision, "Precision-recall", "recall (sensitivity)", "precision")
    label(reliability, "Reliability", "mean predicted probability", "share that has the class")
    names.set_axis_off()
    lines = roc.get_lines()[: 2 * len(shown) : 2]  # every second one is a dot
    legend_beside(names, [one.name for one in shown], lines, x=0.0, columns=1 if len(shown) <= 16 else 2)
    caption = (
        "ROC: sensitivity against false alarms at every threshold; the dotted diagonal is a guess, the dot is the "
        "threshold from validation patients. Precision-recall: how many of the positive findings are right, against "
        "how many positives are found. Reliability: what was predicted against what came true; on the diagonal, "
        f"probabilities can be taken at their word. Bins of fewer than {FEWEST} are left out."
    )
    return picture(figure, "class-curves", "Curves of each class", caption)


def _draw_class(place: int, one: ClassResult, panels: Sequence[Axes]) -> None:
    roc, precision, reliability = panels
    look: dict[str, Any] = {
        "color": PALETTE[place % len(PALETTE)],
        "linestyle": _DASHES[place // len(PALETTE) % len(_DASHES)],
    }
    roc.plot(*one.roc, linewidth=1.4, **look)
    roc.plot([1 - one.specificity.value], [one.sensitivity.value], "o", color=look["color"], markersize=5)
    precision.plot(*one.precision_recall, linewidth=1.4, **look)
    bins = [(x, y) for x, y, count in zip(*one.reliability, strict=True) if count >= FEWEST]
    reliability.plot([x for x, _ in bins], [y for _, y in bins], linewidth=1.2, marker="o", markersize=3.5, **look)


def predicted_against_true(clinical: Clinical) -> Picture | None:
    """Draw every prediction of a number against its true value, and their difference; None where there are none."""
    shown = next((one for one in clinical.numbers if one.init == clinical.init and one.true), None)
    if shown is None:
        return None
    figure, (both, difference) = sheet(1, 2, 9.0, 4.0)
    both.plot(shown.true, shown.predicted, "o", color=BLUE, markersize=3.5, markeredgewidth=0, alpha=0.7)
    ends = [min(*shown.true, *shown.predicted), max(*shown.true, *shown.predicted)]
    both.plot(ends, ends, color=GREY, linewidth=0.8, linestyle=":")
    middle = [(a + b) / 2 for a, b in zip(shown.true, shown.predicted, strict=True)]
    off = [b - a for a, b in zip(shown.true, shown.predicted, strict=True)]
    difference.plot(middle, off, "o", color=BLUE, markersize=3.5, markeredgewidth=0, alpha=0.7)
    for height, dashes in ((shown.bias.value, "-"), (shown.limits_low, "--"), (shown.limits_high, "--")):
        difference.axhline(height, color=GREY, linewidth=0.9, linestyle=dashes)
    unit = f" ({clinical.unit})" if clinical.unit else ""
    label(both, "Predicted against true", f"true{unit}", f"predicted{unit}")
    label(difference, "Difference", f"mean of both{unit}", f"predicted - true{unit}")
    caption = (
        "Left: each prediction against its true value; on the dotted diagonal both agree. Right: their difference, "
        "with the bias (line) and the limits of agreement (dashed): 95 % of normal differences lie between them."
    )
    return picture(figure, "predicted-against-true", "Predicted against true", caption)
