"""Captured steps: the same training, started from the host once per replay. Needs a GPU, but for what is refused."""

import copy
import json
import re
import warnings

import attrs
import pytest
import torch
from fake_frames import FRAME, TASK
from fake_recordings import CHANNELS, fake_entries
from torch import nn

from clocs_core.cli import main
from clocs_core.contracts.batches import Views
from clocs_core.data.store import fill_store, list_instances
from clocs_core.errors import NonFiniteLoss
from clocs_core.settings.sections import TrainSettings
from clocs_core.train.adam import Update
from clocs_core.train.captured import CapturedEpochs
from clocs_core.train.checkpoint import load_checkpoint, save_checkpoint, take_snapshot
from clocs_core.train.epochs import Training, plain_epoch
from clocs_core.train.learner import start
from clocs_core.train.loop import Extras, train_epochs
from clocs_core.train.normalise import min_max, normaliser
from clocs_core.train.projector import Projector
from clocs_core.train.schedule import Schedule
from clocs_core.train.step import ContrastiveObjective, ViewMaker
from clocs_core.train.validation import plain_validation

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them


def contrast(z, patient):
    similarity = nn.functional.normalize(z[0], dim=-1) @ nn.functional.normalize(z[1], dim=-1).T / 0.2
    same = (patient[:, None] == patient[None, :]).to(z.dtype)
    return (similarity.logsumexp(1) - (similarity * same).sum(1) / same.sum(1)).mean()


def noisy_views(batch, generator):
    signal = batch.signal.transpose(0, 1)
    noise = torch.randn(signal.shape, generator=generator, device=signal.device)
    return Views(signal + 0.1 * noise, batch)


class Following(nn.Module):
    """An objective with a target that follows, as BYOL has one."""

    def __init__(self, encoder):
        super().__init__()
        self.target = copy.deepcopy(encoder).requires_grad_(False)

    def forward(self, encode, views):
        z = encode(views.signal)
        target = self.target(views.signal.flatten(0, 1)).view_as(z).flip(0)
        return (z - target).square().mean()

    def after_step(self, encoder):
        for mine, theirs in zip(self.target.parameters(), encoder.parameters(), strict=True):
            mine.lerp_(theirs, 0.1)


@pytest.fixture(scope="module")
def training(prepared):
    device = torch.device("cuda")
    labels = {entry.record: entry.label for entry in fake_entries()}
    store = fill_store(prepared, labels, TASK, CHANNELS, device)
    train, _ = list_instances(prepared, frozenset({f"p{number}" for number in range(6)}), CHANNELS, 2, False, device)
    assert 0 not in (len(train) % 8, len(train) % 3)  # the last batch is ragged
    return Training(store, ViewMaker(noisy_views, (), normalise=min_max), train, train, TrainSettings(batch_size=8), 0)


def learner_of(dropout=0.0, follow=False, update=Update()):  # noqa: B008  frozen
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(FRAME, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(dropout))
    encoder.append(nn.Linear(32, 8)).cuda()
    objective = Following(encoder) if follow else ContrastiveObjective(contrast)
    return start(nn.ModuleList([encoder]), objective.cuda(), 1e-2, update)


def losses_of(learner, training, run_epoch, epochs=4):
    return torch.cat([run_epoch(learner, training, epoch, lambda *_: None) for epoch in range(1, epochs + 1)]).cpu()


def nothing(text):
    raise AssertionError(text)


@pytest.mark.cuda
@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_captured_epochs_are_the_plain_ones(training, dropout, follow):
    """Order, views, dropout, patients, the ragged batch, the target that follows: all as if nothing was captured."""
    plain, captured = learner_of(dropout, follow), learner_of(dropout, follow)
    expected = losses_of(plain, training, plain_epoch)
    found = losses_of(captured, training, CapturedEpochs(nothing))
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    for name, tensor in captured.encoders.state_dict().items():
        torch.testing.assert_close(tensor, plain.encoders.state_dict()[name], rtol=1e-2, atol=1e-3, msg=name)
    for name, tensor in captured.objective.state_dict().items():
        torch.testing.assert_close(tensor, plain.objective.state_dict()[name], rtol=1e-2, atol=1e-3, msg=name)


@pytest.mark.cuda
def test_steps_in_bf16_are_captured(training):
    half = attrs.evolve(training, settings=TrainSettings(batch_size=8, autocast="bf16"))
    plain, captured = learner_of(0.3), learner_of(0.3)
    expected, found = losses_of(plain, half, plain_epoch), losses_of(captured, half, CapturedEpochs(nothing))
    torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)
    # Other losses than in float32: dropout draws other masks for bf16. test_step.py compares the two without dropout.
    assert not torch.equal(found, losses_of(learner_of(0.3), training, plain_epoch))


@pytest.mark.cuda
def test_a_projector_is_captured(training):
    def one():
        made = learner_of()
        torch.manual_seed(1)
        objective = ContrastiveObjective(contrast, Projector(8, (16, 8))).cuda()
        return start(made.encoders, objective, 1e-2)

    plain, captured = one(), one()
    expected, found = losses_of(plain, training, plain_epoch), losses_of(captured, training, CapturedEpochs(nothing))
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    for name, tensor in captured.objective.state_dict().items():
        torch.testing.assert_close(tensor, plain.objective.state_dict()[name], rtol=1e-2, atol=1e-3, msg=name)


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["z-score", "constant", "none"])
def test_every_normalisation_is_captured(training, name):
    other = attrs.evolve(training, make_views=ViewMaker(noisy_views, (), normaliser(name, 0.5)))
    expected, found = (
        losses_of(learner_of(), other, plain_epoch),
        losses_of(learner_of(), other, CapturedEpochs(nothing)),
    )
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.cuda
def test_a_schedule_decay_and_clipping_are_captured(training):
    """A rate that the host computed would be that of the capture for ever."""
    update = Update(Schedule("cosine", 0.2), weight_decay=0.1, clip=0.1)
    short = attrs.evolve(training, settings=TrainSettings(batch_size=8, epochs=4))
    plain, captured = learner_of(update=update), learner_of(update=update)
    expected = losses_of(plain, short, plain_epoch)
    found = losses_of(captured, short, CapturedEpochs(nothing))
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    assert float(captured.optimiser.done) == 4 * short.steps


@pytest.mark.cuda
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_steps_that_are_replayed_together_are_the_plain_ones(training, dropout):
    """Small batches, so that an epoch has replays of eleven steps, of one, and of the ragged one."""
    small = attrs.evolve(training, settings=TrainSettings(batch_size=3))
    runner, learner = CapturedEpochs(nothing), learner_of(dropout)
    found, expected = losses_of(learner, small, runner), losses_of(learner_of(dropout), small, plain_epoch)
    assert {replay.steps for replay in runner.steps.replays} == {1, 11}
    torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-3)


@pytest.mark.cuda
def test_an_epoch_that_does_not_follow_the_last_has_its_own_order(training):
    """The order of the next epoch is drawn ahead; another one may come, as after a checkpoint."""
    plain, captured, runner = learner_of(0.3), learner_of(0.3), CapturedEpochs(nothing)
    for epoch in (1, 2, 5, 2, 3):
        found, expected = (
            run(one, training, epoch, lambda *_: None) for run, one in [(runner, captured), (plain_epoch, plain)]
        )
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.cuda
def test_capturing_leaves_what_was_learnt_as_it_was(training):
    """Steps that warm up must not train: the first captured epoch starts where the plain one would."""
    learner = learner_of(0.3)
    before = copy.deepcopy(learner.encoders.state_dict())
    runner = CapturedEpochs(nothing)
    from clocs_core.train.captured import _Steps

    runner.steps = _Steps(learner, training)
    assert all(torch.equal(tensor, before[name]) for name, tensor in learner.encoders.state_dict().items())
    for state in learner.optimiser.state.values():
        assert all(not value.any() for value in state.values())


@pytest.mark.cuda
def test_a_step_that_asks_the_host_runs_plainly_and_says_so_once(training):
    """A third party's loss with .item() in it must go on working."""

    def asks(z, patient):
        return contrast(z, patient) * (1.0 if float(z.detach().sum()) > -1e9 else 0.0)

    learner, other, said = learner_of(0.3), learner_of(0.3), []  # dropout: its generator must survive the attempt
    learner.objective, other.objective = ContrastiveObjective(asks), ContrastiveObjective(asks)
    found = losses_of(learner, training, CapturedEpochs(said.append))
    torch.testing.assert_close(found, losses_of(other, training, plain_epoch), rtol=1e-3, atol=1e-4)
    assert len(said) == 1
    assert "cannot be captured and runs plainly" in said[0]


@pytest.mark.cuda
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("batch_size", [3, 8, 10_000])
def test_captured_validation_is_the_plain_one(training, monkeypatch, batch_size, whole):
    """The kernels are the same, so loss, embeddings and patients are the same to the last bit."""
    monkeypatch.setattr("clocs_core.train.health.MEASURED", 16)
    small = attrs.evolve(training, settings=TrainSettings(batch_size=batch_size))
    runner, learner = CapturedEpochs(nothing), learner_of(0.3)
    for epoch in (1, 2):
        runner(learner, small, epoch, lambda *_: None)
        found, expected = runner.validate(learner, small, whole), plain_validation(learner, small, whole)
        assert all(map(torch.equal, found, expected))
    assert runner.checks is not None


@pytest.mark.cuda
def test_a_run_of_the_paper_validates_by_replays_as_it_does_plainly(tmp_path, capsys):
    """The paper's encoder and the fused loss: both runs name the same best epoch, by the same losses to rounding."""
    rows = []
    for step in ("plain", "captured"):
        small = ("--dataset", "demo", "-o", "patients=120", "--epochs", "4", "--batch-size", "16", "-o", "resamples=10")
        where = ("--device", "cuda", "--data-root", str(tmp_path / "data"), "--out", str(tmp_path / step))
        assert main(["run", "--plugin", "cmsc", *small, *where, "--step", step]) == 0
        lines = (tmp_path / step / "metrics.jsonl").read_text().splitlines()
        rows.append([json.loads(line) for line in lines])
    assert "plainly" not in capsys.readouterr().err
    for plain, captured in zip(*rows, strict=True):
        for name in ("train_loss", "validation_loss", "same_patient", "other_patient"):
            assert captured[name] == pytest.approx(plain[name], rel=1e-3, abs=1e-4), name


@pytest.mark.cuda
def test_a_captured_run_waits_for_the_gpu_once_per_epoch_and_for_its_health(training):
    """Nothing between training and validation waits: torch raises for a host sync that is not allowed."""
    runner, learner = CapturedEpochs(nothing), learner_of()
    runner(learner, training, 1, lambda *_: None)
    runner.validate(learner, training, False)
    torch.cuda.synchronize()
    try:
        with warnings.catch_warnings():  # torch says that not every sync is found
            warnings.simplefilter("ignore")
            torch.cuda.set_sync_debug_mode("error")
        runner(learner, training, 2, lambda *_: None)
        runner.validate(learner, training, False)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.cuda
def test_a_validation_that_asks_the_host_runs_plainly_and_training_stays_captured(training):
    """With dropout: the attempt resets the generator that the captured training step draws from."""

    class Asks(ContrastiveObjective):
        def of(self, z, patient, pairs, ranks=None):
            if not self.training and float(z.sum()) > 1e9:
                raise AssertionError
            return super().of(z, patient, pairs, ranks)

    plain, captured, said = learner_of(0.3), learner_of(0.3), []
    plain.objective, captured.objective = Asks(contrast), Asks(contrast)
    runner = CapturedEpochs(said.append)
    for epoch in (1, 2, 3):
        found = runner(captured, training, epoch, lambda *_: None)
        expected = plain_epoch(plain, training, epoch, lambda *_: None)
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
        mine, other = runner.validate(captured, training, False), plain_validation(plain, training, False)
        torch.testing.assert_close(mine[0], other[0], rtol=1e-3, atol=1e-4)
    assert len(said) == 1
    assert "the validation step cannot be captured" in said[0]
    assert runner.steps is not None


@pytest.mark.cuda
def test_a_captured_run_goes_on_from_its_checkpoint(training, tmp_path):
    def epochs(learner, last):
        settings = TrainSettings(batch_size=8, epochs=4)
        made = train_epochs(
            learner,
            Training(training.store, training.make_views, training.train, training.validation, settings, 0),
            CapturedEpochs(nothing),
            lambda: 0.0,
            lambda *_: None,
        )
        for done in made:
            if done.epoch == last:
                return

    whole, first, second = learner_of(0.3), learner_of(0.3), learner_of(0.3)
    epochs(whole, 4)
    epochs(first, 2)
    save_checkpoint(first, tmp_path / "checkpoint")
    load_checkpoint(second, tmp_path / "checkpoint")
    epochs(second, 4)
    for name, tensor in whole.encoders.state_dict().items():
        torch.testing.assert_close(second.encoders.state_dict()[name], tensor, rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.cuda
@pytest.mark.parametrize("patience", [15, 1])
def test_epochs_that_begin_before_the_last_one_is_read_are_the_same(training, patience):
    """And what is held is the state at the end of an epoch, though the next one is under way. Rounding may differ."""
    settings = TrainSettings(batch_size=8, epochs=6, patience=patience)
    runs = []
    for ahead in (False, True):
        who, rows, held = learner_of(0.3, follow=True), [], []
        made = train_epochs(
            who,
            attrs.evolve(training, settings=settings),
            CapturedEpochs(nothing),
            lambda: 0.0,
            lambda *_: None,
            extras=Extras(hold=(lambda state, who=who, held=held: held.append(state.snapshot(who))) if ahead else None),
        )
        states = []
        for done in made:
            rows.append((done.train_loss, done.validation_loss, done.losses.tolist()))
            states.append(held.pop() if held else take_snapshot(who))
        runs.append((rows, [*states, take_snapshot(who)]))
    torch.testing.assert_close(runs[1][0], runs[0][0], rtol=1e-3, atol=1e-4)
    for one, other in zip(runs[0][1], runs[1][1], strict=True):
        assert one.progress.epoch == other.progress.epoch
        torch.testing.assert_close(other.tensors, one.tensors, rtol=1e-2, atol=1e-3)


@pytest.mark.cuda
def test_a_captured_loss_that_is_not_finite_is_reported_with_its_step_and_records(training):
    """Nothing waits for it in the epoch; when the epoch is read, it is the first bad step that is named."""
    bad = int(training.train.frame[20, 0])
    signal = training.store.signal.clone()
    signal[bad] = float("nan")
    spoilt = attrs.evolve(training, store=attrs.evolve(training.store, signal=signal))
    said = []
    for run_epoch in (plain_epoch, CapturedEpochs(nothing)):
        with pytest.raises(NonFiniteLoss) as caught:
            next(train_epochs(learner_of(), spoilt, run_epoch, lambda: 0.0, lambda *_: None))
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert training.store.records[int(training.store.record[bad])] in said[0]


@pytest.mark.cuda
@pytest.mark.parametrize("method", ["cmsc", "cmsmlc", "simclr", "byol", "mt-ssl", "supervised", "vicreg", "cmsc-rlm"])
def test_every_method_is_captured(tmp_path, capsys, method):
    """Without a word about running plainly."""
    small = ("--dataset", "demo", "-o", "patients=40", "--epochs", "2", "--batch-size", "16", "-o", "resamples=10")
    where = ("--device", "cuda", "--data-root", str(tmp_path / "data"), "--out", str(tmp_path / "run"))
    assert main(["run", "--plugin", method, *small, *where, "--step", "captured"]) == 0
    assert "plainly" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--plugin", "cmsc", "--step", "captured", "--device", "cpu"), "`--step captured` needs a GPU"),
        (
            ("--plugin", "byol", "--contrast-batch", "512"),
            "its objective 'byol' reads more of the signals than their embeddings",
        ),
        (("--plugin", "cmsc", "--contrast-batch", "8"), "smaller than the batches of 16"),
        (("--plugin", "cmsc", "--contrast-batch", "64", "--step", "captured"), "do not go together"),
    ],
)
def test_steps_that_cannot_be_are_refused_before_anything_is_read_or_left_behind(tmp_path, capsys, wrong, message):
    small = ("--dataset", "demo", "-o", "patients=12", "--epochs", "1", "--batch-size", "16")
    where = ("--data-root", str(tmp_path / "data"), "--out", str(tmp_path / "run"))
    assert main(["run", *wrong, *small, *where]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert message in said
    assert "preparing" not in said  # which may take an hour
    assert not list(tmp_path.iterdir())


def test_a_large_contrast_runs_from_the_command_line(tmp_path, capsys):
    small = ("--dataset", "demo", "-o", "patients=30", "--epochs", "1", "--batch-size", "16", "-o", "resamples=10")
    where = ("--data-root", str(tmp_path / "data"), "--out", str(tmp_path / "run"))
    assert main(["run", "--plugin", "cmsc", "--contrast-batch", "48", *small, *where]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert re.search(r"per anchor, on average: \d+\.\d negatives from other patients, \d+\.\d\d positives of", said)
