"""Curves, areas and thresholds of one class, against loops over pairs and thresholds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from clocs_core.evaluation.ranking import POINTS, Ranking


def rows(seed, n=40):
    """Probabilities with ties, and classes that they follow a little."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.4
    return np.round(np.clip(rng.normal(0.4 + 0.2 * positive, 0.2), 0, 1), 1), positive


def oracle(probability, positive, weight, threshold):
    """The four numbers by definition: pairs, thresholds, counts."""
    pairs = right = 0.0
    for p, a, v in zip(probability, positive, weight, strict=True):
        for q, b, w in zip(probability, positive, weight, strict=True):
            if a and not b:
                pairs += v * w
                right += v * w * (1.0 if p > q else 0.5 if p == q else 0.0)
    average, recall = 0.0, 0.0
    there = weight[positive].sum()
    for at in sorted(set(probability.tolist()), reverse=True):
        said = probability >= at
        if weight[said].sum():
            now = weight[said & positive].sum() / there
            average += (now - recall) * weight[said & positive].sum() / weight[said].sum()
            recall = now
    said = probability >= threshold
    sensitivity = weight[said & positive].sum() / there
    specificity = weight[~said & ~positive].sum() / weight[~positive].sum()
    return right / pairs, average, sensitivity, specificity


@pytest.mark.parametrize("seed", range(4))
def test_the_numbers_of_every_draw_are_those_of_the_definitions(seed):
    probability, positive = rows(seed)
    weights = np.random.default_rng(9).integers(0, 3, (3, len(probability))).astype(float)
    found = Ranking.of(probability, positive).estimate(weights, 0.45)
    for one, weight in zip(found, weights, strict=True):
        assert one == pytest.approx(oracle(probability, positive, weight, 0.45), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_threshold_has_the_largest_youden_index(seed):
    probability, positive = rows(seed)
    chosen = Ranking.of(probability, positive).threshold()

    def youden(at):
        said = probability >= at
        return said[positive].mean() + (~said)[~positive].mean()

    assert youden(chosen) == pytest.approx(max(youden(at) for at in np.linspace(-0.1, 1.1, 121)))


def test_a_threshold_between_two_groups_lies_halfway():
    ranking = Ranking.of(np.array([0.9, 0.1, 0.8, 0.2]), np.array([True, False, True, False]))
    assert ranking.threshold() == pytest.approx(0.5)
    assert ranking.estimate(np.ones((1, 4)), 0.5)[0].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("there", [True, False])
def test_one_class_alone_has_no_area_no_curve_and_no_threshold(there):
    ranking = Ranking.of(np.array([0.3, 0.7]), np.array([there, there]))
    auroc, auprc, sensitivity, specificity = ranking.estimate(np.ones((1, 2)), 0.5)[0]
    assert math.isnan(auroc)
    assert math.isnan(auprc)
    assert math.isnan(ranking.threshold())
    assert (math.isnan(sensitivity), math.isnan(specificity)) == (not there, there)
    assert ranking.roc() == ranking.precision_recall() == ()


def test_without_a_threshold_there_is_no_sensitivity():
    found = Ranking.of(*rows(0)).estimate(np.ones((1, 40)), math.nan)[0]
    assert np.isnan(found).tolist() == [False, False, True, True]


def test_curves_run_from_corner_to_corner_and_stay_small():
    rng = np.random.default_rng(0)
    positive = rng.random(1000) < 0.3
    ranking = Ranking.of(rng.random(1000), positive)
    wrong, found = ranking.roc()
    assert (wrong[0], found[0], wrong[-1], found[-1]) == (0, 0, 1, 1)
    assert len(wrong) == POINTS
    recall, precision = ranking.precision_recall()
    assert recall[-1] == 1
    assert precision[-1] == pytest.approx(positive.mean(), abs=1e-4)


def test_bins_say_what_was_predicted_and_what_came_true():
    ranking = Ranking.of(np.array([0.05, 0.04, 0.95, 1.0]), np.array([False, True, True, True]))
    mean, share, count = ranking.reliability()
    assert mean == pytest.approx((0.045, 0.975))
    assert (share, count) == ((0.5, 1.0), (2.0, 2.0))


@pytest.mark.parametrize("threshold", [0.45, 2.0, -1.0, math.nan])
@pytest.mark.parametrize("there", ["both", "all", "none"])
def test_tensors_are_estimated_as_arrays_are(threshold, there):
    """Ties, draws without a positive or a negative, thresholds above and below all rows, and none at all."""
    probability, positive = rows(5)
    positive = positive if there == "both" else np.full(len(positive), there == "all")
    weights = np.random.default_rng(9).integers(0, 3, (6, len(probability))).astype(float)
    weights[0], weights[1], weights[2] = 0, weights[1] * positive, weights[2] * ~positive
    ranking = Ranking.of(probability, positive)
    found = ranking.estimate_on(torch.from_numpy(weights), threshold).numpy()
    np.testing.assert_allclose(found, ranking.estimate(weights, threshold), rtol=1e-13, atol=1e-13)
