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
from stand_in_graphs import capture_on_the_cpu, note
from torch import nn

from clocs_core.contracts.batches import Views
from clocs_core.data.store import list_instances
from clocs_core.settings.sections import TrainSettings
from clocs_core.testing.threads import ThreadWire, new_meeting, on_ranks
from clocs_core.train import captured as captured_module
from clocs_core.train import captured_validation
from clocs_core.train.adam import Update
from clocs_core.train.captured import CapturedEpochs, _any_refuses, _Steps
from clocs_core.train.epochs import Training, plain_epoch
from clocs_core.train.learner import start
from clocs_core.train.loop import train_epochs
from clocs_core.train.normalise import min_max
from clocs_core.train.ranks import Group
from clocs_core.train.schedule import Schedule
from clocs_core.train.step import ContrastiveObjective, ViewMaker
from clocs_core.train.validation import plain_validation


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
    """In replays of several steps and of the ragged batch; an epoch that is not the next has its own order."""
    training = attrs.evolve(training, settings=TrainSettings(batch_size=batch_size))
    one, other = learner(), learner()
    for epoch in (1, 2, 5, 2):
        found = captured(one, training, epoch, silent)
        expected = plain_epoch(other, training, epoch, silent)
        assert torch.equal(found, expected), f"epoch {epoch}"
        one.encoders.eval()  # as validation leaves it
    assert all(map(torch.equal, state(one), state(other)))
    assert {replay.steps for replay in captured.steps.replays} == ({1, 11} if batch_size == 3 else {1, 8})


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
    _Steps(one, training)
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
    assert ticks[0] == (11, steps)
    assert ticks[-1] == (steps, steps)


def refuse(*_arguments, **_options):
    raise RuntimeError("operation not permitted\nwhen stream is capturing")


def test_a_step_that_cannot_be_captured_runs_plainly_with_one_warning(training, captured, monkeypatch):
    """Nothing is lost by the attempt: the epoch equals the plain one."""

    said = []
    monkeypatch.setattr(captured_module, "capture", refuse)
    monkeypatch.setattr("clocs_core.train.captured._renew_generator", lambda device: None)
    run_epoch, one, other = CapturedEpochs(said.append), learner(), learner()
    for epoch in (1, 2):
        assert torch.equal(run_epoch(one, training, epoch, silent), plain_epoch(other, training, epoch, silent))
    assert said == ["the training step cannot be captured and runs plainly, which is slower: operation not permitted"]


class Masking(nn.Module):
    """Reconstructs an embedding from half of the samples, drawn from the generator of the step."""

    def forward(self, encode, views, generator):
        mask = torch.rand(views.signal.shape, generator=generator) < 0.5
        return (encode(views.signal * mask) - encode(views.signal).detach()).square().mean()


def masking():
    one = learner()
    return start(one.encoders, Masking(), 1e-2)


def test_masks_that_an_objective_draws_are_captured_and_survive_a_resume(training, captured):
    """To the last bit: captured or plain, in one process or in two, which share nothing but weights and optimiser."""
    whole, plain, begun, resumed = (masking() for _ in range(4))
    for epoch in (1, 2):
        assert torch.equal(captured(whole, training, epoch, silent), plain_epoch(plain, training, epoch, silent))
    CapturedEpochs(pytest.fail)(begun, training, 1, silent)
    resumed.encoders.load_state_dict(begun.encoders.state_dict())
    resumed.optimiser.load_state_dict(begun.optimiser.state_dict())
    CapturedEpochs(pytest.fail)(resumed, training, 2, silent)
    for other in (plain, resumed):
        assert all(map(torch.equal, state(whole), state(other)))


class Parted(nn.Module):
    """Two terms, told apart."""

    def forward(self, encode, views):
        z = encode(views.signal)
        pull, size = (z[0] - z[1]).square().mean(), z.square().mean()
        return pull + 0.1 * size, {"pull": pull, "size": size}


def test_components_of_a_captured_loss_are_those_of_the_plain_one(training, captured):
    """Neither the steps that warm up nor the epoch before are counted."""
    one, other = (start(learner().encoders, Parted(), 1e-2) for _ in range(2))
    for epoch in (1, 2):
        losses = captured(one, training, epoch, silent)
        plain_epoch(other, training, epoch, silent)
        found, expected = (each.components.means(len(training.train)) for each in (one, other))
        assert torch.equal(torch.stack(found), torch.stack(expected))
        assert list(one.components.sums) == ["pull", "size"]
        sizes = torch.full_like(losses, 8.0)
        sizes[-1] = len(training.train) % 8
        mean = (losses * sizes).sum() / sizes.sum()
        assert float(found[0] + 0.1 * found[1]) == pytest.approx(float(mean), rel=1e-5)


def validations(training, batch_size, whole=False):
    """Captured and plain validation of the same weights, after one and after two epochs."""
    training = attrs.evolve(training, settings=TrainSettings(batch_size=batch_size))
    run_epoch, one = CapturedEpochs(pytest.fail), learner()
    for epoch in (1, 2):
        run_epoch(one, training, epoch, silent)
        yield run_epoch.validate(one, training, whole), plain_validation(one, training, whole)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("batch_size", [3, 8, 10_000])
@pytest.mark.usefixtures("captured")
def test_captured_validation_is_the_plain_one(training, monkeypatch, batch_size, whole):
    """Loss, embeddings and patients: in replays of ten, of one and of the ragged batch, or of that alone."""
    monkeypatch.setattr("clocs_core.train.health.MEASURED", 16)
    for found, expected in validations(training, batch_size, whole):
        assert all(map(torch.equal, found, expected))
        kept = len(training.validation) if whole else {3: 18, 8: 16}.get(batch_size, len(training.validation))
        assert found[1].shape[1] == len(found[2]) == kept


@pytest.mark.usefixtures("captured")
def test_a_ragged_batch_that_is_measured_is_kept(training, monkeypatch):
    """All full batches are fewer instances than are measured."""
    monkeypatch.setattr("clocs_core.train.health.MEASURED", len(training.validation) - 1)
    for found, expected in validations(training, 8):
        assert all(map(torch.equal, found, expected))
        assert len(found[2]) == len(training.validation)


@pytest.mark.usefixtures("captured")
def test_what_a_validation_returned_stays_while_the_next_one_runs(training):
    (first, expected), _ = validations(training, 3)
    assert all(map(torch.equal, first, expected))


def test_captured_and_plain_runs_stop_at_the_same_epoch(training, captured):
    """Validation must not disturb what training draws, nor the other way round."""
    training = attrs.evolve(training, settings=TrainSettings(batch_size=3, epochs=4))
    found, expected = (
        list(train_epochs(learner(), training, run_epoch, lambda: 0.0, silent)) for run_epoch in (captured, plain_epoch)
    )
    told = [
        [(one.train_loss, one.validation_loss, one.health, one.best_epoch) for one in run] for run in (found, expected)
    ]
    assert told[0] == told[1]
    assert captured.checks is not None


def test_a_validation_that_cannot_be_captured_runs_plainly_with_one_warning(training, captured, monkeypatch):
    """The training step stays captured; it is captured again, since the attempt resets the generator it draws from."""
    said, made = [], []
    monkeypatch.setattr(captured_validation, "capture", refuse)
    monkeypatch.setattr(captured_module, "capture", lambda *arguments: made.append(arguments) or note(*arguments))
    monkeypatch.setattr("clocs_core.train.captured._renew_generator", lambda device: None)
    run_epoch, one, other = CapturedEpochs(said.append), learner(), learner()
    for epoch in (1, 2, 3):
        assert torch.equal(run_epoch(one, training, epoch, silent), plain_epoch(other, training, epoch, silent))
        found, expected = run_epoch.validate(one, training, False), plain_validation(other, training, False)
        assert all(map(torch.equal, found, expected))
    assert said == ["the validation step cannot be captured and runs plainly, which is slower: operation not permitted"]
    assert run_epoch.steps is not None
    assert len(made) == 2 * 2  # a full and a ragged batch, twice


def test_where_training_is_refused_validation_is_plain(training, captured, monkeypatch):
    said = []
    monkeypatch.setattr(captured_module, "capture", refuse)
    monkeypatch.setattr("clocs_core.train.captured._renew_generator", lambda device: None)
    run_epoch, one = CapturedEpochs(said.append), learner()
    run_epoch(one, training, 1, silent)
    assert all(map(torch.equal, run_epoch.validate(one, training, False), plain_validation(one, training, False)))
    assert (run_epoch.checks, len(said)) == (None, 1)


def test_captured_epochs_of_a_group_are_its_plain_ones(training, captured):
    """A group of one process sends everything that several would. Validation of a group stays plain."""
    training = attrs.evolve(training, group=Group(ThreadWire(0, new_meeting(1))))
    one, other = learner(), learner()
    for epoch in (1, 2):
        assert torch.equal(captured(one, training, epoch, silent), plain_epoch(other, training, epoch, silent))
        found, expected = captured.validate(one, training, False), plain_validation(other, training, False)
        assert all(map(torch.equal, found, expected))
    assert all(map(torch.equal, state(one), state(other)))
    assert captured.checks is None
    sums = [kind for _, kind, _ in training.group.wire.meeting.sent if kind == "sum"]
    assert len(sums) > len(training.train) // training.settings.batch_size


def test_if_one_process_cannot_capture_none_replays(training):
    """A graph that waits for a process which runs plain steps would wait for ever."""

    def refuses(group):
        return _any_refuses(group.rank == 1, attrs.evolve(training, group=group))

    assert on_ranks(3, refuses) == [True] * 3
    assert on_ranks(2, lambda group: _any_refuses(False, attrs.evolve(training, group=group))) == [False] * 2
