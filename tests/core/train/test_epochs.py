"""What is asked of an epoch before it is run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from clocs_core import seeds
from clocs_core.data.store import Instances
from clocs_core.settings.sections import TrainSettings
from clocs_core.train.epochs import equal_views, order_of, pairs_per_anchor, seed_epoch, share_of_lone_patients


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


def test_the_order_of_instances_follows_from_seed_and_epoch_alone():
    """Another seed trains in another order, and no epoch repeats the last one's batches."""
    orders = {
        (seed, epoch): tuple(order_of(training(None, seed, 50), epoch).tolist()) for seed in (0, 1) for epoch in (1, 2)
    }
    assert len(set(orders.values())) == 4
    assert all(sorted(order) == list(range(50)) for order in orders.values())
    assert orders[0, 1] == tuple(order_of(training(None, 0, 50), 1).tolist())


def test_views_and_dropout_are_drawn_anew_in_every_epoch_and_for_every_seed():
    """From generators of their own: views must not depend on how much dropout an encoder draws."""
    generator = torch.Generator()
    drawn = []
    for seed, epoch in ((0, 1), (0, 2), (1, 1), (0, 1)):
        seed_epoch(generator, seed, epoch)
        drawn.append((torch.rand(3).tolist(), torch.rand(3, generator=generator).tolist()))
    for purpose in (0, 1):
        first, *others, again = (one[purpose] for one in drawn)
        assert first == again
        assert first not in others
    assert drawn[0][0] != drawn[0][1]


def test_processes_draw_the_same_views_and_other_dropout():
    """The views are of the whole batch; equal dropout in all processes would correlate what they learn from."""
    generator = torch.Generator()
    drawn = []
    for rank in (0, 1, 2):
        seed_epoch(generator, 0, 1, rank)
        drawn.append((tuple(torch.rand(3).tolist()), tuple(torch.rand(3, generator=generator).tolist())))
    dropout, views = zip(*drawn, strict=True)
    assert len(set(dropout)) == 3
    assert len(set(views)) == 1


def test_pairs_per_anchor_are_counted_without_the_anchor():
    """Three instances of one patient and one of another, in one batch."""
    frames = Instances(torch.arange(4)[:, None], torch.zeros(4, 1, dtype=torch.int64))
    store = SimpleNamespace(patient=torch.tensor([7, 7, 7, 8]))
    settings = TrainSettings(batch_size=4)
    found = pairs_per_anchor(SimpleNamespace(store=store, train=frames, settings=settings, seed=0))
    assert found == ((3 * 1 + 1 * 3) / 4, (3 * 2 + 0) / 4)


@pytest.mark.parametrize(("patients", "size", "share"), [([7] * 8, 2, 1.0), (range(8), 2, 0.0), (range(8), 1, 1.0)])
def test_batches_of_one_patient_are_counted(patients, size, share):
    """Where nearly all are, the patients are never told apart."""
    frames = Instances(torch.arange(8)[:, None], torch.zeros(8, 1, dtype=torch.int64))
    store = SimpleNamespace(patient=torch.tensor(list(patients)))
    found = SimpleNamespace(store=store, train=frames, settings=TrainSettings(batch_size=size), seed=0)
    assert share_of_lone_patients(found) == share
