"""F1 and calibration against their definitions in loops, and against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import f1_score

from clocs_plugins.classification.decisions import BINS, calibration, macro_f1

quick = settings(max_examples=60)


@st.composite
def samples(draw):
    """Probabilities on a coarse grid, so that ties and edges are common, labels of either kind, bootstrap weights."""
    n, c = draw(st.integers(1, 10)), draw(st.integers(2, 4))
    grid = st.lists(st.integers(0, 6), min_size=c, max_size=c)
    probability = np.array(draw(st.lists(grid, min_size=n, max_size=n)), dtype=np.float64) / 6
    weight = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), dtype=np.float64)
    if draw(st.booleans()):
        label = np.array(draw(st.lists(st.integers(0, c - 1), min_size=n, max_size=n)))
    else:
        label = np.array(draw(st.lists(st.lists(st.integers(0, 1), min_size=c, max_size=c), min_size=n, max_size=n)))
    return probability, label, weight


def is_of(label, row, one):
    return label[row] == one if label.ndim == 1 else label[row][one] == 1


def decides(probability, label, row, one):
    if label.ndim == 2:
        return probability[row][one] > 0.5
    values = list(probability[row])
    return values.index(max(values)) == one


def f1_in_loops(probability, label, weight):
    found = []
    for one in range(probability.shape[1]):
        right = said = there = 0.0
        for row in range(len(probability)):
            positive, decided = is_of(label, row, one), decides(probability, label, row, one)
            right += weight[row] * (positive and decided)
            said += weight[row] * decided
            there += weight[row] * positive
        if there:
            precision, recall = right / said if said else 0.0, right / there
            found.append(2 * precision * recall / (precision + recall) if precision + recall else 0.0)
    return sum(found) / len(found) if found else math.nan


def error_in_loops(rows):
    """rows: (confidence, right, weight). A bin holds what is above its lower edge, up to and including its upper."""
    whole = sum(weight for _, _, weight in rows)
    error = 0.0
    for number in range(BINS):
        low, high = number / BINS, (number + 1) / BINS
        mine = [row for row in rows if (low < row[0] <= high) or (number == 0 and row[0] == 0)]
        count = sum(weight for _, _, weight in mine)
        if count:
            confidence = sum(p * weight for p, _, weight in mine) / count
            accuracy = sum(right * weight for _, right, weight in mine) / count
            error += count / whole * abs(confidence - accuracy)
    return error


def calibration_in_loops(probability, label, weight):
    rows = [row for row in range(len(weight)) if weight[row] > 0]
    if not rows:
        return math.nan
    if label.ndim == 1:
        decided = {row: list(probability[row]).index(max(probability[row])) for row in rows}
        chosen = [(probability[row][decided[row]], float(label[row] == decided[row]), weight[row]) for row in rows]
        return 1 - error_in_loops(chosen)
    errors = []
    for one in range(probability.shape[1]):
        errors.append(error_in_loops([(probability[row][one], float(label[row][one]), weight[row]) for row in rows]))
    return 1 - sum(errors) / len(errors)


@given(sample=samples())
@quick
def test_f1_is_made_of_decisions_class_by_class(sample):
    """Ties, classes that do not occur, rows that a bootstrap sample left out: both kinds of task."""
    assert macro_f1(*sample) == pytest.approx(f1_in_loops(*sample), nan_ok=True)


@given(sample=samples())
@quick
def test_calibration_is_made_of_bins(sample):
    """A row on an edge, an empty bin, a weight of 0: none of them is a surprise."""
    assert calibration(*sample) == pytest.approx(calibration_in_loops(*sample), nan_ok=True)


def test_f1_agrees_with_scikit_learn():
    """Over the classes that occur; scikit-learn takes their names."""
    rng = np.random.default_rng(2)
    probability, weight = rng.random((150, 4)), rng.integers(0, 4, 150).astype(np.float64)
    label = rng.integers(0, 3, 150)  # the last class never occurs, and is decided for all the same
    expected = f1_score(label, probability.argmax(1), labels=[0, 1, 2], average="macro", sample_weight=weight)
    assert macro_f1(probability, label, weight) == pytest.approx(expected, abs=1e-12)
    many = rng.integers(0, 2, (150, 4))
    expected = f1_score(many, probability > 0.5, average="macro", sample_weight=weight)
    assert macro_f1(probability, many, weight) == pytest.approx(expected, abs=1e-12)


def test_calibration_agrees_with_the_curve_of_scikit_learn():
    """Its reliability curve has the same bins; the error is the mean distance from the diagonal."""
    rng = np.random.default_rng(3)
    probability = rng.random((500, 1))
    label = (rng.random((500, 1)) < probability**2).astype(np.int64)
    right, confidence = calibration_curve(label[:, 0], probability[:, 0], n_bins=BINS, strategy="uniform")
    counts = np.histogram(probability[:, 0], BINS, (0, 1))[0]
    expected = 1 - (np.abs(right - confidence) * counts).sum() / 500
    assert calibration(probability, label, np.ones(500)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("score", [macro_f1, calibration])
def test_what_says_nothing_has_no_score(score):
    """No row, or a diverged classifier; a row of weight 0 does not matter."""
    assert math.isnan(score(np.empty((0, 2)), np.empty(0, dtype=np.int64), np.empty(0)))
    probability = np.array([[0.0, 1.0], [1.0, 0.0], [np.nan, np.nan]])
    assert math.isnan(score(probability, np.array([1, 0, 1]), np.ones(3)))
    assert score(probability, np.array([1, 0, 1]), np.array([1.0, 1.0, 0.0])) == 1.0


def test_confident_and_wrong_is_the_worst_calibration_and_a_modest_guess_the_best():
    """The class prior is well calibrated though it knows nothing: read it beside a score of ranking."""
    label = np.array([0, 1] * 10)
    assert calibration(np.eye(2)[1 - label], label, np.ones(20)) == 0.0
    assert calibration(np.full((20, 2), 0.5), label, np.ones(20)) == 1.0
