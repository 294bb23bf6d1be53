"""The updates, of each weight by itself and in pieces, are torch's own updates."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from clocs_core.train.adam import PIECE, Adam, SplitAdam
from clocs_core.train.learner import start

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


def network():
    """A matrix of several pieces, the last one ragged; small vectors; and a weight that never gets a gradient."""
    torch.manual_seed(0)
    made = nn.ModuleDict({"large": nn.Linear(130, PIECE // 40), "small": nn.Linear(3, 2), "idle": nn.Linear(2, 2)})
    assert made["large"].weight.numel() % PIECE
    return made


def train(made, optimiser, steps=4):
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        optimiser.zero_grad()
        for name in ("large", "small"):
            for weight in made[name].parameters():
                weight.grad = torch.randn(weight.shape, generator=generator).to(weight)
        optimiser.step()
    return [weight.detach().cpu() for weight in made.parameters()]


@pytest.mark.parametrize("device", DEVICES)
def test_weights_are_those_of_torchs_fused_adam_to_the_last_bit(device):
    """A run does not depend on how its weights are cut."""
    ours, theirs = network().to(device), network().to(device)
    adam = torch.optim.Adam(theirs.parameters(), lr=1e-2, fused=True)
    for a, b in zip(train(ours, SplitAdam(ours.parameters(), 1e-2)), train(theirs, adam), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_on_a_cpu_weights_are_those_of_torchs_adam_to_the_last_bit(dtype):
    """All published scores come from them."""
    ours, theirs = network().to(dtype), network().to(dtype)
    adam = torch.optim.Adam(theirs.parameters(), lr=1e-2)
    for a, b in zip(train(ours, Adam(ours.parameters(), 1e-2), 50), train(theirs, adam, 50), strict=True):
        assert torch.equal(a, b)


def test_weights_of_two_types_are_updated_each_in_its_own():
    """One launch takes one type."""
    ours, theirs = network(), network()
    for made in (ours, theirs):
        made["small"].double()
    adam = torch.optim.Adam(theirs.parameters(), lr=1e-2, fused=True)
    for a, b in zip(train(ours, SplitAdam(ours.parameters(), 1e-2)), train(theirs, adam), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("ours_is", [Adam, SplitAdam])
def test_its_state_is_that_of_torchs_adam(ours_is):
    """A checkpoint that was written on a GPU goes on on a CPU, and the other way round."""
    ours, theirs = network(), network()
    split, adam = ours_is(ours.parameters(), 1e-2), torch.optim.Adam(theirs.parameters(), lr=1e-2)
    train(ours, split)
    train(theirs, adam)
    saved, expected = split.state_dict(), adam.state_dict()["state"]
    assert saved.keys() == expected.keys()
    for number, state in expected.items():
        assert {name: value.shape for name, value in saved[number].items()} == {
            name: value.shape for name, value in state.items()
        }
        assert saved[number]["step"] == state["step"] == 4
    adam.load_state_dict({"state": copy.deepcopy(saved), "param_groups": adam.state_dict()["param_groups"]})
    theirs.load_state_dict(ours.state_dict())
    for a, b in zip(train(ours, split), train(theirs, adam), strict=True):
        torch.testing.assert_close(a, b)


def test_a_loaded_state_is_a_copy_in_the_type_of_the_weights():
    ours, other = network(), network()
    first, second = Adam(ours.parameters(), 1e-2), Adam(other.double().parameters(), 1e-2)
    train(ours, first)
    second.load_state_dict(first.state_dict())
    train(ours, first)
    (large, *_), (doubled, *_) = first.state_dict().values(), second.state_dict().values()
    assert (large["step"], doubled["step"], doubled["step"].dtype) == (8, 4, torch.float32)
    assert doubled["exp_avg"].dtype == torch.float64


@pytest.mark.parametrize(("values", "most"), [(1, 1), (48_000, 13), (3_000_017, 257)])
def test_a_large_network_is_cut_into_larger_pieces(values, most, monkeypatch):
    """A piece costs the host something, and 30 of them a launch: 25 million weights would be 6,000 pieces."""
    weight, cut = nn.Parameter(torch.zeros(values)), []
    monkeypatch.setattr(torch, "_fused_adam_", lambda pieces, *rest, **named: cut.extend(map(len, pieces)))
    weight.grad = torch.ones_like(weight)
    SplitAdam([weight], 0.1).step()
    assert sum(cut) == values
    assert len(cut) <= most
    assert all(size % PIECE == 0 for size in cut[:-1])  # so that every piece begins where vectors of four can be read


def test_a_weight_that_cannot_be_cut_without_a_copy_is_updated_whole():
    """Such as a convolution with its channels last."""
    weight = nn.Parameter(torch.randn(4, 5, 6).transpose(0, 2))
    other = nn.Parameter(weight.detach().clone())
    for one, optimiser in ((weight, SplitAdam([weight], 0.1)), (other, torch.optim.Adam([other], 0.1, fused=True))):
        one.grad = torch.ones_like(one)
        optimiser.step()
    torch.testing.assert_close(weight, other)


@pytest.mark.cuda
def test_a_learner_on_a_gpu_is_updated_in_pieces():
    learner = start(nn.ModuleList([nn.Linear(3, 2)]).cuda(), nn.Module(), 1e-3)
    assert isinstance(learner.optimiser, SplitAdam)
