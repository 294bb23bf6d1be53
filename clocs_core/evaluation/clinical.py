"""Compute the results for clinicians: every class by itself at a threshold from validation patients, and numbers.

They are of recordings where recordings have labels, else of frames. Intervals are over patients, with the draws of all
other scores; the threshold stays what it is in every draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import torch
from numpy.typing import NDArray

from clocs_core import seeds
from clocs_core.artifacts.clinical import ClassResult, Clinical, Estimate, NumberResult
from clocs_core.artifacts.predictions import Classifier, Predictions
from clocs_core.artifacts.reports import CellSummary
from clocs_core.contracts.records import Task
from clocs_core.contracts.scores import PRIOR
from clocs_core.data.cohort import Cohort
from clocs_core.data.memory import within_memory
from clocs_core.evaluation.bootstrap import Floats, cut_interval, draw_weights, draw_weights_on
from clocs_core.evaluation.labelled_frames import LabelledFrames
from clocs_core.evaluation.linear import by_record
from clocs_core.evaluation.ranking import Ranking
from clocs_core.evaluation.scoring import Scoring
from clocs_core.evaluation.worst import find_worst

Flags = NDArray[np.bool_]

_FEW = 5  # patients with a class: with fewer, its intervals say little
_POINTS = 1500  # predictions of a number that are kept


def choose_thresholds(validation: Predictions | None, scoring: Scoring) -> tuple[float, ...]:
    """Choose a threshold for each class by the largest Youden index; empty without predictions of validation rows."""
    if validation is None or not scoring.task.classes:
        return ()
    rows = _at_level(validation, scoring)
    return tuple(Ranking.of(*columns).threshold() for columns in _columns(rows, scoring.task))


def clinical_results(
    predicted: Mapping[Classifier, Predictions],
    summaries: Mapping[Classifier, CellSummary],
    frames: LabelledFrames,
    cohort: Cohort,
    scoring: Scoring,
    names: tuple[Sequence[str], Sequence[str]],
) -> Clinical | None:
    """Summarise the classifiers with the most labels: the encoder's with its curves, then the control's.

    names: of patients and records by their numbers in `predicted`. None where nothing was predicted.
    """
    trained = [key for key in predicted if key[0] != PRIOR]
    most = max((fraction for _, _, fraction in trained), default=0.0)
    keys = [key for key in trained if key[2] == most]
    if not keys:
        return None
    rows, task = {key: _at_level(predicted[key], scoring) for key in keys}, scoring.task
    first = rows[keys[0]]
    level = scoring.levels[-1]
    start = frames.places(scoring.settings.part, cohort)["start"] if level == "frame" else None
    found = Clinical(
        protocol=keys[0][0],
        init=keys[0][1],
        label_fraction=most,
        part=scoring.settings.part,
        level=level,
        kind=task.kind,
        names=task.classes,
        unit=task.unit,
        rows=len(first.label),
        patients=len(np.unique(first.patient)),
        worst=find_worst(first, task, names, start),
    )
    if not task.classes:
        numbers = tuple(_number(key[1], rows[key], scoring, key == keys[0]) for key in keys)
        return attrs.evolve(found, numbers=numbers)
    held_out = _validation_labels(frames, scoring)
    classes = [
        one
        for key in keys
        for one in _classes(key[1], rows[key], summaries[key].thresholds, held_out, scoring, key == keys[0])
    ]
    return attrs.evolve(found, classes=tuple(classes), confusion=_CONFUSIONS[task.kind](first, task))


def _at_level(rows: Predictions, scoring: Scoring) -> Predictions:
    return by_record(rows) if scoring.levels[-1] == "record" else rows


def _columns(rows: Predictions, task: Task) -> list[tuple[Floats, Flags]]:
    """Return the probability and the truth of each class, (n,) each."""
    positive = _positives(rows.label, task)
    return [(rows.probability[:, place], positive[:, place]) for place in range(len(task.classes))]


def _positives(label: NDArray[np.int64], task: Task) -> Flags:
    """Return whether each row has each class (n, class)."""
    found: Flags = label == 1 if label.ndim == 2 else label[:, None] == np.arange(len(task.classes))
    return found


def _validation_labels(frames: LabelledFrames, scoring: Scoring) -> Flags:
    """Return whether each validation row has each class (n, class)."""
    rows = frames.rows["validation"]
    label = rows.label[np.unique(rows.record, return_index=True)[1]] if scoring.levels[-1] == "record" else rows.label
    return _positives(label, scoring.task)


def _classes(
    init: str, rows: Predictions, thresholds: Sequence[float], held_out: Flags, scoring: Scoring, with_curves: bool
) -> list[ClassResult]:
    """Return the results of one classifier, a record per class."""
    task = scoring.task
    ranked = [Ranking.of(*columns) for columns in _columns(rows, task)]
    chosen = list(thresholds) or [np.nan] * len(ranked)
    estimates = _estimate(ranked, chosen, rows, scoring)
    found = []
    for place, ((probability, positive), ranking) in enumerate(zip(_columns(rows, task), ranked, strict=True)):
        patients = len(np.unique(rows.patient[positive]))
        auroc, auprc, sensitivity, specificity = estimates[place]
        counts = {} if np.isnan(chosen[place]) else _count(probability >= chosen[place], positive)
        result = ClassResult(
            init=init,
            name=task.classes[place],
            rows=int(positive.sum()),
            patients=patients,
            validation_rows=int(held_out[:, place].sum()),
            threshold=chosen[place],
            auroc=auroc,
            auprc=auprc,
            sensitivity=sensitivity,
            specificity=specificity,
            roc=ranking.roc() if with_curves else (),
            precision_recall=ranking.precision_recall() if with_curves else (),
            reliability=ranking.reliability() if with_curves else (),
            note=_note(positive, patients, held_out[:, place], bool(thresholds), scoring),
        )
        result = attrs.evolve(result, **counts)
        found.append(result)
    return found


def _estimate(
    ranked: Sequence[Ranking], thresholds: Sequence[float], rows: Predictions, scoring: Scoring
) -> list[tuple[Estimate, ...]]:
    """Return AUROC, AUPRC, sensitivity and specificity of each class, with intervals over patients."""

    def draw(where: torch.device, share: float) -> list[Floats]:
        return draw_estimates(ranked, thresholds, rows.patient, scoring, where, share)

    found, once = [], np.ones((1, len(rows.label)))
    every = within_memory(draw, scoring.device or torch.device("cpu"))
    for drawn, ranking, threshold in zip(every, ranked, thresholds, strict=True):
        values = ranking.estimate(once, threshold)[0]
        found.append(tuple(_as_estimate(value, one) for value, one in zip(values, drawn.T, strict=True)))
    return found


def draw_estimates(
    ranked: Sequence[Ranking],
    thresholds: Sequence[float],
    patient: NDArray[np.int64],
    scoring: Scoring,
    device: torch.device,
    share: float,
) -> list[Floats]:
    """Estimate AUROC, AUPRC, sensitivity and specificity in every draw of the patients: (draw, 4) of each class."""
    how = patient, scoring.settings.resamples, seeds.derive(scoring.split_seed, "bootstrap")
    draws: list[list[Floats]] = [[np.empty((0, 4))] for _ in ranked]  # by class
    by_class = list(zip(draws, ranked, thresholds, strict=True))
    if device.type == "cpu":
        for block in draw_weights(*how):
            for held, ranking, threshold in by_class:
                held.append(ranking.estimate(block, threshold))
    else:
        for weights in draw_weights_on(device, *how, share):
            for held, ranking, threshold in by_class:
                held.append(ranking.estimate_on(weights, threshold).cpu().numpy())
    return [np.concatenate(held) for held in draws]


def _as_estimate(value: float, draws: Floats) -> Estimate:
    cut = cut_interval(value, draws)
    return Estimate(cut.value, cut.low, cut.high)


def _count(said: Flags, positive: Flags) -> dict[str, Any]:
    return {
        "true_positives": int((said & positive).sum()),
        "false_negatives": int((~said & positive).sum()),
        "false_positives": int((said & ~positive).sum()),
        "true_negatives": int((~said & ~positive).sum()),
    }


def _note(positive: Flags, patients: int, held_out: Flags, has_thresholds: bool, scoring: Scoring) -> str:
    """Say what is missing of a class, and why; empty if nothing."""
    part = scoring.settings.part
    things = "recording" if scoring.levels[-1] == "record" else "frame"
    said = []
    if not positive.any():
        said.append(f"no {part} {things} has it, so there is no AUROC, AUPRC or sensitivity")
    elif positive.all():
        said.append(f"every {part} {things} has it, so there is no AUROC, AUPRC or specificity")
    elif patients < _FEW:
        said.append(f"only {patients} {part} patient{'s have' if patients > 1 else ' has'} it: intervals say little")
    if not len(held_out):
        said.append(f"no validation {things} has a label, so there is no threshold")
    elif not held_out.any():
        said.append(f"no validation {things} has it, so there is no threshold")
    elif held_out.all():
        said.append(f"every validation {things} has it, so there is no threshold")
    elif not has_thresholds:
        said.append("the classifier predicted no validation patients, so there is no threshold")
    return "; ".join(said)


def _matrix(rows: Predictions, task: Task) -> tuple[tuple[int, ...], ...]:
    """Count the rows of each true class (row) by the most probable class (column)."""
    counts = np.zeros((len(task.classes), len(task.classes)), dtype=np.int64)
    np.add.at(counts, (rows.label, rows.probability.argmax(1)), 1)
    return tuple(tuple(row) for row in counts.tolist())


_CONFUSIONS: dict[str, Callable[[Predictions, Task], tuple[tuple[int, ...], ...]]] = {
    "one_of": _matrix,
    "any_of": lambda rows, task: (),  # a table of four counts per class instead
}


def _number(init: str, rows: Predictions, scoring: Scoring, with_points: bool) -> NumberResult:
    """Return how far one classifier's predictions of a number are off."""
    true, predicted = rows.label.astype(np.float64), rows.probability[:, 0]
    off = np.stack([predicted - true, np.abs(predicted - true)])  # (2, n)
    blocks = draw_weights(rows.patient, scoring.settings.resamples, seeds.derive(scoring.split_seed, "bootstrap"))
    drawn = np.concatenate([np.empty((0, 2)), *(block @ off.T / block.sum(1, keepdims=True) for block in blocks)])
    bias, error = (_as_estimate(float(one.mean()), draws) for one, draws in zip(off, drawn.T, strict=True))
    spread = 1.96 * float(off[0].std(ddof=1)) if len(true) > 1 else float("nan")
    shown = np.unique(np.linspace(0, len(true) - 1, _POINTS).astype(np.int64)) if with_points else np.arange(0)
    return NumberResult(
        init=init,
        bias=bias,
        error=error,
        limits_low=bias.value - spread,
        limits_high=bias.value + spread,
        true=tuple(true[shown].tolist()),
        predicted=tuple(predicted[shown].tolist()),
    )
