"""Show the report of a run or an evaluation in a notebook: a verdict, scores and comparisons as tables, notes."""

from __future__ import annotations

from functools import cached_property
from html import escape
from typing import Any

import attrs

from clocs_core.api.tables import Table
from clocs_core.artifacts.clinical import ClassResult, WorstRecording
from clocs_core.artifacts.reports import EvaluationReport, Report
from clocs_core.contracts.scores import Comparison, Score
from clocs_core.report.tables import verdict, wide_score_rows

_MEASURED = ("auroc", "auprc", "sensitivity", "specificity")
_CLASS_COLUMNS = (
    *("init", "name"),
    *(f"{measure}{end}" for measure in _MEASURED for end in ("", "_low", "_high")),
    *("threshold", "rows", "patients", "validation_rows", "note"),
)


def _class_row(one: ClassResult) -> tuple[Any, ...]:
    numbers = (attrs.astuple(getattr(one, measure)) for measure in _MEASURED)
    support = one.threshold, one.rows, one.patients, one.validation_rows, one.note
    return (one.init, one.name, *(number for three in numbers for number in three), *support)


@attrs.frozen(eq=False, slots=False, repr=False)
class Results:
    """The report of a run or of an evaluation. `record` has all of it, as report.json does."""

    record: Report | EvaluationReport

    @cached_property
    def scores(self) -> Table:
        """A row for each classifier, metric and level, with the 95 % interval over patients."""
        return Table.of_records(self.record.scores, Score)

    @cached_property
    def comparisons(self) -> Table:
        """Paired differences to the untrained control, with their 95 % intervals over patients."""
        return Table.of_records(self.record.comparisons, Comparison)

    @cached_property
    def classes(self) -> Table:
        """A row per class and encoder: AUROC, AUPRC, sensitivity, specificity, their intervals, threshold, support.

        Empty where the task is a number, or nothing was scored.
        """
        found = self.record.clinical.classes if self.record.clinical else ()
        return Table(_CLASS_COLUMNS, tuple(_class_row(one) for one in found))

    @cached_property
    def worst(self) -> Table:
        """The recordings whose predictions are farthest from their labels, the worst first."""
        return Table.of_records(self.record.clinical.worst if self.record.clinical else (), WorstRecording)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader of the scores must know."""
        return self.record.notes

    @property
    def verdict(self) -> str:
        """The sentence to read first: whether pre-training helped."""
        return verdict(self.record.scores, self.record.comparisons, self.record.notes).headline

    @property
    def summary(self) -> Table:
        """A row for each classifier and level: all metrics beside each other, the first with its interval."""
        return Table(*wide_score_rows(self.record.scores)) if self.record.scores else Table((), ())

    @property
    def other_encoders(self) -> dict[str, Table]:
        """Summaries of the encoders beside the first, by name, where a method trains one for each modality."""
        others = self.record.other_encoders if isinstance(self.record, Report) else ()
        return {one.name: Table(*wide_score_rows(one.scores)) for one in others if one.scores}

    def __repr__(self) -> str:
        others = [f"Encoder {name}:\n{table!r}" for name, table in self.other_encoders.items()]
        return "\n".join([self.verdict, *([repr(self.summary)] if self.record.scores else []), *self.notes, *others])

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        table = self.summary._repr_html_() if self.record.scores else ""
        others = "".join(
            f"<p>Encoder {escape(name)}:</p>{other._repr_html_()}" for name, other in self.other_encoders.items()
        )
        return f"<p><b>{escape(self.verdict)}</b></p>{table}" + (f"<ul>{notes}</ul>" if notes else "") + others
