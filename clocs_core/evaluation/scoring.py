"""Score predictions, in one way for every protocol: two levels, intervals over patients, paired differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Literal

import attrs
import torch

from clocs_core import seeds
from clocs_core.artifacts.clinical import Clinical
from clocs_core.artifacts.predictions import Classifier, Predictions
from clocs_core.contracts.records import Task
from clocs_core.contracts.result_offers import Metric
from clocs_core.contracts.scores import Comparison, Score
from clocs_core.evaluation.bootstrap import Interval, bootstrap_all, compare
from clocs_core.evaluation.linear import by_record
from clocs_core.evaluation.permutation import permutation_all
from clocs_core.settings.sections import ScoringSettings

_ENOUGH = 20  # test patients: with fewer, a percentile bootstrap covers clearly less than its nominal level


@attrs.frozen
class Evaluation:
    """Scores, paired comparisons, notes for the reader, the predictions behind them, and results for clinicians."""

    scores: tuple[Score, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    notes: tuple[str, ...] = ()
    predicted: Mapping[Classifier, Predictions] = attrs.field(factory=dict, eq=False)
    clinical: Clinical | None = None


@attrs.frozen
class Scoring:
    """The settings of scoring. Bootstrap draws depend on the split seed alone, so that all scores can be paired.

    device: where intervals are computed, for metrics that can; None: the CPU.
    """

    task: Task
    dataset: str
    metrics: tuple[Metric, ...]
    settings: ScoringSettings
    split_seed: int
    device: torch.device | None = None
    rows: Literal["frame", "record"] = "frame"  # what is predicted

    @property
    def fitting(self) -> tuple[Metric, ...]:
        """Metrics that fit the task's kind."""
        return tuple(metric for metric in self.metrics if self.task.kind in metric.tasks)

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels to score; with a label per frame, recordings have no label, so `record` is left out."""
        if self.rows == "record":
            return ("record",)
        return ("frame", "record") if self.task.per == "record" else ("frame",)

    @property
    def fraction_seed(self) -> int:
        """Seed of the label fraction: equal for all methods and seeds, so that they train on the same labels."""
        return seeds.derive(self.split_seed, "label fraction")

    def why_no_metric(self) -> str:
        """Return why no metric fits, as the end of a sentence; empty if one does."""
        return "" if self.fitting else f"no installed plugin offers a metric for {self.task.kind} tasks"


def score_predictions(
    predicted: Mapping[Classifier, Predictions],
    control: str,
    scoring: Scoring,
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> Evaluation:
    """Score predictions by fraction, metric and level; compare every init with the control, draw by draw."""
    scores: list[Score] = []
    comparisons: list[Comparison] = []
    fractions = tuple(dict.fromkeys(fraction for _, _, fraction in predicted))
    for number, fraction in enumerate(fractions):
        mine = {(protocol, init): rows for (protocol, init, of), rows in predicted.items() if of == fraction}
        drawn: dict[str, _Drawn] = {}
        for level in scoring.levels:
            drawn[level] = _Drawn.of(mine, level, control, scoring)
            tick(number * len(scoring.levels) + len(drawn), len(fractions) * len(scoring.levels))
        for metric, level in product(scoring.fitting, scoring.levels):
            found = drawn[level].intervals[metric.name]
            about = {"dataset": scoring.dataset, "label_fraction": fraction, "metric": metric.name, "level": level}
            scores += [_as_score(*key, one, about) for key, one in found.items()]
            comparisons += _compare_all(found, drawn[level].p[metric.name], control, metric, about)
    notes = [note for rows in predicted.values() for note in rows.notes]
    return Evaluation(
        tuple(scores), tuple(comparisons), tuple(dict.fromkeys((*_few_patients(predicted, scoring), *notes))), predicted
    )


def _few_patients(predicted: Mapping[Classifier, Predictions], scoring: Scoring) -> tuple[str, ...]:
    patients = len(set(next(iter(predicted.values())).patient.tolist())) if predicted else _ENOUGH
    if patients >= _ENOUGH:
        return ()
    return (
        f"Only {patients} {scoring.settings.part} patients are scored: bootstrap intervals over so few patients are "
        "too narrow to rely on.",
    )


@attrs.frozen(eq=False)
class _Drawn:
    """The scores of all classifiers at one level, and p of every one against the control, by metric and classifier."""

    intervals: dict[str, dict[tuple[str, str], Interval]]
    p: dict[str, dict[tuple[str, str], float | None]]

    @classmethod
    def of(cls, rows: Mapping[tuple[str, str], Predictions], level: str, control: str, scoring: Scoring) -> _Drawn:
        """Bootstrap and test all metrics at once. rows: of frames, by protocol and init."""
        metrics, settings, device = scoring.fitting, scoring.settings, scoring.device
        drawing, swapping = (seeds.derive(scoring.split_seed, purpose) for purpose in ("bootstrap", "permutation"))
        rows = {key: by_record(one) if level == "record" else one for key, one in rows.items()}
        found = {key: bootstrap_all(one, metrics, settings.resamples, drawing, device) for key, one in rows.items()}
        p = {
            key: permutation_all(one, rows[key[0], control], metrics, settings.permutations, swapping, device)
            for key, one in rows.items()
            if key[1] != control and (key[0], control) in rows
        }
        return cls(
            {metric.name: {key: one[at] for key, one in found.items()} for at, metric in enumerate(metrics)},
            {metric.name: {key: one[at] for key, one in p.items()} for at, metric in enumerate(metrics)},
        )


def _as_score(protocol: str, init: str, one: Interval, about: Mapping[str, object]) -> Score:
    return Score(protocol=protocol, init=init, value=one.value, low=one.low, high=one.high, **about)  # type: ignore[arg-type]


def _compare_all(
    found: Mapping[tuple[str, str], Interval],
    p: Mapping[tuple[str, str], float | None],
    control: str,
    metric: Metric,
    about: Mapping[str, object],
) -> list[Comparison]:
    """Compare every init that was tested, with the control of its protocol."""
    return [
        Comparison(
            a=init,
            b=control,
            protocol=protocol,
            difference=gain.value,
            low=gain.low,
            high=gain.high,
            better=metric.better,
            p=tested,
            **about,  # type: ignore[arg-type]
        )
        for (protocol, init), tested in p.items()
        for gain in (compare(found[protocol, init], found[protocol, control]),)
    ]
