"""Show the scores of several seeds together, as rows for the console and on one HTML page."""

from __future__ import annotations

from clocs_core.artifacts.several_seeds import SeedsReport, SeedsScore
from clocs_core.report.blocks import Section, Table
from clocs_core.report.evaluation_page import settings_section
from clocs_core.report.plain_page import comparison_table, render_sections, summary_section
from clocs_core.report.tables import show_number
from clocs_core.report.times import time_section, whole_time

SEEDS_HEADINGS = ("weights", "mean", "sd", "95 % interval", "metric", "level", "protocol", "labels F")


def seeds_rows(report: SeedsReport) -> tuple[tuple[str, ...], ...]:
    """Return a row per score under SEEDS_HEADINGS, in the order given."""
    return tuple(
        (
            _weights(one),
            show_number(one.mean),
            show_number(one.sd),
            _interval(one),
            one.metric,
            one.level,
            one.protocol,
            f"{one.label_fraction:g}",
        )
        for one in report.scores
    )


def wide_seeds_rows(report: SeedsReport) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return headings, and a row for each classifier and level: mean ± sd of all metrics, the first with interval."""
    metrics = list(dict.fromkeys(one.metric for one in report.scores))
    headings = ("protocol", "weights", "labels", "level", metrics[0], "95 % interval", *metrics[1:])
    found: dict[tuple[str, ...], dict[str, SeedsScore]] = {}
    for one in report.scores:
        classifier = one.protocol, _weights(one), f"{one.label_fraction:g}", one.level
        found.setdefault(classifier, {})[one.metric] = one
    rows = []
    for row, by_metric in found.items():
        values = [_mean_sd(by_metric[name]) if name in by_metric else "" for name in metrics]
        first = by_metric.get(metrics[0])
        rows.append((*row, values[0], _interval(first) if first else "", *values[1:]))
    return headings, tuple(rows)


def over_what(report: SeedsReport) -> str:
    """Say what the intervals of a summary are over."""
    if len(report.seeds) == 1:
        return "Intervals are over patients: one seed says nothing of another one."
    return f"Means of {len(report.seeds)} seeds, with 95 % intervals over seeds and patients."


def render_seeds(report: SeedsReport) -> str:
    """Return the page as text."""
    sections = [summary_section(report.scores, report.comparisons, report.notes)]
    if report.scores:
        sections += [_scores(report), _values(report)]
    runs = [(f"seed{seed}/report.html", str(best)) for seed, best in zip(report.seeds, report.best_epochs, strict=True)]
    table = Table(title="Runs", headings=("report", "best epoch"), rows=runs)
    sections.append(Section(name="runs", title="Runs", sentences=["Each seed is a whole run."], tables=[table]))
    sections.append(settings_section(report.command, report.settings))
    if report.seconds:
        sections.append(time_section(report.seconds, _DOING))
    names = ", ".join(map(str, report.seeds))
    facts = {
        "Method": report.method,
        "Data set": report.dataset,
        "Task": report.task or "none",
        "Seeds": names,
        **({"Finished": report.date} if report.date else {}),
        **({"Time": whole_time(report.seconds)} if report.seconds else {}),
    }
    return render_sections(f"{report.method} on {report.dataset}: seeds {names}", over_what(report), facts, sections)


_DOING = {"runs": "make the runs"}  # the other stages are named by verbs


def _scores(report: SeedsReport) -> Section:
    tables = [Table(title="Scores", headings=SEEDS_HEADINGS, rows=seeds_rows(report))]
    if report.comparisons:
        tables.append(comparison_table("Paired differences", report.comparisons))
    said = f"{over_what(report)} Differences are between classifiers of the same seed, on the same patients."
    return Section(name="scores", title="Scores", sentences=[said], tables=tables)


def _values(report: SeedsReport) -> Section:
    headings = ("weights", "metric", "level", "labels F", *(f"seed {seed}" for seed in report.seeds))
    rows = [
        (_weights(one), one.metric, one.level, f"{one.label_fraction:g}", *map(show_number, one.values))
        for one in report.scores
    ]
    table = Table(title="Scores of each seed", headings=headings, rows=rows)
    return Section(name="values", title="Scores of each seed", tables=[table])


def _weights(one: SeedsScore) -> str:
    return "class prior" if one.protocol == "prior" else one.init


def _mean_sd(one: SeedsScore) -> str:
    return show_number(one.mean) if len(one.values) == 1 else f"{show_number(one.mean)} ± {show_number(one.sd)}"


def _interval(one: SeedsScore) -> str:
    return f"[{show_number(one.low)}, {show_number(one.high)}]"
