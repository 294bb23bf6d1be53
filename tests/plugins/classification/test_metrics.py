"""AUROC and average precision against their definitions, row by row, and against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from clocs_core.testing import checks_of, failures
from clocs_plugins.classification import clocs_metrics
from clocs_plugins.classification.metrics import auprc_per_class, auroc_per_class, macro_auprc, macro_auroc

quick = settings(max_examples=60)


def area_by_pairs(score, positive, weight):
    """The share of (positive, negative) pairs in the right order, a tie being half right."""
    right = total = 0.0
    for i in range(len(score)):
        for j in range(len(score)):
            if positive[i] and not positive[j]:
                pair = weight[i] * weight[j]
                total += pair
                right += pair * (1.0 if score[i] > score[j] else 0.5 if score[i] == score[j] else 0.0)
    return right / total if total else math.nan


def macro_by_pairs(probability, is_positive, weight):
    areas = [
        area_by_pairs([row[c] for row in probability], [is_positive(r, c) for r in range(len(probability))], weight)
        for c in range(len(probability[0]))
    ]
    areas = [area for area in areas if not math.isnan(area)]
    return sum(areas) / len(areas) if areas else math.nan


@st.composite
def predictions(draw):
    """Probabilities on a coarse grid, so that ties are common, with weights as a bootstrap gives them."""
    n, c = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    grid = st.lists(st.integers(0, 4), min_size=c, max_size=c)
    probability = np.array(draw(st.lists(grid, min_size=n, max_size=n)), dtype=np.float64) / 4
    weight = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), dtype=np.float64)
    return probability, weight


@given(predicted=predictions(), data=st.data())
@quick
def test_one_of_many_classes_is_scored_pair_by_pair(predicted, data):
    """Ties, absent classes and rows that a bootstrap sample left out included."""
    probability, weight = predicted
    n, c = probability.shape
    label = np.array(data.draw(st.lists(st.integers(0, c - 1), min_size=n, max_size=n)))
    expected = macro_by_pairs(probability.tolist(), lambda row, one: label[row] == one, weight)
    assert macro_auroc(probability, label, weight) == pytest.approx(expected, nan_ok=True)


@given(predicted=predictions(), data=st.data())
@quick
def test_any_of_many_classes_is_scored_pair_by_pair(predicted, data):
    """A row may be of several classes or of none."""
    probability, weight = predicted
    n, c = probability.shape
    row = st.lists(st.integers(0, 1), min_size=c, max_size=c)
    label = np.array(data.draw(st.lists(row, min_size=n, max_size=n)))
    expected = macro_by_pairs(probability.tolist(), lambda row, one: label[row, one] == 1, weight)
    assert macro_auroc(probability, label, weight) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("seed", range(5))
def test_scikit_learn_agrees_on_weighted_rows(seed):
    """An implementation that others have checked, at a size where accumulated errors would show."""
    rng = np.random.default_rng(seed)
    probability = rng.random((2000, 3)).round(2)
    weight = rng.poisson(1.0, 2000).astype(np.float64)
    label = rng.integers(3, size=2000)
    many = rng.integers(2, size=(2000, 3))
    one_hot = np.eye(3, dtype=np.int64)[label]
    for given_label, truth in ((label, one_hot), (many, many)):
        expected = roc_auc_score(truth, probability, average="macro", sample_weight=weight)
        assert macro_auroc(probability, given_label, weight) == pytest.approx(expected, abs=1e-12)


def test_a_perfect_classifier_scores_1_though_a_class_is_absent():
    """Numbering the classes anew by those that occur compares shifted columns and gives 0.833."""
    label = np.array([0, 0, 1, 1, 3, 3])
    perfect = np.eye(4)[label]
    assert macro_auroc(perfect, label, np.ones(6)) == 1.0
    np.testing.assert_array_equal(auroc_per_class(perfect, label, np.ones(6)), [1.0, 1.0, np.nan, 1.0])


def test_a_class_that_a_bootstrap_sample_leaves_out_is_absent():
    """Weight 0 is not there: neither its positives nor its negatives count."""
    label = np.array([0, 1, 2, 2])
    probability = np.eye(3)[label]
    probability[3] = [1.0, 0.0, 0.0]
    np.testing.assert_array_equal(auroc_per_class(probability, label, np.array([1.0, 1, 1, 0])), [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(auroc_per_class(probability, label, np.array([1.0, 1, 0, 0])), [1.0, 1.0, np.nan])


def test_a_weight_counts_rows():
    """Weight 3 is the row three times: what makes a bootstrap by weights a bootstrap."""
    rng = np.random.default_rng(0)
    probability, label, weight = rng.random((30, 3)), rng.integers(3, size=30), rng.integers(4, size=30)
    repeated = np.repeat(np.arange(30), weight)
    expected = macro_auroc(probability[repeated], label[repeated], np.ones(len(repeated)))
    assert macro_auroc(probability, label, weight.astype(np.float64)) == pytest.approx(expected, abs=1e-14)


def test_a_guess_scores_one_half():
    """All tied: every pair is half right."""
    assert macro_auroc(np.full((6, 2), 0.5), np.array([0, 1, 0, 1, 1, 1]), np.ones(6)) == 0.5


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_where_nothing_can_be_compared_the_score_is_nan(rows):
    """One class only, or no row: not 0, not 1, and no warning."""
    assert math.isnan(macro_auroc(np.full((rows, 2), 0.5), np.zeros(rows, dtype=np.int64), np.ones(rows)))


def test_a_prediction_that_is_not_a_number_is_no_score():
    """A diverged classifier must not look like a middling one; a row of weight 0 does not matter."""
    probability = np.array([[0.2, 0.8], [0.9, 0.1], [np.nan, np.nan]])
    label = np.array([1, 0, 1])
    assert math.isnan(macro_auroc(probability, label, np.ones(3)))
    assert macro_auroc(probability, label, np.array([1.0, 1.0, 0.0])) == 1.0


@pytest.mark.parametrize(
    ("label", "weight", "message"),
    [
        (np.zeros(3, dtype=np.int64), np.ones(4), r"label \(3,\).*expected \(n, class\)"),
        (np.zeros(4, dtype=np.int64), np.ones(3), r"weight \(3,\).*expected \(n, class\)"),
        (np.zeros((4, 3), dtype=np.int64), np.ones(4), r"label \(4, 3\)"),
        (np.array([0, 1, 2, 0]), np.ones(4), "labels from 0 to 2, expected 0 to 1"),
        (np.array([0, 1, -1, 0]), np.ones(4), "labels from -1 to 1, expected 0 to 1"),
        (np.full((4, 2), 2), np.ones(4), "labels from 2 to 2, expected 0 to 1"),
    ],
)
def test_labels_that_do_not_fit_are_refused(label, weight, message):
    """A missing label (-1) that counts as a negative would lower the score in silence."""
    with pytest.raises(ValueError, match=message):
        macro_auroc(np.full((4, 2), 0.5), label, weight)


def test_the_metrics_are_offered_for_both_kinds_of_task_and_the_paper_s_comes_first():
    """Reports choose metrics by the task's kind, and the first one makes the headline."""
    offers = clocs_metrics()
    assert [offer.name for offer in offers] == ["auroc", "auprc", "f1", "calibration"]
    for offer in offers:
        assert set(offer.tasks) == {"one_of", "any_of"}
        assert offer.score(np.eye(2), np.array([0, 1]), np.ones(2)) == 1.0
        assert offer.score(np.eye(2), np.eye(2, dtype=np.int64), np.ones(2)) == 1.0
        assert failures(checks_of(offer)) == {}


# --------------------------------------------------------------------------------------------------- average precision


def precision_by_thresholds(score, positive, weight):
    """The sum over thresholds, from the highest score down, of precision times the recall that is gained there."""
    whole = sum(w for w, p in zip(weight, positive, strict=True) if p)
    others = sum(w for w, p in zip(weight, positive, strict=True) if not p)
    if not whole or not others:
        return math.nan
    total, before = 0.0, 0.0
    for threshold in sorted(set(score), reverse=True):
        found = [i for i in range(len(score)) if score[i] >= threshold]
        right, said = sum(weight[i] for i in found if positive[i]), sum(weight[i] for i in found)
        if said:
            total += (right / whole - before) * right / said
            before = right / whole
    return total


@given(predicted=predictions(), data=st.data())
@quick
def test_average_precision_is_summed_threshold_by_threshold(predicted, data):
    """Ties are one threshold: in an order of their own they would be scored by luck."""
    probability, weight = predicted
    n, c = probability.shape
    label = np.array(data.draw(st.lists(st.integers(0, c - 1), min_size=n, max_size=n)))
    expected = [
        precision_by_thresholds(probability[:, one].tolist(), (label == one).tolist(), weight.tolist())
        for one in range(c)
    ]
    np.testing.assert_allclose(auprc_per_class(probability, label, weight), expected, atol=1e-12)
    defined = [one for one in expected if not math.isnan(one)]
    mean = sum(defined) / len(defined) if defined else math.nan
    assert macro_auprc(probability, label, weight) == pytest.approx(mean, nan_ok=True)


def test_average_precision_agrees_with_scikit_learn():
    rng = np.random.default_rng(1)
    label, weight = rng.integers(0, 2, (200, 3)), rng.integers(0, 4, 200).astype(np.float64)
    probability = np.round(0.3 * label + rng.random((200, 3)), 1)
    expected = average_precision_score(label, probability, average="macro", sample_weight=weight)
    assert macro_auprc(probability, label, weight) == pytest.approx(expected, abs=1e-12)


def test_a_guess_has_the_share_of_positives_as_its_average_precision():
    assert auprc_per_class(np.full((8, 2), 0.5), np.array([0, 1, 1, 1, 1, 1, 1, 0]), np.ones(8)).tolist() == [
        0.25,
        0.75,
    ]
