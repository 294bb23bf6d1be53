"""Training in rows: as the plain network learns, and to be gone on with to the last bit."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

from clocs_core.contracts.batches import Batch, Views
from clocs_core.train.checkpoint import load_checkpoint, save_checkpoint
from clocs_core.train.learner import start
from clocs_core.train.step import ContrastiveObjective, train_step
from clocs_plugins.cnn.implementations import choose
from clocs_plugins.cnn.network import CNN

SAMPLES = 500
MANY, FEW = 64, 4  # instances of a batch: in rows, and plain, as a last, ragged batch may be


class WithASpare(nn.Module):
    """An encoder with a parameter that no loss depends on, so that the optimiser has no state for it."""

    def __init__(self, implementation):
        super().__init__()
        self.spare = nn.Parameter(torch.ones(3))
        self.cnn = CNN(1, SAMPLES, 16, implementation=implementation)

    def forward(self, signal):
        return self.cnn(signal)


def learner(implementation="auto", seed=0, dropout=0.1):
    torch.manual_seed(seed)
    encoder = WithASpare(implementation)
    for block in encoder.cnn.blocks:
        block.dropout.p = dropout
    return start(nn.ModuleList([encoder]), ContrastiveObjective(contrast), 1e-3)


def contrast(z, patient):
    first, second = normalize(z, dim=-1)
    return cross_entropy(first @ second.T / 0.1, patient)


def views(step, instances):
    generator = torch.Generator().manual_seed(step)
    base = torch.randn(instances, 1, SAMPLES, generator=generator).cumsum(-1) / 10
    signal = torch.stack([base, base + 0.1 * torch.randn(base.shape, generator=generator)])
    number = torch.arange(instances)
    return Views(signal, Batch(signal.transpose(0, 1), number, number, number, number))


def train(who, epochs):
    """Losses of epochs of three batches, the last of which is too small for rows."""
    losses = []
    who.encoders.train()
    for epoch in epochs:
        torch.manual_seed(epoch)
        for step, instances in enumerate((MANY, MANY, FEW)):
            batch = views(10 * epoch + step, instances)
            losses.append(float(train_step(list(who.encoders), who.objective, who.optimiser, batch)))
    return losses


def test_batches_are_in_rows_but_for_the_small_one():
    """Or the tests below would test nothing."""
    blocks = learner().encoders[0].cnn.blocks
    ways = [choose(blocks, views(0, instances).signal.flatten(0, 1), "auto") for instances in (MANY, FEW)]
    assert ways == ["rows", "plain"]


def test_a_resumed_run_goes_on_to_the_last_bit(tmp_path):
    """With parameters that the optimiser has no state for, and batches of both kinds."""
    whole, first = learner(), learner()
    expected = train(whole, range(4))
    begun = train(first, range(2))
    save_checkpoint(first, tmp_path / "checkpoint")
    torch.rand(5)  # whatever happened to the process meanwhile
    second = learner(seed=9)
    load_checkpoint(second, tmp_path / "checkpoint")
    assert begun + train(second, range(2, 4)) == expected
    state = second.encoders.state_dict()
    assert all(torch.equal(tensor, state[name]) for name, tensor in whole.encoders.state_dict().items())


def test_the_same_seed_gives_the_same_losses_and_another_order_of_draws_others():
    """Every random number comes from torch's own generator, which the loop seeds for each epoch."""
    assert train(learner(), range(2)) == train(learner(), range(2))
    assert train(learner(), [0, 1]) != train(learner(), [1, 0])


def test_it_learns_as_the_plain_network_does():
    """Without dropout, which draws other numbers: thirty steps, the same losses but for rounding."""
    found, expected = (train(learner(way, dropout=0.0), range(10)) for way in ("auto", "plain"))
    assert expected[-2] < expected[0]
    assert found == pytest.approx(expected, rel=2e-3)


def test_with_dropout_it_learns_as_well_as_the_plain_network():
    """Other numbers are dropped, as many of them: the loss falls as far."""
    found, expected = (train(learner(way), range(12)) for way in ("auto", "plain"))
    full = [number for number in range(36) if number % 3 != 2]
    last = full[-6:]
    ends = [sum(losses[number] for number in last) / len(last) for losses in (found, expected)]
    assert ends[0] == pytest.approx(ends[1], rel=0.1)
