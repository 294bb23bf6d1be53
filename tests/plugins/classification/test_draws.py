"""Metrics of many bootstrap samples at once are those of each sample by itself."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_plugins.classification import clocs_metrics

METRICS = {metric.name: metric for metric in clocs_metrics()}


def rows(seed, count, classes, any_of, ties):
    rng = np.random.default_rng(seed)
    probability = rng.dirichlet(np.ones(classes), count)
    probability = np.round(probability, 1) if ties else probability
    label = rng.integers(0, 2, (count, classes)) if any_of else rng.integers(0, classes, count)
    weights = rng.integers(0, 3, (7, count)).astype(np.float64)
    weights[3] = 0  # a draw of nobody
    weights[4] = np.arange(count) == 0  # of one row only
    return probability, label, weights


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=25)
@given(st.integers(0, 2**31), st.integers(1, 40), st.integers(2, 5), st.booleans(), st.booleans())
def test_draws_together_score_as_each_by_itself(name, seed, count, classes, any_of, ties):
    """Intervals come from the quick way, values from the plain one: a difference would show nowhere else."""
    probability, label, weights = rows(seed, count, classes, any_of, ties)
    found = METRICS[name].score_draws(probability, label, weights)
    expected = [METRICS[name].score(probability, label, weight) for weight in weights]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    as_tensors = METRICS[name].score_tensors(*map(torch.from_numpy, (probability, label, weights)))
    np.testing.assert_allclose(as_tensors.numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_a_row_without_a_prediction_leaves_the_draws_without_it_alone(name):
    probability, label, weights = rows(0, 30, 3, False, False)
    probability[5] = np.nan
    weights[0, 5], weights[1, 5] = 0, 2
    found = METRICS[name].score_draws(probability, label, weights)
    expected = [METRICS[name].score(probability, label, weight) for weight in weights]
    assert np.isfinite(found[0])
    assert np.isnan(found[1])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    as_tensors = METRICS[name].score_tensors(*map(torch.from_numpy, (probability, label, weights)))
    np.testing.assert_allclose(as_tensors.numpy(), expected, rtol=1e-12)


@pytest.mark.cuda
@pytest.mark.parametrize("name", METRICS)
def test_a_gpu_scores_as_the_cpu(name):
    probability, label, weights = rows(1, 4000, 5, False, True)
    on_gpu = METRICS[name].score_tensors(*(torch.from_numpy(one).cuda() for one in (probability, label, weights)))
    np.testing.assert_allclose(on_gpu.cpu().numpy(), METRICS[name].score_draws(probability, label, weights), atol=1e-9)
