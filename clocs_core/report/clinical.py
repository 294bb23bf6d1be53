"""Make the sections of a page that show the results for clinicians: each class or number, and the worst recordings."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from clocs_core.artifacts.clinical import ClassResult, Clinical, Estimate
from clocs_core.contracts.events import Picture
from clocs_core.report.blocks import Section, Table
from clocs_core.report.tables import show_number

_SHADES = 9  # of a confusion matrix, as page.css has them


def clinical_sections(
    clinical: Clinical | None, pictures: Sequence[Picture] = (), papers: Sequence[Picture] = ()
) -> list[Section]:
    """Return the sections; none where there is no score. pictures: of the classes; papers: of the worst recordings."""
    if clinical is None:
        return []
    tables = [_numbers(clinical)] if clinical.numbers else [_classes(clinical), _decisions(clinical)]
    found = Section(
        name="classes",
        title="Predicted against true" if clinical.numbers else "Each class",
        sentences=[_about(clinical)],
        tables=tables,
        pictures=pictures,
    )
    return [found, _worst(clinical, papers)]


def _things(clinical: Clinical) -> str:
    return "recordings" if clinical.level == "record" else "frames"


def _about(clinical: Clinical) -> str:
    """Say of what and of whom the numbers are."""
    things = _things(clinical)
    said = (
        f"{clinical.init}, {clinical.protocol} evaluation with a share F = {clinical.label_fraction:g} of the labels: "
        f"{clinical.rows:,} {things} of {clinical.patients:,} {clinical.part} patients. In brackets: 95 % intervals by "
        "bootstrap over patients."
    )
    if clinical.numbers:
        return f"{said} Differences are predicted - true{f', in {clinical.unit}' if clinical.unit else ''}."
    where = "on validation patients"
    if clinical.part == "validation":
        where += ", who are scored here too, so that both numbers are too good"
    return (
        f"{said} Each class is told from all others. Sensitivity and specificity are at the threshold that has the "
        f"largest Youden index (sensitivity + specificity - 1) {where}."
    )


def _classes(clinical: Clinical) -> Table:
    mine = [one for one in clinical.classes if one.init == clinical.init]
    controls = {one.name: one for one in clinical.classes if one.init != clinical.init}
    others = sorted({one.init for one in controls.values()})
    things = _things(clinical)
    headings = (
        "class",
        "AUROC",
        *(f"AUROC of {name}" for name in others),
        "AUPRC",
        "sensitivity",
        "specificity",
        "threshold",
        things,
        "patients",
        f"validation {things}",
        "note",
    )
    rows = [
        (
            one.name,
            _shown(one.auroc),
            *([_shown(controls[one.name].auroc)] if others else []),
            _shown(one.auprc),
            _shown(one.sensitivity),
            _shown(one.specificity),
            show_number(one.threshold),
            f"{one.rows:,}",
            f"{one.patients:,}",
            f"{one.validation_rows:,}",
            one.note,
        )
        for one in mine
    ]
    wide = {(row, len(headings) - 1): "wide" for row, one in enumerate(mine) if one.note}
    caption = (
        f"{things.capitalize()} and patients that have the class. The AUPRC of a guess is the share of {things} that "
        "have the class, the AUROC of a guess is 0.5. An interval [1.000, 1.000] says that no error was seen, not that "
        "there is none."
    )
    return Table(title="Each class", headings=headings, rows=rows, classes=wide, caption=caption)


def _shown(one: Estimate) -> str:
    return show_number(one.value) + ("" if isnan(one.low) else f" [{show_number(one.low)}, {show_number(one.high)}]")


def _decisions(clinical: Clinical) -> Table:
    """Show the confusion matrix, or four counts of each class where several can hold."""
    if clinical.confusion:
        return _matrix(clinical)
    mine = [one for one in clinical.classes if one.init == clinical.init]
    headings = ("class", "found (true positive)", "missed (false negative)", "false alarm (false positive)")
    return Table(
        title="Findings at the threshold",
        headings=(*headings, "rightly not found (true negative)"),
        rows=[(one.name, *_counts(one)) for one in mine],
        caption=f"{_things(clinical).capitalize()} of each kind, class by class.",
    )


def _counts(one: ClassResult) -> tuple[str, ...]:
    counts = (one.true_positives, one.false_negatives, one.false_positives, one.true_negatives)
    return ("n/a",) * 4 if isnan(one.threshold) else tuple(f"{count:,}" for count in counts)


def _matrix(clinical: Clinical) -> Table:
    rows: list[tuple[str, ...]] = []
    shades: dict[tuple[int, int], str] = {}
    for place, (name, counts) in enumerate(zip(clinical.names, clinical.confusion, strict=True)):
        total = sum(counts)
        rows.append((name, *(f"{count:,} ({count / total:.0%})" if total else "0" for count in counts)))
        for column, count in enumerate(counts, start=1):
            shades[place, column] = f"shade-{round(_SHADES * count / max(1, total))}"
    return Table(
        title="Confusion matrix",
        headings=("true class", *(f"said {name}" for name in clinical.names)),
        rows=rows,
        classes=shades,
        caption=f"{_things(clinical).capitalize()} of each true class by the class that is most probable; no threshold "
        "is used here. Shares are of the row.",
    )


def _numbers(clinical: Clinical) -> Table:
    rows = [
        (
            one.init,
            _shown(one.error),
            _shown(one.bias),
            f"{show_number(one.limits_low)} to {show_number(one.limits_high)}",
        )
        for one in clinical.numbers
    ]
    headings = ("weights", "mean absolute error", "bias", "limits of agreement")
    return Table(title="Differences", headings=headings, rows=rows)


def _worst(clinical: Clinical, papers: Sequence[Picture]) -> Section:
    rows = [(one.record, one.label, one.predicted, show_number(one.error), one.patient) for one in clinical.worst]
    meaning = {
        "one_of": "The error is 1 - the probability of the true class.",
        "any_of": "The error is the largest gap between a label (0 or 1) and the probability of its class.",
        "number": "The error is the distance to the true value.",
    }
    table = Table(title="The worst", headings=("recording", "label", "predicted", "error", "patient"), rows=rows)
    return Section(
        name="worst",
        title="Worst-scored recordings",
        sentences=[
            f"The {clinical.part} recordings that {clinical.init} is most wrong about. {meaning[clinical.kind]}"
        ],
        tables=[table],
        pictures=papers,
    )
