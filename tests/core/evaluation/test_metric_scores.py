"""A metric that fails, returns something else than scores or changes its arguments is named."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from clocs_core.contracts.result_offers import Metric
from clocs_core.errors import PluginError, SettingsError
from clocs_core.evaluation.metric_scores import score_draws, score_once, score_tensors

ROWS = (np.array([[0.2, 0.8], [0.6, 0.4]]), np.array([1, 0]))
WEIGHTS = np.ones((3, 2))
TENSORS = tuple(map(torch.tensor, (*ROWS, WEIGHTS)))


def once(score):
    return score_once(Metric(name="mine", summary="Mine.", score=score), *ROWS, WEIGHTS[0])


def draws(score):
    return score_draws(Metric(name="mine", summary="Mine.", score=once, score_draws=score), *ROWS, WEIGHTS)


def tensors(score):
    return score_tensors(Metric(name="mine", summary="Mine.", score=once, score_tensors=score), *TENSORS)


@pytest.mark.parametrize("value", [0.25, np.float32(0.25), np.array(0.25), np.float64(0.25)])
def test_a_score_is_a_float(value):
    found = once(lambda *_: value)
    assert (type(found), found) == (float, 0.25)


def test_a_score_may_be_undefined():
    assert np.isnan(once(lambda *_: float("nan")))


@pytest.mark.parametrize("value", [None, "0.5", np.zeros(2), [0.5, 0.5], 1j])
def test_another_score_is_named(value):
    with pytest.raises(PluginError, match="`score` of the metric 'mine' must return a float, NaN where it is not"):
        once(lambda *_: value)


@pytest.mark.parametrize("value", [None, 0.5, np.zeros(2), np.zeros((3, 1)), ["a", "b", "c"]])
def test_draws_have_a_score_each(value):
    """One number for all draws gave an interval without a width."""
    np.testing.assert_array_equal(draws(lambda *_: [1, 2, 3]), [1.0, 2.0, 3.0])
    with pytest.raises(PluginError, match=r"`score_draws` of the metric 'mine' must return floats of the shape \(3,\)"):
        draws(lambda *_: value)


@pytest.mark.parametrize("value", [None, torch.zeros(2), torch.zeros(3, dtype=torch.int64), np.zeros(3)])
def test_tensors_have_a_score_for_each_draw(value):
    assert tensors(lambda *_: torch.ones(3)).dtype == torch.float64
    with pytest.raises(PluginError, match="`score_tensors` of the metric 'mine' must return a tensor of floats"):
        tensors(lambda *_: value)


@pytest.mark.parametrize("problem", [KeyError("boom"), SystemExit(3)])
@pytest.mark.parametrize(("call", "name"), [(once, "score"), (draws, "score_draws"), (tensors, "score_tensors")])
def test_a_metric_that_fails_is_named(call, name, problem):
    def score(*_):
        raise problem

    said = re.escape(f"`{name}` of the metric 'mine' failed: {type(problem).__name__}: {problem}")
    with pytest.raises(PluginError, match=said):
        call(score)


@pytest.mark.parametrize("problem", [SettingsError("No."), torch.OutOfMemoryError("full")])
def test_our_own_errors_and_a_full_gpu_pass(problem):
    """With less memory, smaller blocks are tried."""

    def score(*_):
        raise problem

    with pytest.raises(type(problem)):
        tensors(score)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_metric_cannot_change_the_rows_of_the_next_draw(which):
    def score(*rows):
        rows[which][:] = 0
        return 0.5

    with pytest.raises(PluginError, match="failed: ValueError: assignment destination is read-only"):
        once(score)
    assert ROWS[0].flags.writeable
    assert ROWS[0].sum() == pytest.approx(2.0)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_metric_that_changes_tensors_is_named(which):
    """The other metrics would score what it has left behind."""

    def score(*given):
        given[which].zero_()
        return torch.ones(3)

    given = [one.clone() for one in TENSORS]
    with pytest.raises(PluginError, match="`score_tensors` of the metric 'mine' changes its arguments"):
        score_tensors(Metric(name="mine", summary="Mine.", score=once, score_tensors=score), *given)
