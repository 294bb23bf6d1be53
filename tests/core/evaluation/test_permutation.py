"""The paired permutation test over patients."""

from itertools import product

import numpy as np
import pytest

from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.result_offers import Metric
from clocs_core.evaluation.permutation import permutation_all, permutation_p


def accuracy(probability, label, weight):
    return float(((probability.argmax(1) == label) * weight).sum() / weight.sum())


def accuracies(probability, label, weights):
    return weights @ (probability.argmax(1) == label) / weights.sum(1)


ONE_BY_ONE = Metric(name="accuracy", summary="Share of rows that are right.", score=accuracy)
ACCURACY = Metric(name="accuracy", summary="Share of rows that are right.", score=accuracy, score_draws=accuracies)


def predictions(right, patient):
    """Rows of class 0, predicted right or wrong."""
    right = np.asarray(right, dtype=float)
    return Predictions(
        np.stack([right, 1 - right], axis=1), np.zeros(len(right), np.int64), np.asarray(patient), np.arange(len(right))
    )


def pair(seed, patients=8, rows=3, gain=0.0):
    """Two classifiers whose rows of a patient are alike; the first is right more often by `gain`."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(patients) + 5, rows)
    sides = []
    for more in (gain, 0.0):
        mostly = np.repeat(rng.random(patients) < 0.5 + more, rows)  # this patient is easy
        sides.append(predictions(np.where(rng.random(len(patient)) < 0.1, ~mostly, mostly), patient))
    return tuple(sides)


def difference_by_loops(a, b, swapped):
    """Accuracy of the first minus that of the second, after these patients swapped their rows."""
    right = [0, 0]
    for side, rows in enumerate((a, b)):
        for said, label, patient in zip(rows.probability, rows.label, rows.patient, strict=True):
            to = 1 - side if swapped[patient] else side
            right[to] += said[label] > 0.5
    return right[0] / len(a.label) - right[1] / len(b.label)


@pytest.mark.parametrize("metric", [ONE_BY_ONE, ACCURACY])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_p_is_that_of_loops_over_permutations_and_patients(metric, seed):
    a, b = pair(seed, gain=0.2)
    names = np.unique(a.patient)
    coins = np.random.default_rng(seed).integers(0, 2, (1 + 60, len(names)), dtype=np.uint16)[1:]
    observed = abs(difference_by_loops(a, b, dict.fromkeys(names, False)))
    as_large = 0
    for row in coins:
        swapped = dict(zip(names, row == 1, strict=True))
        as_large += abs(difference_by_loops(a, b, swapped)) >= observed - 1e-12
    assert permutation_p(a, b, metric, 60, seed) == pytest.approx((1 + as_large) / 61, abs=1e-15)


def test_with_many_permutations_p_is_that_of_all_possible_ones():
    a, b = pair(3, patients=7, gain=0.3)
    names = np.unique(a.patient)
    every = [
        abs(difference_by_loops(a, b, dict(zip(names, coins, strict=True))))
        for coins in product((False, True), repeat=7)
    ]
    exact = np.mean(np.array(every) >= every[0] - 1e-12)
    assert 0.02 < exact < 0.9
    assert permutation_p(a, b, ACCURACY, 20_000, 0) == pytest.approx(exact, abs=0.015)  # four standard errors


def test_p_is_uniform_where_the_classifiers_do_not_differ():
    """Rows of a patient are right or wrong together. Swapped row by row, half of these tests would say p < 0.05."""
    found = np.array([permutation_p(*pair(seed, patients=25, rows=12), ACCURACY, 99, seed) for seed in range(400)])
    for level in (0.05, 0.1, 0.25, 0.5, 0.75):
        assert np.mean(found <= level) == pytest.approx(level, abs=3.5 * np.sqrt(level * (1 - level) / 400) + 0.01)


def test_a_clear_difference_has_the_smallest_p_in_either_direction():
    good, bad = predictions([1] * 40, np.arange(40) // 2), predictions([0] * 40, np.arange(40) // 2)
    assert permutation_p(good, bad, ACCURACY, 199, 0) == permutation_p(bad, good, ACCURACY, 199, 0) == 1 / 200


def test_equal_predictions_have_p_1_whatever_sums_round_to():
    """Two sides that are the same differ by nothing in every permutation: all count as at least as large."""
    rng = np.random.default_rng(0)
    rows = predictions(rng.random(30), np.arange(30) // 3)

    def mean(probability, label, weight):
        return float((probability[:, 0] * weight).sum() / weight.sum())

    other = Predictions(rows.probability[::-1].copy(), rows.label, rows.patient[::-1].copy(), rows.record)
    metric = Metric(name="mean", summary="Mean probability.", score=mean)
    assert permutation_p(rows, other, metric, 50, 0) == 1


def test_the_seed_decides_the_swaps():
    a, b = pair(4, patients=20, gain=0.1)
    assert permutation_p(a, b, ACCURACY, 99, 0) == permutation_p(a, b, ACCURACY, 99, 0)
    assert len({permutation_p(a, b, ACCURACY, 99, seed) for seed in range(5)}) > 1


def test_rows_need_not_be_as_many_on_both_sides():
    """Recordings with other leads are compared recording by recording; patients are what is swapped."""
    a = predictions([1, 1, 0, 1], [0, 0, 1, 2])
    b = predictions([0, 0, 1], [0, 1, 2])
    assert permutation_p(a, b, ACCURACY, 99, 0) == permutation_p(a, b, ONE_BY_ONE, 99, 0)


def test_without_permutations_or_without_a_difference_there_is_no_p():
    a, b = pair(0)
    assert permutation_p(a, b, ACCURACY, 0, 0) is None
    undefined = Metric(name="none", summary="Not defined.", score=lambda *rows: float("nan"))
    assert permutation_p(a, b, undefined, 10, 0) is None


def test_a_permutation_without_a_difference_counts_as_large():
    """Leaving it out would make p too small."""
    a, b = predictions([1] * 10, range(10)), predictions([0] * 10, range(10))

    def only_unmixed(probability, label, weight):
        right = accuracy(probability, label, weight)
        return right if right in (0.0, 1.0) else float("nan")

    metric = Metric(name="some", summary="Defined for some.", score=only_unmixed)
    assert permutation_p(a, b, metric, 30, 0) == 1


def test_several_metrics_at_once_are_each_alone():
    a, b = pair(4, patients=20, gain=0.1)
    first = Metric(name="first", summary="First row.", score=lambda p, y, w: float(p[0, 0] * w[0]))
    several = (ONE_BY_ONE, first, ACCURACY)
    assert permutation_all(a, b, several, 99, 0) == [permutation_p(a, b, one, 99, 0) for one in several]
    assert permutation_all(a, b, several, 0, 0) == [None] * 3
