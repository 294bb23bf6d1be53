"""Intervals by bootstrap over patients."""

import numpy as np
import pytest
import torch

from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.result_offers import Metric
from clocs_core.errors import ClocsWarning
from clocs_core.evaluation.bootstrap import Interval, bootstrap, bootstrap_all, compare


def accuracy(probability, label, weight):
    right = probability.argmax(1) == label
    return float((right * weight).sum() / weight.sum())


def metric(score, **more):
    return Metric(name="accuracy", summary="Share of rows that are right.", score=score, **more)


ACCURACY = metric(accuracy)


def predictions(right, patient):
    right = np.asarray(right, dtype=float)
    label = np.zeros(len(right), dtype=np.int64)
    return Predictions(np.stack([right, 1 - right], axis=1), label, np.asarray(patient), np.asarray(patient))


def test_whole_patients_are_drawn_so_that_many_frames_of_few_patients_give_a_wide_interval():
    """Four patients of 250 frames each say as much as four frames do, not as much as a thousand."""
    patient = np.repeat(np.arange(4), 250)
    clustered = bootstrap(predictions(patient < 2, patient), ACCURACY, 500, seed=0)
    independent = bootstrap(predictions(patient < 2, np.arange(1000)), ACCURACY, 500, seed=0)
    assert clustered.value == independent.value == 0.5
    assert clustered.high - clustered.low > 0.7
    assert independent.high - independent.low < 0.1


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    """A simulation: the mean of 40 patients, 200 times; 95 % intervals hold 0.6 in nearly 95 % of them."""
    rng = np.random.default_rng(0)
    covered = 0
    for trial in range(200):
        right = rng.random(40) < 0.6
        found = bootstrap(predictions(right, np.arange(40)), ACCURACY, 200, seed=trial)
        covered += found.low <= 0.6 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


def test_a_paired_difference_is_narrower_than_the_two_intervals_suggest():
    """Both methods are right and wrong on the same patients, but for one: what is common cancels."""
    patient = np.arange(100)
    right = np.random.default_rng(1).random(100) < 0.5
    better = right.copy()
    better[np.flatnonzero(~right)[:10]] = True
    a, b = (bootstrap(predictions(rows, patient), ACCURACY, 500, seed=3) for rows in (better, right))
    gain = compare(a, b)
    assert gain.value == pytest.approx(0.10)
    assert gain.low > 0
    assert gain.high - gain.low < 0.7 * (a.high - a.low)


def test_a_difference_is_paired_draw_by_draw():
    """The patients of a draw are the same for both; a prediction that differs by a constant differs by no more."""
    a = Interval(0.75, 0.5, 1.0, np.array([0.5, 1.0, 0.75, np.nan]))
    b = Interval(0.25, 0.0, 0.5, np.array([0.0, 0.5, 0.25, 0.5]))
    gain = compare(a, b)
    np.testing.assert_array_equal(gain.draws, [0.5, 0.5, 0.5, np.nan])
    assert (gain.value, gain.low, gain.high) == (0.5, 0.5, 0.5)


def test_the_interval_is_the_central_95_percent_of_the_draws():
    rows = predictions(np.arange(40) % 3 == 0, np.arange(40))
    found = bootstrap(rows, ACCURACY, 400, 5)
    assert found.value == accuracy(rows.probability, rows.label, np.ones(40))
    assert (found.low, found.high) == tuple(np.percentile(found.draws, [2.5, 97.5]))
    assert 0.03 < np.std(found.draws) < 0.12  # sqrt(p (1 - p) / 40) is 0.075


def test_the_same_seed_gives_the_same_interval():
    rows = predictions(np.arange(30) % 3 == 0, np.arange(30) // 2)
    assert bootstrap(rows, ACCURACY, 50, 5) == bootstrap(rows, ACCURACY, 50, 5)
    assert bootstrap(rows, ACCURACY, 50, 5).low != bootstrap(rows, ACCURACY, 50, 6).low


def test_draws_without_a_value_are_left_out_and_none_at_all_gives_nan():
    rows = predictions([1, 1, 0], [0, 1, 2])
    sometimes = bootstrap(rows, metric(lambda p, y, w: float("nan") if w[2] == 0 else 1.0), 50, 0)
    assert (sometimes.low, sometimes.high) == (1.0, 1.0)
    never = bootstrap(rows, metric(lambda p, y, w: float("nan")), 50, 0)
    assert np.isnan(never.low)


def test_a_metric_that_scores_many_draws_at_once_gives_the_same_interval(monkeypatch):
    """Blocks of draws, whatever their size, are the draws of one call each."""
    rows = predictions(np.arange(60) % 3 == 0, np.arange(60) // 4)

    def accuracies(probability, label, weights):
        return np.array([accuracy(probability, label, weight) for weight in weights])

    one_by_one = bootstrap(rows, ACCURACY, 50, 5)
    for at_once in (2**20, 60 * 7, 1):
        monkeypatch.setattr("clocs_core.evaluation.bootstrap._AT_ONCE", at_once)
        found = bootstrap(rows, metric(accuracy, score_draws=accuracies), 50, 5)
        assert found == one_by_one
        np.testing.assert_array_equal(found.draws, one_by_one.draws)


def tensor_accuracies(probability, label, weights):
    assert weights.dtype == torch.float64
    right = (probability.argmax(1) == label).double()
    return weights @ right / weights.sum(1)


def test_on_a_gpu_that_is_short_of_memory_draws_come_in_smaller_blocks_and_then_from_the_cpu(monkeypatch):
    """Here no GPU is needed: tensors stay where they are, and the metric raises what a GPU would."""
    rows = predictions(np.arange(60) % 3 == 0, np.arange(60) // 4)
    sizes = []

    def short(probability, label, weights):
        sizes.append(len(weights))
        if len(sizes) < 4:
            raise torch.OutOfMemoryError
        return tensor_accuracies(probability, label, weights)

    tensor = torch.tensor
    monkeypatch.setattr("clocs_core.evaluation.bootstrap.torch.tensor", lambda one, device: tensor(one))
    monkeypatch.setattr(torch.Tensor, "to", lambda one, where: one)
    monkeypatch.setattr("clocs_core.evaluation.bootstrap._AT_ONCE_ON_GPU", 60 * 40)
    with pytest.warns(ClocsWarning, match="memory of cuda does not suffice"):
        found = bootstrap(rows, metric(accuracy, score_tensors=short), 50, 5, torch.device("cuda"))
    assert sizes == [40, 5, 1, 50]
    np.testing.assert_allclose(found.draws, bootstrap(rows, ACCURACY, 50, 5).draws, atol=1e-12)


def test_a_metric_without_tensors_is_scored_on_the_cpu_whatever_the_device():
    rows = predictions(np.arange(60) % 3 == 0, np.arange(60) // 4)
    assert bootstrap(rows, ACCURACY, 50, 5, torch.device("cuda")) == bootstrap(rows, ACCURACY, 50, 5)


@pytest.mark.cuda
@pytest.mark.parametrize("at_once", [2**27, 60 * 7])
def test_a_gpu_gives_the_interval_of_the_cpu(monkeypatch, at_once):
    monkeypatch.setattr("clocs_core.evaluation.bootstrap._AT_ONCE_ON_GPU", at_once)
    rows = predictions(np.arange(60) % 3 == 0, np.arange(60) // 4)
    found = bootstrap(rows, metric(accuracy, score_tensors=tensor_accuracies), 50, 5, torch.device("cuda"))
    np.testing.assert_allclose(found.draws, bootstrap(rows, ACCURACY, 50, 5).draws, atol=1e-12)


def test_several_metrics_at_once_are_each_alone():
    """Whether a metric scores draws one by one or in blocks; each keeps its place."""
    rng = np.random.default_rng(4)
    rows = predictions(rng.random(60) < 0.7, np.arange(60) // 3)
    several = (
        metric(accuracy, score_draws=lambda p, y, w: np.array([accuracy(p, y, one) for one in w])),
        ACCURACY,
        metric(lambda p, y, w: float(w[0]), score_draws=lambda p, y, w: w[:, 0]),
        metric(lambda p, y, w: float(w.max())),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clocs_core.evaluation.bootstrap._AT_ONCE", 60 * 7)  # 7 draws in a block
        found = bootstrap_all(rows, several, 50, 5)
    for one, alone in zip(found, (bootstrap(rows, one, 50, 5) for one in several), strict=True):
        assert (one.value, one.low, one.high) == (alone.value, alone.low, alone.high)
        assert np.array_equal(one.draws, alone.draws)
