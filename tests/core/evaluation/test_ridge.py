"""Ridge regression against its definition: no small change of the weights lowers error plus penalty."""

from __future__ import annotations

import numpy as np
import pytest

from clocs_core import Task
from clocs_core.errors import DataError
from clocs_core.evaluation.features import Features
from clocs_core.evaluation.linear import GRID
from clocs_core.evaluation.ridge import ridge, ridge_with_best_c

AGE = Task("age", kind="number")


def rows(count, seed=0, dim=4):
    rng = np.random.default_rng(seed)
    x = rng.normal(3.0, 2.0, (count, dim)).astype(np.float32)
    y = (60 + x @ np.array([4.0, -2.0, 0.0, 1.0][:dim]) + rng.normal(size=count)).astype(np.float32)
    return Features(x, y, np.arange(count), np.arange(count))


def objective(x, y, weights, offset, c):
    """Squared error and penalty of a line, in loops."""
    lines = [offset + sum(w * value for w, value in zip(weights, row, strict=True)) for row in x]
    return sum((one - line) ** 2 for one, line in zip(y, lines, strict=True)) + sum(w * w for w in weights) / c


@pytest.mark.parametrize("c", [0.01, 1.0, 100.0])
def test_no_other_line_has_a_smaller_sum_of_error_and_penalty(c):
    train = rows(30)
    x = train.embedding.astype(np.float64)
    x = (x - x.mean(0)) / x.std(0)
    y = train.label.astype(np.float64)
    predicted = ridge(train, train, AGE, None, c).probability[:, 0]
    weights, *_ = np.linalg.lstsq(x, predicted - predicted.mean(), rcond=None)
    offset = predicted.mean()
    least = objective(x, y, weights, offset, c)
    rng = np.random.default_rng(1)
    for _ in range(20):
        change = 1e-3 * rng.normal(size=5)
        assert objective(x, y, weights + change[:4], offset + change[4], c) > least


def test_a_linear_relation_is_found_and_every_row_keeps_its_label():
    train, test = rows(400), rows(50, seed=1)
    found = ridge(train, test, AGE)
    assert found.probability.shape == (50, 1)
    assert np.abs(found.probability[:, 0] - test.label).mean() < 1.2  # the noise has a mean of 0.8
    np.testing.assert_array_equal(found.label, test.label)


def test_a_constant_dimension_and_more_dimensions_than_rows_do_no_harm():
    train = rows(3)
    train.embedding[:, 1] = 7.0
    assert np.isfinite(ridge(train, train, AGE).probability).all()


@pytest.mark.parametrize("part", [0, 1])
def test_embeddings_that_are_not_finite_are_refused_in_training_rows_and_in_scored_ones(part):
    parts = rows(5), rows(4)
    parts[part].embedding[2, 0] = np.nan
    with pytest.raises(DataError, match=f"embeddings of 1 of {len(parts[part])} frames are not finite"):
        ridge(*parts, AGE)


def test_the_best_c_is_that_of_the_smallest_error_on_validation_rows():
    train, validation, test = rows(12), rows(200, seed=1), rows(30, seed=2)

    def score(value, label, _weight):
        return -float(np.abs(value[:, 0] - label).mean())

    found, c, best = ridge_with_best_c(train, validation, test, AGE, score)
    errors = {one: score(ridge(train, validation, AGE, None, one).probability, validation.label, None) for one in GRID}
    assert best == errors[c] == max(errors.values())
    np.testing.assert_array_equal(found.probability, ridge(train, test, AGE, None, c).probability)
    assert ridge_with_best_c(train, validation, test, AGE, lambda *rows: np.nan)[1] == 1.0
