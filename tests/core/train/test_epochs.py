"""What is asked of an epoch before it is run."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from clocs_core import seeds
from clocs_core.train.epochs import equal_views


def training(make_views, seed=5, instances=3):
    store = SimpleNamespace(device=torch.device("cpu"), gather=lambda instances, rows: rows)
    return SimpleNamespace(store=store, train=range(instances), make_views=make_views, seed=seed)


def test_views_that_are_copies_of_the_first_are_named():
    """A method that contrasts a signal with itself learns nothing, and a run should say so."""

    def make(rows, generator):
        first = torch.randn(len(rows), 1, 20, generator=generator)
        return SimpleNamespace(signal=torch.stack([first, first + 1, first.clone()]))

    assert equal_views(training(make)) == [2]


def test_their_random_numbers_have_a_purpose_of_their_own():
    """Drawn from the seed of the run itself, they would be the numbers that some other purpose draws."""
    drawn = []

    def make(rows, generator):
        drawn.append(torch.rand(4, generator=generator))
        return SimpleNamespace(signal=torch.zeros(1, len(rows), 1, 1))

    equal_views(training(make))
    own = seeds.generator(torch.device("cpu"), 5, "equal views")
    assert torch.equal(drawn[0], torch.rand(4, generator=own))
