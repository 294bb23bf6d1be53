"""Numbers as labels: the mean and the deviation of all that were seen, and encoders that do not depend on the unit."""

from __future__ import annotations

import statistics

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from clocs_core import Batch, Setup, Task, Views
from clocs_core.train.learner import start
from clocs_core.train.step import train_step
from clocs_plugins.supervised import clocs_objectives
from clocs_plugins.supervised.answer_scale import AnswerScale

NUMBER = Task("age", kind="number", unit="years")
NUMBERS = st.lists(st.floats(-1e4, 1e4, width=32) | st.just(float("nan")), min_size=1, max_size=9)


@given(batches=st.lists(NUMBERS, min_size=1, max_size=6), far=st.sampled_from([0.0, 2e4]))
def test_the_sums_are_those_of_all_labels_that_were_seen(batches, far):
    """As the functions of the standard library compute them in one go; missing labels do not count."""
    scale = AnswerScale().double()
    for batch in batches:
        scale(torch.tensor(batch, dtype=torch.float64) + far)
    seen = [value + far for batch in batches for value in batch if value == value]
    assert int(scale.count) == len(seen)
    if seen:
        assert float(scale.mean) == pytest.approx(statistics.fmean(seen), rel=1e-9, abs=1e-9)
        expected = statistics.pvariance(seen)
        assert float(scale.square / scale.count) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_labels_are_in_deviations_around_the_mean_and_validation_teaches_nothing():
    scale = AnswerScale()
    scale(torch.tensor([40.0, 60.0, float("nan")]))
    scale.eval()
    shown = scale(torch.tensor([50.0, 70.0, float("nan")]))
    assert shown[:2].tolist() == [0.0, 2.0]
    assert shown[2].isnan()
    assert (float(scale.count), float(scale.mean)) == (2.0, 50.0)


def test_equal_labels_and_none_at_all_are_no_division_by_zero():
    scale = AnswerScale()
    assert scale(torch.tensor([float("nan")])).isnan().all()
    assert scale(torch.tensor([7.0, 7.0])).tolist() == [0.0, 0.0]


def trained(unit: float, zero: float) -> tuple[list[torch.Tensor], list[float]]:
    """Train on the same answers in another unit, some of them missing."""
    draws = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(40, 6), nn.Tanh())
    (offer,) = clocs_objectives()
    objective = offer.build(offer.options(), Setup(encoder=nn.Identity(), embedding_dim=6, task=NUMBER))
    learner = start(nn.ModuleList([encoder]), objective, 1e-2)
    losses = []
    for _ in range(20):
        signal = torch.randn(1, 8, 1, 40, generator=draws)
        label = signal.mean((0, 2, 3))
        label[0] = torch.nan
        ids = torch.arange(8)
        views = Views(signal, Batch(signal.transpose(0, 1), ids, ids, ids, ids, label=label * unit + zero))
        losses.append(float(train_step(list(learner.encoders), learner.objective, learner.optimiser, views)))
    return [weight.detach() for weight in encoder.parameters()], losses


def test_the_encoder_does_not_depend_on_the_unit_of_the_answers():
    """Years or days: as it was, the loss was a thousand times larger, and only the bias was learnt."""
    (own, losses), (other, theirs) = trained(1.0, 0.0), trained(365.25, 18_000.0)
    for weight, expected in zip(other, own, strict=True):
        torch.testing.assert_close(weight, expected, rtol=0, atol=2e-3)
    assert theirs == pytest.approx(losses, rel=2e-2)
    assert losses[-1] < 1.5
