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
from clocs_core.evaluation.bootstrap import Interval, bootstrap, compare
from clocs_core.evaluation.linear import by_record
from clocs_core.evaluation.permutation import permutation_p
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
    asked = tuple(product(fractions, scoring.fitting, scoring.levels))
    for number, (fraction, metric, level) in enumerate(asked, start=1):
        mine = {(protocol, init): rows for (protocol, init, of), rows in predicted.items() if of == fraction}
        at_level = {key: by_record(rows) if level == "record" else rows for key, rows in mine.items()}
        found = {key: _score(rows, metric, scoring) for key, rows in at_level.items()}
        about = {"dataset": scoring.dataset, "label_fraction": fraction, "metric": metric.name, "level": level}
        scores += [_as_score(*key, one, about) for key, one in found.items()]
        comparisons += _compare_all(found, at_level, control, metric, scoring, about)
        tick(number, len(asked))
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


def _score(rows: Predictions, metric: Metric, scoring: Scoring) -> Interval:
    seed = seeds.derive(scoring.split_seed, "bootstrap")
    return bootstrap(rows, metric, scoring.settings.resamples, seed, scoring.device)


def _as_score(protocol: str, init: str, one: Interval, about: Mapping[str, object]) -> Score:
    return Score(protocol=protocol, init=init, value=one.value, low=one.low, high=one.high, **about)  # type: ignore[arg-type]


def _compare_all(
    found: Mapping[tuple[str, str], Interval],
    rows: Mapping[tuple[str, str], Predictions],
    control: str,
    metric: Metric,
    scoring: Scoring,
    about: Mapping[str, object],
) -> list[Comparison]:
    """Compare every init with the control of its protocol, if there is one."""
    permutations, seed = scoring.settings.permutations, seeds.derive(scoring.split_seed, "permutation")
    return [
        Comparison(
            a=init,
            b=control,
            protocol=protocol,
            difference=gain.value,
            low=gain.low,
            high=gain.high,
            better=metric.better,
            p=permutation_p(rows[protocol, init], rows[protocol, control], metric, permutations, seed, scoring.device),
            **about,  # type: ignore[arg-type]
        )
        for (protocol, init), one in found.items()
        if init != control and (protocol, control) in found
        for gain in (compare(one, found[protocol, control]),)
    ]
