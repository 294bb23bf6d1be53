"""The records of the results for clinicians: each class by itself, a confusion matrix, numbers, worst recordings."""

from __future__ import annotations

import math

import attrs


@attrs.frozen
class Estimate:
    """A value with its 95 % interval by bootstrap over patients; NaN where it is not defined."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan


@attrs.frozen(kw_only=True)
class ClassResult:
    """How well one classifier tells one class from the rest.

    rows, patients: scored rows that have the class, and their patients. validation_rows: the same on validation
    patients, where the threshold was chosen. threshold: the lowest probability that counts as a positive finding; NaN
    where there is none, and `note` says why.
    true_positives, false_negatives, false_positives, true_negatives: rows at the threshold; 0 without one.
    roc: false positive rates, and sensitivities. precision_recall: recalls, and precisions. reliability: for ten bins,
    the mean probability, the share of rows that have the class, and the number of rows. Curves have at most 64 points;
    the control has none.
    """

    init: str
    name: str
    rows: int
    patients: int
    validation_rows: int
    threshold: float
    auroc: Estimate
    auprc: Estimate
    sensitivity: Estimate
    specificity: Estimate
    true_positives: int = 0
    false_negatives: int = 0
    false_positives: int = 0
    true_negatives: int = 0
    roc: tuple[tuple[float, ...], ...] = ()
    precision_recall: tuple[tuple[float, ...], ...] = ()
    reliability: tuple[tuple[float, ...], ...] = ()
    note: str = ""


@attrs.frozen(kw_only=True)
class NumberResult:
    """How far the predictions of a number are off, as predicted - true, in the unit of the task.

    bias: the mean difference. error: the mean absolute difference. limits_low, limits_high: the limits of agreement,
    bias - 1.96 SD and bias + 1.96 SD. true, predicted: at most 1,500 rows; the control has none.
    """

    init: str
    bias: Estimate
    error: Estimate
    limits_low: float
    limits_high: float
    true: tuple[float, ...] = ()
    predicted: tuple[float, ...] = ()


@attrs.frozen(kw_only=True)
class WorstRecording:
    """A recording whose prediction is far from its label, in words.

    error: of one class 1 - its probability; of any classes the largest gap of one class; of a number the distance.
    start: first sample of the worst frame, where frames have labels.
    """

    record: str
    patient: str
    label: str
    predicted: str
    error: float
    start: int = 0


@attrs.frozen(kw_only=True)
class Clinical:
    """The results for clinicians, of the classifiers with the most labels.

    init: the weights whose curves, confusion matrix and worst recordings these are. rows, patients: scored in all.
    level: `record`, or `frame` where frames have labels. names, unit: of the task.
    confusion: rows of each true class by the most probable class, where one class of several holds; else empty.
    """

    protocol: str
    init: str
    label_fraction: float
    part: str
    level: str
    kind: str
    names: tuple[str, ...]
    unit: str
    rows: int
    patients: int
    classes: tuple[ClassResult, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()
    numbers: tuple[NumberResult, ...] = ()
    worst: tuple[WorstRecording, ...] = ()
