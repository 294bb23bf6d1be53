"""Methods that are to be compared can be given equally many instances, of all patients."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clocs_core.data.exposure import expose, limit_instances, settle_epochs
from clocs_core.data.store import Instances
from clocs_core.settings.sections import TrainSettings


def some(count):
    """Instances that can be told apart, by their frame."""
    return Instances(torch.arange(count)[:, None] * 10, torch.zeros(count, 1, dtype=torch.int64))


@given(
    patient=st.lists(st.integers(0, 6), min_size=1, max_size=40),
    most=st.integers(1, 45),
    seed=st.integers(0, 3),
)
def test_patients_take_turns(patient, most, seed):
    """No patient has two instances more than another who still has some: all patients stay, as long as that can be."""
    chosen = limit_instances(some(len(patient)), torch.tensor(patient), most, seed).frame[:, 0].div(10).int().tolist()
    assert len(set(chosen)) == len(chosen) == min(most, len(patient))
    had, have = Counter(patient), Counter(patient[one] for one in chosen)
    for one in had:
        for other in had:
            assert have[one] == had[one] or have[other] <= have[one] + 1


def test_fewer_lie_within_more_and_another_seed_draws_others():
    """A curve over the number of instances then has one thing that changes."""
    patient = torch.arange(60) % 7
    ten, thirty = (set(limit_instances(some(60), patient, most, 0).frame[:, 0].tolist()) for most in (10, 30))
    assert ten < thirty
    assert set(limit_instances(some(60), patient, 10, 1).frame[:, 0].tolist()) != ten


def test_enough_is_all_in_the_same_order():
    instances = some(5)
    assert limit_instances(instances, torch.arange(5), 5, 0) is instances


@pytest.mark.parametrize(("batch", "steps"), [(4, 9), (5, 6), (100, 3)])
def test_a_ragged_batch_is_a_step_too(batch, steps):
    found = expose(torch.tensor([1, 1, 2, 3, 3, 3, 4, 5, 5]), batch, epochs=3)
    assert (found.patients, found.instances, found.steps) == (5, 9, steps)


@given(count=st.integers(1, 5000), batch=st.integers(1, 300), total=st.integers(1, 100_000), most=st.integers(1, 6000))
def test_a_total_is_missed_by_half_an_epoch_at_most(count, batch, total, most):
    """Whether it is of steps or of instances, and also where a run has fewer instances than there are."""
    each = min(count, most)
    settings = TrainSettings(batch_size=batch, instances=most, total_instances=total)
    assert abs(settle_epochs(settings, count).epochs * each - total) <= max(each / 2, each - total)
    steps = -(-each // batch)
    settings = TrainSettings(batch_size=batch, instances=most, total_steps=total)
    assert abs(settle_epochs(settings, count).epochs * steps - total) <= max(steps / 2, steps - total)


def test_without_a_total_epochs_stay_and_two_totals_are_one_too_many():
    assert settle_epochs(TrainSettings(epochs=7), 100) == TrainSettings(epochs=7)
    with pytest.raises(ValueError, match="leave one of them out"):
        TrainSettings(total_steps=1, total_instances=1)
