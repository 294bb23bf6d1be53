"""The scores of finished rows on PTB-XL: means over seeds, with intervals over seeds and patients."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import islice
from typing import Any

import attrs
import torch
from ptbxl_rows import IDENTIFICATION, LINEAR, Place, Row, evaluation_folder, evaluations

import clocs_core as clocs
from clocs_core.artifacts.evaluation_folder import EvaluationFolder
from clocs_core.artifacts.predictions import Predictions, read_predictions
from clocs_core.contracts.result_offers import Metric
from clocs_core.evaluation.bootstrap import Interval, bootstrap
from clocs_core.evaluation.identification import RECALLS
from clocs_core.evaluation.linear import by_record
from clocs_core.evaluation.over_seeds import difference_over_seeds, mean_over_seeds
from clocs_core.evaluation.permutation import permutation_all
from clocs_plugins.classification import clocs_metrics

RESAMPLES = 1000
"""Bootstrap samples of the patients, the same for all rows."""
PERMUTATIONS = 1000
METRICS = {one.name: one for one in (*clocs_metrics(), *RECALLS)}


def summarise(row: Row, place: Place) -> dict[str, Any] | None:
    """Collect the scores of a row over the seeds that are finished."""
    folders = [place.folder(row, seed) for seed in range(row.seeds)]
    folders = [one for one in folders if (one / "report.json").exists()]
    if not folders:
        return None
    runs = [clocs.load_run(one) for one in folders]
    found: dict[str, Any] = attrs.asdict(row, filter=lambda field, _: field.name != "evaluations")
    found |= {
        "parameters": sum(weight.numel() for weight in runs[0].encoder.network.parameters()),
        "records": dict(runs[0].record.split.records),
        "pretrained_on": sorted({one.record.environment["device"] for one in runs}),
        "pretrain_seconds": [round(one.record.seconds["pretrain"], 1) for one in runs],
        "scores": [],
    }
    for number, how in enumerate(evaluations(row, place)):
        if several := _finished(row, number, how, place):
            found["scores"] += _scores(several, how)
    return found


def compare(row: Row, other: Row, place: Place) -> dict[str, list[float]]:
    """Return how far a row is above another on each task, by the linear model, with the interval.

    It is over seeds and patients, and over patients alone where a row has one seed.
    """
    found = {}
    for number, how in enumerate(islice(evaluations(row, place), len(place.tasks))):  # the linear ones
        ours, theirs = (_finished(one, number, how, place) for one in (row, other))
        if ours and theirs:
            found[str(how["task"])] = _rounded(difference_over_seeds(_trained(ours), _trained(theirs), paired=False))
    return found


def _finished(row: Row, number: int, how: dict[str, Any], place: Place) -> list[EvaluationFolder]:
    """Return the folders of an evaluation, of the seeds that are finished."""
    folders = [evaluation_folder(place.folder(row, seed), number, how, place) for seed in range(row.seeds)]
    return [EvaluationFolder(one) for one in folders if (one / "report.json").exists()]


def _trained(folders: Sequence[EvaluationFolder]) -> list[Interval]:
    """Return the AUROC of the pre-trained encoder with all labels, of each seed."""
    report = folders[0].read_report()
    predicted = [read_predictions(one.predictions) for one in folders]
    return [_interval(one[report.protocol, report.init, 1.0], METRICS["auroc"]) for one in predicted]


def _interval(predicted: Predictions, metric: Metric) -> Interval:
    """Return the score of recordings, with its bootstrap over patients."""
    return bootstrap(by_record(predicted), metric, RESAMPLES, 0, _device())


def _p(ours: Predictions, theirs: Predictions, metric: Metric) -> float | None:
    """Return p of the difference of one seed: the share of permutations of the patients with as large a one."""
    return permutation_all(by_record(ours), by_record(theirs), (metric,), PERMUTATIONS, 0, _device())[0]


def _device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _scores(folders: Sequence[EvaluationFolder], how: dict[str, Any]) -> list[dict[str, Any]]:
    """Return mean and interval over seeds and patients of one evaluation at each F, and those over its control.

    how: the settings of the evaluation.
    """
    reports = [one.read_report() for one in folders]
    predicted = [read_predictions(one.predictions) for one in folders]
    first, made = reports[0], []
    name = "recall_at_1" if first.protocol == IDENTIFICATION else "auroc"
    metric = METRICS[name]
    for fraction in sorted({f for _, _, f in predicted[0]}):
        pairs = [tuple(one[first.protocol, init, fraction] for init in (first.init, "random")) for one in predicted]
        ours, theirs = ([_interval(one, metric) for one in side] for side in zip(*pairs, strict=True))
        mean, control = mean_over_seeds(ours), mean_over_seeds(theirs)
        gain = difference_over_seeds(ours, theirs, paired=True)
        made.append(
            {
                "protocol": first.protocol,
                "task": first.task,
                "label_fraction": fraction,
                "chosen": how.get("C") == "auto",  # on fold 9
                "settings": {name: value for name, value in how.items() if name not in ("protocol", "task")},
                "C": [c.C for r in reports for c in r.cells if (c.init, c.label_fraction) == (first.init, fraction)],
                "seeds": [round(one.value, 5) for one in ours],
                **{word: _rounded(one) for word, one in ((name, mean), ("random", control), ("gain", gain))},
                "p": [_p(pair[0], pair[1], metric) for pair in pairs],
                "seconds": round(statistics.median(sum(r.seconds.values()) for r in reports), 1),
            }
        )
    return made


def _rounded(one: Interval) -> list[float]:
    return [round(float(x), 5) for x in (one.value, one.low, one.high)]


def score_of(score: dict[str, Any]) -> list[float]:
    """Return mean and interval of a score: AUROC, or the recall of patient identification."""
    found: list[float] = score.get("auroc") or score["recall_at_1"]
    return found


def is_main(score: dict[str, Any]) -> bool:
    """Return whether a score is of the main table, whose C was chosen and which has all labels.

    Label fractions have a fixed C and are listed by themselves.
    """
    return score["protocol"] == LINEAR and score["label_fraction"] == 1 and bool(score["chosen"])


def by_fraction(row: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the scores of an evaluation at several label fractions, by task, smallest fraction first."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in row["scores"]:
        if one["protocol"] == LINEAR and not one["chosen"]:
            found.setdefault(one["task"], []).append(one)
    several = {task: sorted(scores, key=lambda one: one["label_fraction"]) for task, scores in found.items()}
    return {task: scores for task, scores in several.items() if len(scores) > 1}
