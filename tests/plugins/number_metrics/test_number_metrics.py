"""Metrics of numbers against scipy and loops, with weights as repeated rows, one weighting or many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from clocs_plugins.number_metrics import clocs_metrics

METRICS = {metric.name: metric for metric in clocs_metrics()}


def rows(seed, count=30, ties=True):
    rng = np.random.default_rng(seed)
    label = rng.integers(20, 90, count) if ties else rng.normal(60, 15, count)
    predicted = label + rng.normal(0, 8, count)
    return (np.round(predicted, -1) if ties else predicted)[:, None], label.astype(np.float32)


def by_hand(name, predicted, label):
    p, y = predicted[:, 0], label.astype(np.float64)
    if name == "mae":
        return sum(abs(a - b) for a, b in zip(p, y, strict=True)) / len(y)
    if name == "r2":
        mean = sum(y) / len(y)
        error, spread = sum((a - b) ** 2 for a, b in zip(p, y, strict=True)), sum((b - mean) ** 2 for b in y)
        return 1 - error / spread
    return stats.spearmanr(p, y).statistic


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=20)
@given(seed=st.integers(0, 2**31), ties=st.booleans())
def test_a_weight_counts_rows_and_draws_together_score_as_each_by_itself(name, seed, ties):
    predicted, label = rows(seed, ties=ties)
    weights = np.random.default_rng(seed + 1).integers(0, 3, (4, len(label))).astype(np.float64)
    weights[:, :2] = 1
    found = METRICS[name].score_draws(predicted, label, weights)
    for weight, of_draw in zip(weights, found, strict=True):
        repeated = np.repeat(np.arange(len(label)), weight.astype(int))
        expected = by_hand(name, predicted[repeated], label[repeated])
        assert METRICS[name].score(predicted, label, weight) == pytest.approx(expected, abs=1e-9)
        assert of_draw == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", METRICS)
def test_where_a_metric_is_not_defined_it_is_nan(name):
    predicted, label = rows(0)
    score, ones = METRICS[name].score, np.ones(len(label))
    assert np.isnan(score(predicted, label, 0 * ones))
    same = np.full_like(label, 0.1)
    assert np.isnan(score(predicted, same, ones)) == (name != "mae")
    predicted[3] = np.nan
    assert np.isnan(score(predicted, label, ones))
    ones[3] = 0
    assert np.isfinite(score(predicted, label, ones))


def test_the_mean_of_the_labels_explains_nothing_and_perfect_predictions_everything():
    _, label = rows(0)
    ones, mean = np.ones(len(label)), np.full((len(label), 1), label.mean(dtype=np.float64))
    assert METRICS["r2"].score(mean, label, ones) == pytest.approx(0.0, abs=1e-12)
    assert METRICS["r2"].score(label[:, None].astype(np.float64), label, ones) == 1.0
    assert METRICS["mae"].score(label[:, None].astype(np.float64), label, ones) == 0.0
    assert METRICS["mae"].better == "lower"


def test_other_shapes_are_refused():
    predicted, label = rows(0)
    with pytest.raises(ValueError, match=r"expected \(n, 1\), \(n,\) and \(n,\)"):
        METRICS["mae"].score(predicted[:, 0], label, np.ones(len(label)))
