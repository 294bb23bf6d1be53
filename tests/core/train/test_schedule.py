"""The learning rate of every step, by the formulas, in loops."""

from __future__ import annotations

import math

import pytest
import torch

from clocs_core.train.schedule import Schedule


def expected(step, steps, warm_up, shape):
    """Share of the full rate in step 0, 1, …: a line up to it over the warm-up, then half a cosine down to zero."""
    rising = round(warm_up * steps) if warm_up < 1 else warm_up
    share = (step + 1) / rising if step < rising else 1.0
    if shape == "cosine" and step >= rising:
        share = (1 + math.cos(math.pi * (step - rising) / (steps - rising))) / 2
    return share


@pytest.mark.parametrize("shape", ["constant", "cosine"])
@pytest.mark.parametrize("warm_up", [0, 0.25, 3, 5.0, 40])
def test_every_step_has_the_rate_of_the_formulas(shape, warm_up):
    steps, schedule = 20, Schedule(shape, warm_up)
    for step in range(steps):
        found = schedule.share(torch.tensor(float(step), dtype=torch.float64), steps)
        assert float(found) == pytest.approx(expected(step, steps, warm_up, shape), abs=1e-12), step


def test_the_first_step_moves_and_the_rate_falls_to_zero_and_not_below():
    schedule = Schedule("cosine", 4)
    shares = [float(schedule.share(torch.tensor(float(step)), 10)) for step in range(14)]
    assert shares[0] == 0.25
    assert max(shares) == shares[3] == shares[4] == 1.0
    assert shares[9] > 0 == shares[10] == shares[13]  # a run that goes on longer than it said trains nothing more


@pytest.mark.parametrize(
    ("schedule", "same"), [(Schedule(), True), (Schedule("cosine"), False), (Schedule(warm_up=1), False)]
)
def test_a_schedule_without_warm_up_and_cosine_is_constant(schedule, same):
    assert schedule.is_constant == same
