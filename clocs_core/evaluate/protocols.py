"""Which scores a run reports: linear evaluation beside two controls that cannot be skipped."""

from __future__ import annotations

from collections.abc import Mapping

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

__all__ = ["Evaluation", "linear_protocol"]

_ENOUGH = 20  # test patients: below, a percentile bootstrap covers clearly less than it says


@attrs.frozen
class Evaluation:
    """Scores, paired comparisons, what a reader must know about them, and what they were made of."""

    scores: tuple[Score, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    notes: tuple[str, ...] = ()
    predicted: Mapping[Classifier, Predictions] = attrs.field(factory=dict, eq=False)


def linear_protocol(
    inits: Mapping[str, tuple[Features, Features]],
    task: Task,
    dataset: str,
    metrics: tuple[Metric, ...],
    settings: EvaluateSettings,
    split_seed: int,
) -> Evaluation:
    """Linear evaluation of every init (training and test features), the class prior, and each init against the last.

    The last init is the control, `random`. The share of labels and the bootstrap draws depend on the split seed
    alone, so that methods and seeds are compared on equal terms.
    """
    rows = {init: (labelled(train, task), labelled(test, task)) for init, (train, test) in inits.items()}
    for part, sizes in zip(("training", "test"), zip(*rows.values(), strict=True), strict=True):
        if not len(sizes[0]):
            return Evaluation(
                notes=(f"There is no score: no {part} frame of {dataset} has a label for {task.name!r}.",)
            )
    metrics = tuple(metric for metric in metrics if task.kind in metric.tasks)
    if not metrics:
        return Evaluation(notes=(f"There is no score: no installed plugin offers a metric for {task.kind} tasks.",))
    evaluation = Evaluation(notes=_few_patients(rows, settings.part))
    for fraction in settings.label_fraction:
        evaluation = _one_fraction(evaluation, rows, task, dataset, metrics, settings.resamples, fraction, split_seed)
    return attrs.evolve(evaluation, notes=tuple(dict.fromkeys(evaluation.notes)))


def _few_patients(rows: Mapping[str, tuple[Features, Features]], part: str) -> tuple[str, ...]:
    patients = len(set(next(iter(rows.values()))[1].patient.tolist()))
    if patients >= _ENOUGH:
        return ()
    return (f"The {part} has {patients} patients only: intervals by bootstrap over so few are too narrow to lean on.",)


def _one_fraction(
    so_far: Evaluation,
    rows: Mapping[str, tuple[Features, Features]],
    task: Task,
    dataset: str,
    metrics: tuple[Metric, ...],
    resamples: int,
    fraction: float,
    split_seed: int,
) -> Evaluation:
    chosen = seeds.derive(split_seed, "label fraction")
    few = {init: choose_fraction(train, fraction, chosen) for init, (train, _) in rows.items()}
    try:
        predicted = {("linear", init): linear(few[init], test, task) for init, (_, test) in rows.items()}
    except DataError as problem:  # too few labels for two classes: the other fractions, and the run, are worth keeping
        return attrs.evolve(so_far, notes=(*so_far.notes, f"There is no score at F = {fraction:g}: {problem}"))
    control = list(rows)[-1]
    predicted["prior", control] = prior(few[control], rows[control][1], task)
    scores, comparisons = list(so_far.scores), list(so_far.comparisons)
    for level, metric in ((level, metric) for metric in metrics for level in ("frame", "record")):
        if level == "record" and task.per != "record":
            continue  # a recording of a task with a label per frame has no label of its own
        found = {key: _score(rows_, level, metric, resamples, split_seed) for key, rows_ in predicted.items()}
        about = {"dataset": dataset, "label_fraction": fraction, "metric": metric.name, "level": level}
        scores += [
            Score(protocol=protocol, init=init, value=one.value, low=one.low, high=one.high, **about)  # type: ignore[arg-type]
            for (protocol, init), one in found.items()
        ]
        for init in list(rows)[:-1]:
            gain = compare(found["linear", init], found["linear", control])
            comparisons.append(
                Comparison(
                    a=init,
                    b=control,
                    protocol="linear",
                    difference=gain.value,
                    low=gain.low,
                    high=gain.high,
                    **about,  # type: ignore[arg-type]
                )
            )
    notes = tuple(note for one in predicted.values() for note in one.notes)
    all_predicted = {**so_far.predicted, **{(*key, fraction): rows_ for key, rows_ in predicted.items()}}
    return Evaluation(tuple(scores), tuple(comparisons), so_far.notes + notes, all_predicted)


def _score(rows: Predictions, level: str, metric: Metric, resamples: int, split_seed: int) -> Interval:
    chosen = by_record(rows) if level == "record" else rows
    return bootstrap(chosen, metric.score, resamples, seeds.derive(split_seed, "bootstrap"))
