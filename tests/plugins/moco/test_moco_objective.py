"""Momentum contrast: the loss and the queue in loops, and what a checkpoint must keep."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

from clocs_core import Batch, Setup, Task, Views
from clocs_core.testing.threads import on_ranks
from clocs_core.train.projector import Projector
from clocs_core.train.ranks import Part
from clocs_core.train.step import Encoding, loss_of, train_step
from clocs_plugins.moco import clocs_methods, clocs_objectives


def encoder():
    torch.manual_seed(1)
    return nn.Sequential(nn.Flatten(), nn.Linear(2 * 8, 6), nn.Tanh()).double()


def build(reader, projector=None, **options):
    (offer,) = clocs_objectives()
    setup = Setup(encoder=reader, embedding_dim=6, task=Task("t", classes=("a", "b")), projector=projector)
    torch.manual_seed(0)
    return offer.build(offer.options(**{"queue": 7, "momentum": 0.9, "temperature": 0.5, **options}), setup).double()


def views_of(patients, seed=0, views=2, **more):
    ids = torch.tensor(patients)
    signal = torch.randn(views, len(ids), 2, 8, generator=torch.Generator().manual_seed(seed)).double()
    return Views(signal, Batch(signal.transpose(0, 1), ids, ids, ids, ids), **more)


def unit(vector):
    length = math.sqrt(sum(float(x) ** 2 for x in vector))
    return [float(x) / length for x in vector]


def dot(u, v):
    return sum(x * y for x, y in zip(u, v, strict=True))


class LoopMoco:
    """The paper's algorithm with lists: a queue that grows at one end and is cut at the other."""

    def __init__(self, objective, size, temperature):
        self.queue = [(row, None) for row in objective.keys.tolist()]
        self.size, self.temperature = size, temperature

    def loss(self, query_of, key_of, views, pairs):
        patients = views.batch.patient.tolist()
        losses = []
        for a, b in pairs:
            for row, patient in enumerate(patients):
                q, k = unit(query_of(views.signal[a, row])), unit(key_of(views.signal[b, row]))
                right = math.exp(dot(q, k) / self.temperature)
                wrong = sum(math.exp(dot(q, n) / self.temperature) for n, whose in self.queue if whose != patient)
                losses.append(-math.log(right / (right + wrong)))
        for view in views.signal:
            for row, patient in enumerate(patients):
                self.queue.append((unit(key_of(view[row])), patient))
        self.queue = self.queue[-self.size :]
        return sum(losses) / len(losses)


@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize(
    ("views", "chosen", "pairs"),
    [
        (2, (), [(0, 1), (1, 0)]),
        (3, (), [(a, b) for a in range(3) for b in range(3) if a != b]),
        (3, ((0, 2),), [(0, 2), (2, 0)]),
    ],
)
def test_loss_queue_and_slow_copy_are_those_of_the_paper(projected, views, chosen, pairs):
    """Four batches, the third longer than the queue: the same losses, the same keys, the same weights as in loops."""
    reader = encoder()
    projector = Projector(6, (3,)) if projected else None
    objective = build(reader, projector)
    oracle = LoopMoco(objective, 7, 0.5)
    fast = [reader, *([projector] if projected else [])]
    slow = copy.deepcopy(fast)
    optimiser = torch.optim.SGD([one for part in fast for one in part.parameters()], 0.1)

    def through(networks, signal):
        with torch.no_grad():
            made = signal[None]
            for network in networks:
                made = network(made)
        return made[0]

    for seed, patients in enumerate([[4, 5], [5, 5], [1, 2, 3, 4, 5], [1, 9]]):
        given = views_of(patients, seed, views, pairs=chosen)
        expected = oracle.loss(lambda x: through(fast, x), lambda x: through(slow, x), given, pairs)
        found = train_step([reader], objective, optimiser, given)
        assert float(found) == pytest.approx(expected, abs=1e-10)
        for held, followed in zip(slow, fast, strict=True):
            for mine, other in zip(held.parameters(), followed.parameters(), strict=True):
                mine.data = 0.9 * mine.data + 0.1 * other.data
    order = [(int(objective.oldest) + place) % 7 for place in range(7)]
    for place, (key, patient) in zip(order, oracle.queue, strict=True):
        assert objective.keys[place].tolist() == pytest.approx(key, abs=1e-12)
        assert patient is None or int(objective.patients[place]) == patient


@torch.no_grad()
def test_keys_of_the_same_patient_are_no_negatives():
    """With a queue of this patient alone, nothing repels: the loss is zero."""
    reader = encoder()
    objective = build(reader).eval()
    objective.patients.fill_(3)
    assert float(objective(Encoding([reader]), views_of([3, 3]))) == pytest.approx(0.0, abs=1e-12)
    assert float(objective(Encoding([reader]), views_of([4, 4]))) > 0.1


def test_validation_leaves_the_queue_alone():
    """Keys of validation patients must not enter training."""
    reader = encoder()
    objective = build(reader).eval()
    before = copy.deepcopy(objective.state_dict())
    objective(Encoding([reader]), views_of([1, 2]))
    assert all(torch.equal(before[name], one) for name, one in objective.state_dict().items())


def test_the_queue_is_changed_in_place():
    """A captured step writes to fixed addresses."""
    reader = encoder()
    objective = build(reader).train()
    before = {name: one.data_ptr() for name, one in objective.state_dict().items()}
    objective(Encoding([reader]), views_of([1, 2])).backward()
    assert {name: one.data_ptr() for name, one in objective.state_dict().items()} == before


@pytest.mark.parametrize(
    ("views", "message"),
    [
        (views_of([1, 2], views=1), "`moco` got 1 view, expected two or more"),
        (views_of([1, 2], encoder_of_view=(0, 1)), "got views of several encoders"),
    ],
)
def test_views_that_it_cannot_contrast_are_refused(views, message):
    reader = encoder()
    with pytest.raises(ValueError, match=message):
        build(reader)(Encoding([reader]), views)


def test_the_method_contrasts_segments_of_all_leads_through_a_projector():
    (method,) = clocs_methods()
    assert (method.views, method.objective) == ("segments", "moco")
    assert method.presets["views"] == {"leads": "all"}
    assert method.presets["train"]["projector"] == [512, 128]


def test_all_processes_have_one_queue_though_each_drops_features_of_its_own():
    """Each makes the keys of its instances: made anew in every process, dropout would make other ones there."""
    torch.manual_seed(1)
    drops = nn.Sequential(nn.Flatten(), nn.Linear(2 * 8, 6), nn.Dropout(0.5)).double()
    views = views_of([1, 1, 2, 3, 4])
    objectives = [build(copy.deepcopy(drops)) for _ in range(2)]

    def work(group):
        part = Part(group, (3, 2))
        with torch.random.fork_rng():  # threads share torch's generator: what each drops is chance
            loss_of(objectives[group.rank].train(), Encoding([copy.deepcopy(drops)]), views, None, part)

    on_ranks(2, work)
    first, second = objectives
    assert torch.equal(first.keys, second.keys)
    assert first.patients.tolist() == second.patients.tolist() == [3, 4, 1, 1, 2, 3, 4]  # the last seven of both views
