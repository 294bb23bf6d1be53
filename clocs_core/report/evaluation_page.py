"""Show an evaluation on one HTML page: its summary, scores, differences, classifiers, split and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clocs_core.artifacts.reports import EvaluationReport
from clocs_core.report.blocks import Section, Table
from clocs_core.report.page import SCORE_ORDER, show_toml
from clocs_core.report.plain_page import comparison_table, render_sections, summary_section
from clocs_core.report.tables import SCORE_HEADINGS, score_rows, show_number
from clocs_core.report.times import show_duration, time_section, whole_time

_CELLS = ("weights", "protocol", "labels F", "frames", "patients", "epochs", "best epoch", "steps", "time")


def render_evaluation(report: EvaluationReport, clinical: Sequence[Section] = ()) -> str:
    """Return the page as text, with the results for clinicians behind the scores."""
    summary = summary_section(report.scores, report.comparisons, report.notes)
    sections = [summary, _scores(report), *clinical, _classifiers(report)]
    sections += [_split(report), _left_out(report), settings_section(report.command, report.settings)]
    if report.seconds:
        sections.append(time_section(report.seconds))
    environment = Table(title="Environment", headings=(), rows=list(report.environment.items()))
    sections.append(Section(name="environment", title="Environment", tables=[environment]))
    facts = {
        "Weights": report.init,
        "Protocol": report.protocol,
        "Data set": report.dataset,
        "Task": report.task,
        "Scored part": report.part,
        "Seed": str(report.seed),
        "Encoder": f"{report.encoder.name}, {report.encoder.embedding_dim} numbers",
        "Pre-trained on": report.encoder.dataset or "nothing",
        **({"Finished": report.date} if report.date else {}),
        **({"Time": whole_time(report.seconds)} if report.seconds else {}),
    }
    return render_sections(f"{report.init} on {report.dataset}: {report.protocol}", report.how, facts, sections)


def _scores(report: EvaluationReport) -> Section:
    headings, *rows = (
        tuple(row[place] for place in SCORE_ORDER) for row in (SCORE_HEADINGS, *score_rows(report.scores))
    )
    tables = [Table(title="Scores", headings=headings, rows=rows)]
    if report.comparisons:
        tables.append(comparison_table("Differences on the same patients", report.comparisons))
    about = f"{report.part.capitalize()} patients only. Intervals by bootstrap over patients."
    return Section(name="scores", title="Scores", sentences=[about], tables=tables)


def _classifiers(report: EvaluationReport) -> Section:
    rows = [
        (
            cell.init,
            cell.protocol,
            f"{cell.label_fraction:g}",
            *(f"{one:,}" for one in (cell.frames, cell.patients, cell.epochs, cell.best_epoch, cell.steps)),
            show_duration(cell.seconds),
        )
        for cell in report.cells
    ]
    tables = [Table(title="Classifiers", headings=_CELLS, rows=rows)]
    for curve in report.curves:
        points = [
            (
                f"{one.epoch:,}",
                show_number(one.train_loss),
                show_number(one.validation_loss),
                show_number(one.validation_score),
            )
            for one in curve.values
        ]
        title = f"Epochs of {curve.init}, F = {curve.label_fraction:g}"
        heads = ("epoch", "training loss", "validation loss", f"validation {curve.metric}")
        tables.append(Table(title=title, headings=heads, rows=points))
    return Section(name="classifiers", title="Classifiers", tables=tables)


def _split(report: EvaluationReport) -> Section:
    split = report.split
    rows = [
        (part, *(f"{held.get(part, 0):,}" for held in (split.patients, split.records, split.frames)))
        for part in split.patients
    ]
    return Section(
        name="split",
        title="Split certificate",
        sentences=[
            f"{split.shared_patients} patients shared, {split.duplicate_signals} duplicate signals between the parts.",
            f"Rule {split.rule}, seed {split.seed}, hash {split.hash}",
        ],
        tables=[Table(title="Split", headings=("part", "patients", "records", "frames"), rows=rows)],
    )


def _left_out(report: EvaluationReport) -> Section:
    drops = report.drops
    rows = [(reason, f"{count:,}", ", ".join(drops.first.get(reason, ()))) for reason, count in drops.counts.items()]
    table = Table(title="Drops", headings=("reason", "count", "first of them"), rows=rows)
    form = [f"Form of the data: {report.form}."] if report.form else []
    nothing = [] if rows else ["Nothing was dropped."]
    return Section(name="left-out", title="Left out", sentences=[*form, *nothing], tables=[table] if rows else [])


def settings_section(command: str, settings: Mapping[str, Mapping[str, object]]) -> Section:
    """Show the command of a report, if it has one, and its settings as TOML."""
    said = [f"Command: {command}"] if command else []
    text = "\n\n".join(_table(name, held) for name, held in settings.items())
    return Section(name="settings", title="Settings", sentences=said, text=text)


def _table(name: str, held: Mapping[str, object]) -> str:
    lines = (f"# {key} is not set" if value is None else f"{key} = {show_toml(value)}" for key, value in held.items())
    return "\n".join([f"[{name}]", *lines])
