"""The updates, of each weight by itself and in pieces, are torch's own updates."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from clocs_core.settings.sections import TrainSettings
from clocs_core.train.adam import BETAS, EPS, PIECE, Adam, SplitAdam, Update
from clocs_core.train.learner import start
from clocs_core.train.schedule import Schedule

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


# ------------------------------------------------------------------------------- decay, schedule, clipping, by layer


def by_loops(weights, gradients, rates, decay=0.0, clip=None, factor=1.0):
    """AdamW (Loshchilov and Hutter, algorithm 2) with clipping, number by number; a vector does not decay."""
    first = [[0.0] * len(one) for one in weights]
    second = [[0.0] * len(one) for one in weights]
    for step, (rate, given) in enumerate(zip(rates, gradients, strict=True), start=1):
        norm = sum(value**2 for one in given for value in one) ** 0.5
        shrink = 1.0 if clip is None else min(1.0, clip / (norm + 1e-6))
        for place, (weight, gradient) in enumerate(zip(weights, given, strict=True)):
            for n, value in enumerate(gradient):
                g = value * shrink
                first[place][n] = BETAS[0] * first[place][n] + (1 - BETAS[0]) * g
                second[place][n] = BETAS[1] * second[place][n] + (1 - BETAS[1]) * g * g
                mean = first[place][n] / (1 - BETAS[0] ** step)
                square = second[place][n] / (1 - BETAS[1] ** step)
                weight[n] -= rate * factor * decay * weight[n] if place == 0 else 0.0
                weight[n] -= rate * factor * mean / (square**0.5 + EPS)
    return weights


def matrix_and_vector(dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    drawn = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((2, 3), (4,))]
    return [nn.Parameter(one.to(dtype)) for one in drawn]


def gradients_of(steps):
    generator = torch.Generator().manual_seed(4)
    return [
        [torch.randn(shape, generator=generator, dtype=torch.float64) * 3 for shape in ((2, 3), (4,))]
        for _ in range(steps)
    ]


def updated(optimiser, steps=6):
    for given in gradients_of(steps):
        for weight, gradient in zip(optimiser.weights, given, strict=True):
            weight.grad = gradient.to(weight)
        optimiser.step()
    return [weight.detach().double().flatten().tolist() for weight in optimiser.weights]


UPDATES = {
    "decay": Update(weight_decay=0.3),
    "clip": Update(clip=2.0),
    "warm-up": Update(Schedule(warm_up=3)),
    "cosine": Update(Schedule("cosine", 0.34)),
    "all": Update(Schedule("cosine", 2), 0.3, 2.0),
}


@pytest.mark.parametrize("factor", [1.0, 0.5])
@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
@pytest.mark.parametrize("kind", [Adam, SplitAdam])
def test_updates_are_those_of_the_formulas(kind, update, factor):
    """In float64; SplitAdam reads a learning rate that changes in float32, as the kernel of a GPU does."""
    steps, weights = 6, matrix_and_vector()
    before = [weight.detach().flatten().tolist() for weight in weights]
    optimiser = kind(weights, 0.1, update)
    optimiser.factor = {} if factor == 1 else dict.fromkeys(weights, factor)
    optimiser.begin(0, steps)
    rates = [0.1 * float(update.schedule.share(torch.tensor(float(step)), steps)) for step in range(steps)]
    given = [[one.flatten().tolist() for one in both] for both in gradients_of(steps)]
    expected = by_loops(before, given, rates, update.weight_decay, update.clip, factor)
    for found, wanted in zip(updated(optimiser), expected, strict=True):
        assert found == pytest.approx(wanted, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", [Adam, SplitAdam])
def test_with_decay_weights_are_those_of_torchs_adamw_to_the_last_bit(kind, dtype):
    """Biases are in a group without decay there."""
    ours, theirs = network().to(dtype), network().to(dtype)
    by_kind = [
        {"params": [one for one in theirs.parameters() if one.ndim > 1], "weight_decay": 0.2},
        {"params": [one for one in theirs.parameters() if one.ndim == 1], "weight_decay": 0.0},
    ]
    adamw = torch.optim.AdamW(by_kind, lr=1e-2, fused=kind is SplitAdam)
    found = train(ours, kind(ours.parameters(), 1e-2, Update(weight_decay=0.2)), 10)
    for a, b in zip(found, train(theirs, adamw, 10), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("kind", [Adam, SplitAdam])
def test_a_schedule_goes_on_from_any_step(kind):
    """So that a resumed run needs no more than the number of steps behind it."""
    update = Update(Schedule("cosine", 2))
    whole, first, second = (kind(matrix_and_vector(), 0.1, update) for _ in range(3))
    whole.begin(0, 6)
    expected = updated(whole)
    first.begin(0, 6)
    updated(first, 3)
    for weight, held in zip(second.weights, first.weights, strict=True):
        weight.data.copy_(held.data)
    second.load_state_dict(first.state_dict())
    second.begin(3, 6)
    for given in gradients_of(6)[3:]:
        for weight, gradient in zip(second.weights, given, strict=True):
            weight.grad = gradient
        second.step()
    assert [weight.detach().flatten().tolist() for weight in second.weights] == expected


def test_a_changing_rate_stays_on_the_device():
    """A captured step must not read it: the count is a tensor that every step raises in place."""
    optimiser = SplitAdam(matrix_and_vector(torch.float32), 0.1, Update(Schedule("cosine", 2), clip=1.0))
    optimiser.begin(0, 6)
    count = optimiser.done
    updated(optimiser, 2)
    assert optimiser.done is count
    assert count == 2
    assert isinstance(optimiser.rate(), torch.Tensor)
    assert Adam([], 0.1).rate() == 0.1


def test_settings_become_an_update():
    assert Update.of(TrainSettings()) == Update()
    given = TrainSettings(optimiser="adamw", warm_up=0.1, schedule="cosine", clip=1.0)
    assert Update.of(given) == Update(Schedule("cosine", 0.1), 0.01, 1.0)
    assert Update.of(TrainSettings(optimiser="adamw", weight_decay=0.0)).weight_decay == 0


@pytest.mark.cuda
@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
def test_captured_updates_are_the_plain_ones(update):
    """Three replays of one captured step: the rate, the clipping and the decay are inside."""
    plain, captured = (
        SplitAdam([one.detach().cuda() for one in matrix_and_vector(torch.float32)], 0.1, update) for _ in range(2)
    )
    for optimiser in (plain, captured):
        for weight, gradient in zip(optimiser.weights, gradients_of(1)[0], strict=True):
            weight.grad = gradient.cuda().float()
        optimiser.begin(0, 6)
        optimiser.step()  # makes its state, which a capture cannot
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    held = [one.grad.clone() for one in captured.weights]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.graph(graph, stream=side):
        for weight, gradient in zip(captured.weights, held, strict=True):
            weight.grad.copy_(gradient)
        captured.step()
    for _ in range(3):
        graph.replay()
        for weight, gradient in zip(plain.weights, held, strict=True):
            weight.grad.copy_(gradient)
        plain.step()
    for a, b in zip(plain.weights, captured.weights, strict=True):
        torch.testing.assert_close(a, b)
