"""What captured steps do, without a GPU: stand-ins for graphs note each step and run it when they are replayed.

On the CPU a captured epoch must equal a plain one to the last bit. tests/core/train/test_captured.py has the same on a
GPU, where rounding differs.
"""

from __future__ import annotations

import attrs
import pytest
import torch
from fake_frames import FRAME, fake_prepared, fake_store
from fake_recordings import CHANNELS
from stand_in_graphs import NotedSteps, capture_on_the_cpu
from torch import nn

from clocs_core.contracts.batches import Views
from clocs_core.data.store import list_instances
from clocs_core.settings.sections import TrainSettings
from clocs_core.train.adam import Update
from clocs_core.train.captured import CapturedEpochs
from clocs_core.train.epochs import Training, plain_epoch
from clocs_core.train.learner import start
from clocs_core.train.normalise import min_max
from clocs_core.train.schedule import Schedule
from clocs_core.train.step import ContrastiveObjective, ViewMaker


def noisy_views(batch, generator):
    signal = batch.signal.transpose(0, 1)
    return Views(signal + 0.1 * torch.randn(signal.shape, generator=generator), batch)


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    prepared = fake_prepared(tmp_path_factory.mktemp("prepared"))
    patients = frozenset(f"p{number}" for number in range(6))
    train, _ = list_instances(prepared, patients, CHANNELS, 2, False, torch.device("cpu"))
    assert 0 not in (len(train) % 8, len(train) % 3)  # the last batch is ragged
    maker = ViewMaker(noisy_views, (), normalise=min_max)
    return Training(fake_store(prepared), maker, train, train, TrainSettings(batch_size=8), 0)


@pytest.fixture
def captured(monkeypatch):
    capture_on_the_cpu(monkeypatch)
    return CapturedEpochs(pytest.fail)


def learner(update=Update()):  # noqa: B008  frozen
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(FRAME, 8), nn.BatchNorm1d(8), nn.Dropout(0.3))
    objective = ContrastiveObjective(lambda z, patient: (z[0] - z[1]).square().mean())
    return start(nn.ModuleList([encoder]), objective, 1e-2, update)


def state(one):
    """All that training changes, as tensors."""
    kept = [value for each in one.optimiser.state.values() for value in each.values()]
    return [tensor.clone() for tensor in (*one.encoders.state_dict().values(), *kept)]


def silent(done, steps): ...


@pytest.mark.parametrize("batch_size", [8, 3])
def test_captured_epochs_are_the_plain_ones_in_any_order_of_epochs(training, captured, batch_size):
    """Three at a time, replays of ten steps occur; an epoch that is not the next must not get the next one's order."""
    training = attrs.evolve(training, settings=TrainSettings(batch_size=batch_size))
    one, other = learner(), learner()
    for epoch in (1, 2, 5, 2):
        found = captured(one, training, epoch, silent)
        expected = plain_epoch(other, training, epoch, silent)
        assert torch.equal(found, expected), f"epoch {epoch}"
        one.encoders.eval()  # as validation leaves it
    assert all(map(torch.equal, state(one), state(other)))
    assert {replay.steps for replay in captured.steps.replays} == ({1, 10} if batch_size == 3 else {1})


def test_captured_steps_in_bf16_are_the_plain_ones(training, captured):
    training = attrs.evolve(training, settings=TrainSettings(batch_size=8, autocast="bf16"))
    one, other, exact = learner(), learner(), learner()
    found = captured(one, training, 1, silent)
    assert torch.equal(found, plain_epoch(other, training, 1, silent))
    assert all(map(torch.equal, state(one), state(other)))
    assert not torch.equal(
        found, plain_epoch(exact, attrs.evolve(training, settings=TrainSettings(batch_size=8)), 1, silent)
    )


def test_a_schedule_goes_on_through_replays_and_after_steps_that_warm_up(training, captured):
    """The count of steps is set anew for every epoch: three steps before each capture have raised it."""
    update = Update(Schedule("cosine", 0.2), weight_decay=0.1, clip=0.1)
    training = attrs.evolve(training, settings=TrainSettings(batch_size=3, epochs=4))
    one, other = learner(update), learner(update)
    for epoch in (1, 2, 4):
        assert torch.equal(captured(one, training, epoch, silent), plain_epoch(other, training, epoch, silent))
        assert one.optimiser.done == other.optimiser.done == epoch * training.steps
    assert all(map(torch.equal, state(one), state(other)))


def test_capturing_trains_nothing(training, captured):
    """The steps that warm up must leave weights, running statistics and the optimiser as they were."""
    one = learner()
    before = {name: tensor.clone() for name, tensor in one.encoders.state_dict().items()}
    NotedSteps(one, training)
    assert all(torch.equal(tensor, before[name]) for name, tensor in one.encoders.state_dict().items())
    kept = [value for each in one.optimiser.state.values() for value in each.values()]
    assert kept
    assert not any(value.any() for value in kept)


def test_the_losses_of_an_epoch_stay_while_the_next_one_runs(training, captured):
    """Every replay writes into the same memory; whoever reads an epoch's losses late must find them."""
    one = learner()
    first = captured(one, training, 1, silent)
    kept = first.clone()
    captured(one, training, 2, silent)
    assert torch.equal(first, kept)


def test_every_started_step_is_told(training, captured):
    ticks = []
    captured(learner(), attrs.evolve(training, settings=TrainSettings(batch_size=3)), 1, lambda *one: ticks.append(one))
    steps = -(-len(training.train) // 3)
    assert ticks[0] == (10, steps)
    assert ticks[-1] == (steps, steps)


def test_a_step_that_cannot_be_captured_runs_plainly_with_one_warning(training, captured, monkeypatch):
    """Nothing is lost by the attempt: the epoch equals the plain one."""

    def refuse(*_arguments, **_options):
        raise RuntimeError("operation not permitted\nwhen stream is capturing")

    said = []
    monkeypatch.setattr(torch.cuda, "graph", refuse)
    monkeypatch.setattr("clocs_core.train.captured._renew_generator", lambda device: None)
    run_epoch, one, other = CapturedEpochs(said.append), learner(), learner()
    for epoch in (1, 2):
        assert torch.equal(run_epoch(one, training, epoch, silent), plain_epoch(other, training, epoch, silent))
    assert said == ["the training step cannot be captured and runs plainly, which is slower: operation not permitted"]
