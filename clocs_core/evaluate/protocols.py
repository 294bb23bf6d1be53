"""From predictions to scores, by one path for every protocol: two levels, intervals over patients, paired differences.

And linear evaluation as every run reports it, beside two controls that cannot be skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import attrs

from clocs_core import seeds
from clocs_core.data.records import Task
from clocs_core.errors import DataError
from clocs_core.evaluate.features import Features, labelled
from clocs_core.evaluate.linear import Predictions, by_record, choose_fraction, linear, prior
from clocs_core.evaluate.predictionfile import Classifier
from clocs_core.evaluate.statistics import Interval, bootstrap, compare
from clocs_core.extend.offers import Metric
from clocs_core.scores import Comparison, Score
from clocs_core.settings import EvaluateSettings

__all__ = ["Evaluation", "Scoring", "linear_protocol", "score_predictions"]

_ENOUGH = 20  # test patients: below, a percentile bootstrap covers clearly less than it says


@attrs.frozen
class Evaluation:
    """Scores, paired comparisons, what a reader must know about them, and what they were made of."""

    scores: tuple[Score, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    notes: tuple[str, ...] = ()
    predicted: Mapping[Classifier, Predictions] = attrs.field(factory=dict, eq=False)


@attrs.frozen
class Scoring:
    """How predictions are scored. Bootstrap draws depend on the split seed alone, so that all can be paired."""

    task: Task
    dataset: str
    metrics: tuple[Metric, ...]
    settings: EvaluateSettings
    split_seed: int

    @property
    def fitting(self) -> tuple[Metric, ...]:
        """The metrics for the task's kind."""
        return tuple(metric for metric in self.metrics if self.task.kind in metric.tasks)

    @property
    def levels(self) -> tuple[str, ...]:
        """A recording of a task with a label per frame has no label of its own."""
        return ("frame", "record") if self.task.per == "record" else ("frame",)

    @property
    def fraction_seed(self) -> int:
        """Of the share of labels: the same for all methods and seeds, so that they are compared on equal terms."""
        return seeds.derive(self.split_seed, "label fraction")

    def no_metric(self) -> str:
        """Why there is no score where no metric fits."""
        return f"There is no score: no installed plugin offers a metric for {self.task.kind} tasks."


def linear_protocol(
    inits: Mapping[str, tuple[Features, Features]],
    task: Task,
    dataset: str,
    metrics: tuple[Metric, ...],
    settings: EvaluateSettings,
    split_seed: int,
) -> Evaluation:
    """Linear evaluation of every init (training and test features), the class prior, and each init against the last.

    The last init is the control, `random`.
    """
    scoring = Scoring(task, dataset, metrics, settings, split_seed)
    rows = {init: (labelled(train, task), labelled(test, task)) for init, (train, test) in inits.items()}
    for part, sizes in zip(("training", "test"), zip(*rows.values(), strict=True), strict=True):
        if not len(sizes[0]):
            return Evaluation(
                notes=(f"There is no score: no {part} frame of {dataset} has a label for {task.name!r}.",)
            )
    if not scoring.fitting:
        return Evaluation(notes=(scoring.no_metric(),))
    control = list(rows)[-1]
    predicted: dict[Classifier, Predictions] = {}
    missing: list[str] = []
    for fraction in settings.label_fraction:
        few = {init: choose_fraction(train, fraction, scoring.fraction_seed) for init, (train, _) in rows.items()}
        try:
            found = {("linear", init, fraction): linear(few[init], test, task) for init, (_, test) in rows.items()}
        except DataError as problem:  # too few labels for two classes: the other fractions are worth keeping
            missing.append(f"There is no score at F = {fraction:g}: {problem}")
            continue
        predicted |= found
        predicted["prior", control, fraction] = prior(few[control], rows[control][1], task)
    evaluation = score_predictions(predicted, control, scoring)
    return attrs.evolve(evaluation, notes=tuple(dict.fromkeys((*evaluation.notes, *missing))))


def score_predictions(
    predicted: Mapping[Classifier, Predictions],
    control: str,
    scoring: Scoring,
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> Evaluation:
    """Score what was predicted, by fraction, metric and level; compare every init with the control, draw by draw."""
    scores: list[Score] = []
    comparisons: list[Comparison] = []
    fractions = tuple(dict.fromkeys(fraction for _, _, fraction in predicted))
    asked = tuple(product(fractions, scoring.fitting, scoring.levels))
    for number, (fraction, metric, level) in enumerate(asked, start=1):
        mine = {(protocol, init): rows for (protocol, init, of), rows in predicted.items() if of == fraction}
        found = {key: _score(rows, level, metric, scoring) for key, rows in mine.items()}
        about = {"dataset": scoring.dataset, "label_fraction": fraction, "metric": metric.name, "level": level}
        scores += [_as_score(*key, one, about) for key, one in found.items()]
        comparisons += _compare_all(found, control, about)
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
        f"The {scoring.settings.part} has {patients} patients only: intervals by bootstrap over so few are too narrow "
        "to lean on.",
    )


def _score(rows: Predictions, level: str, metric: Metric, scoring: Scoring) -> Interval:
    chosen = by_record(rows) if level == "record" else rows
    seed = seeds.derive(scoring.split_seed, "bootstrap")
    return bootstrap(chosen, metric.score, scoring.settings.resamples, seed, metric.score_draws)


def _as_score(protocol: str, init: str, one: Interval, about: Mapping[str, object]) -> Score:
    return Score(protocol=protocol, init=init, value=one.value, low=one.low, high=one.high, **about)  # type: ignore[arg-type]


def _compare_all(
    found: Mapping[tuple[str, str], Interval], control: str, about: Mapping[str, object]
) -> list[Comparison]:
    """Every init against the control of its own protocol, where there is one."""
    return [
        Comparison(
            a=init,
            b=control,
            protocol=protocol,
            difference=gain.value,
            low=gain.low,
            high=gain.high,
            **about,  # type: ignore[arg-type]
        )
        for (protocol, init), one in found.items()
        if init != control and (protocol, control) in found
        for gain in (compare(one, found[protocol, control]),)
    ]
