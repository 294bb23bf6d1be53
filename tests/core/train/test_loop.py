"""The loop: determinism, early stopping, going on from a checkpoint, and a loss that is not a number."""

import itertools
import math

import pytest
import torch
from fake_frames import FRAME, fake_store
from fake_recordings import CHANNELS
from torch import nn

from clocs_core.artifacts.tensors import read_tensors
from clocs_core.contracts.batches import Views
from clocs_core.data.store import Instances, list_instances
from clocs_core.errors import NonFiniteLoss, RunFolderError
from clocs_core.settings.sections import TrainSettings
from clocs_core.train import loop
from clocs_core.train.adam import Update
from clocs_core.train.checkpoint import load_checkpoint, save_checkpoint, save_snapshot
from clocs_core.train.epochs import Training, plain_epoch
from clocs_core.train.learner import Progress, start
from clocs_core.train.loop import Extras, train_epochs
from clocs_core.train.normalise import min_max
from clocs_core.train.schedule import Schedule
from clocs_core.train.step import ContrastiveObjective, ViewMaker

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def cohort(prepared):
    train, _ = list_instances(prepared, frozenset({"p0", "p1", "p2", "p3"}), CHANNELS, 2, False, CPU)
    validation, _ = list_instances(prepared, frozenset({"p4", "p5"}), CHANNELS, 2, False, CPU)
    return fake_store(prepared), train, validation


class NoisyTarget(nn.Module):
    """An objective with everything a checkpoint must keep: a parameter, a buffer that moves, dropout in the encoder."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.register_buffer("running", torch.zeros(()))

    def forward(self, encode, views):
        z = encode(views.signal)
        return (z[0] - z[1]).square().mean() + (self.scale * z.std() - 1 - 0.1 * self.running).square()

    def after_step(self, encoder):
        self.running.mul_(0.9).add_(0.1)


def noisy_views(batch, generator):
    signal = batch.signal.transpose(0, 1)
    return Views(signal + 0.1 * torch.randn(signal.shape, generator=generator), batch)


CHANGING = Update(Schedule("cosine", 0.3), weight_decay=0.1, clip=0.5)


def learner(objective=None, seed=0, update=Update()):  # noqa: B008  frozen
    torch.manual_seed(seed)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(FRAME, 8), nn.BatchNorm1d(8), nn.Dropout(0.2))
    return start(nn.ModuleList([encoder]), objective or NoisyTarget(), 1e-2, update)


def epochs_of(
    who,
    cohort,
    epochs=6,
    seed=0,
    batch_size=7,
    patience=15,
    generate=noisy_views,
    keep="loss",
    run_epoch=plain_epoch,
    hold=None,
):
    store, train, validation = cohort
    settings = TrainSettings(epochs=epochs, batch_size=batch_size, patience=patience, keep=keep)
    clock = itertools.count().__next__
    maker = ViewMaker(generate, (), normalise=min_max)
    training = Training(store, maker, train, validation, settings, seed)
    return train_epochs(who, training, run_epoch, clock, lambda step, steps: None, extras=Extras(hold=hold))


def weights(who):
    return {name: tensor.clone() for name, tensor in who.encoders.state_dict().items()}


def numbers(done):
    return done.epoch, done.train_loss, done.validation_loss, done.best_epoch


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_the_same_seed_gives_the_same_weights_to_the_last_bit_and_another_seed_others(cohort):
    runs = []
    for seed in (0, 0, 1):
        who = learner()
        losses = [done.validation_loss for done in epochs_of(who, cohort, seed=seed)]
        runs.append((weights(who), losses))
    assert same(runs[0][0], runs[1][0])
    assert runs[0][1] == runs[1][1]
    assert not same(runs[0][0], runs[2][0])


def test_the_next_epoch_may_begin_before_the_caller_gets_the_last_one(cohort, monkeypatch):
    """As on a GPU. What the caller holds is of the epoch that has ended, and nothing else changes."""
    plain, states = learner(), []
    expected = [(numbers(done), states.append((weights(plain), plain.best))) for done in epochs_of(plain, cohort)]
    monkeypatch.setattr(loop, "_goes_ahead", lambda training, last: True)
    who, held, order = learner(), [], []

    def begins(learner, training, epoch, tick):
        order.append(f"begin {epoch}")
        return plain_epoch(learner, training, epoch, tick)

    found = []
    for done in epochs_of(who, cohort, run_epoch=begins, hold=lambda state: held.append(state.snapshot(who))):
        order.append(f"got {done.epoch}")
        found.append(numbers(done))
    assert found == [row for row, _ in expected]
    assert [one.progress.epoch for one in held] == [1, 2, 3, 4, 5]  # after the last epoch nothing changes
    for one, (last, best) in zip(held, states, strict=False):
        assert same(part_of(one, "encoders"), last)
        assert same(part_of(one, "best"), best)
    assert order[:4] == ["begin 1", "begin 2", "got 1", "begin 3"]
    assert order[-2:] == ["got 5", "got 6"]
    assert same(weights(who), weights(plain))
    assert same(who.best, plain.best)


@pytest.mark.parametrize("change", [Update(), CHANGING])
def test_an_epoch_that_began_in_vain_leaves_no_trace(cohort, monkeypatch, tmp_path, change):
    """Early stopping is seen when the next epoch has begun: weights, target, optimiser are put back."""
    files = []
    for ahead in (False, True):
        monkeypatch.setattr(loop, "_goes_ahead", lambda training, last, ahead=ahead: ahead)
        who, held = learner(update=change), []
        keep = lambda state, who=who, held=held: held.append(state.snapshot(who))  # noqa: E731
        told = [numbers(done) for done in epochs_of(who, cohort, epochs=30, patience=1, hold=keep)]
        assert who.progress.finished
        assert len(told) < 30
        save_checkpoint(who, tmp_path / f"{ahead}")
        if ahead:
            save_snapshot(held[-1], tmp_path / "held")
        files.append((told, (tmp_path / f"{ahead}").read_bytes()))
    assert files[0] == files[1]
    assert (tmp_path / "held").read_bytes() == files[1][1]


def part_of(snapshot, part):
    start = f"{part}."
    return {name.removeprefix(start): one for name, one in snapshot.tensors.items() if name.startswith(start)}


def test_an_epoch_that_began_early_counts_from_the_end_of_the_last(cohort, monkeypatch):
    """The clock ticks once per look: the times of all epochs together are those of the training."""
    monkeypatch.setattr(loop, "_goes_ahead", lambda training, last: True)
    seconds = [done.seconds for done in epochs_of(learner(), cohort, hold=lambda state: None)]
    assert sum(seconds) == 6 * 5 - 1  # looks: when an epoch begins, three moments in it, and its end


def test_an_epoch_that_fails_costs_the_caller_none_that_has_ended(cohort, monkeypatch):
    monkeypatch.setattr(loop, "_goes_ahead", lambda training, last: True)

    def fails(learner, training, epoch, tick):
        if epoch == 3:
            raise RuntimeError("the device is gone")
        return plain_epoch(learner, training, epoch, tick)

    got = []
    with pytest.raises(RuntimeError, match="the device is gone"):
        got.extend(done.epoch for done in epochs_of(learner(), cohort, run_epoch=fails, hold=lambda state: None))
    assert got == [1, 2]


@pytest.mark.parametrize(("stop_after", "update"), [(1, Update()), (3, Update()), (5, Update()), (3, CHANGING)])
def test_a_run_that_goes_on_from_its_checkpoint_ends_with_the_weights_of_one_that_never_stopped(
    cohort, tmp_path, stop_after, update
):
    """Weights, objective, optimiser, its schedule, random numbers, sampler, early stopping: all where they were."""
    whole = learner(update=update)
    rows = [numbers(done) for done in epochs_of(whole, cohort)]
    first = learner(update=update)
    for _ in itertools.islice(epochs_of(first, cohort), stop_after):
        save_checkpoint(first, tmp_path / "checkpoint")
    torch.rand(7)  # whatever happened to the process meanwhile
    second = learner(seed=99, update=update)
    load_checkpoint(second, tmp_path / "checkpoint")
    assert second.progress.epoch == stop_after
    more = [(done.epoch, done.train_loss, done.validation_loss, done.best_epoch) for done in epochs_of(second, cohort)]
    assert more == rows[stop_after:]
    assert same(weights(whole), weights(second))
    assert same(whole.best, second.best)
    assert same(whole.objective.state_dict(), second.objective.state_dict())
    assert whole.progress == second.progress


def test_the_learning_rate_follows_the_steps_of_all_epochs(cohort):
    """One that stopped early has not come to the end of its cosine; what is left is not made up for."""
    who = learner(update=Update(Schedule("cosine")))
    steps, rates = -(-len(cohort[1]) // 7), []
    step = who.optimiser.step
    who.optimiser.step = lambda: (rates.append(float(who.optimiser.rate())), step())
    list(itertools.islice(epochs_of(who, cohort, epochs=4), 2))
    expected = [1e-2 * (1 + math.cos(math.pi * number / (4 * steps))) / 2 for number in range(2 * steps)]
    assert rates == pytest.approx(expected)


def test_training_stops_after_more_than_patience_epochs_without_improvement(cohort):
    """As released: improvement is strictly lower, and the counter must exceed the patience."""
    progress = Progress()
    settings = TrainSettings(epochs=400, patience=15)
    for loss in [3.0, 2.0] + [2.0] * 16:
        assert not progress.finished
        progress = progress.after(loss, settings)
    assert progress == Progress(epoch=18, best_epoch=2, best_loss=2.0, finished=True)


def test_the_last_epoch_is_kept_where_that_is_asked_and_nothing_stops_early(cohort):
    """For a loss that grows while the network learns, such as one against a target that moves."""
    progress = Progress()
    settings = TrainSettings(epochs=40, patience=2, keep="last")
    for number in range(40):
        assert not progress.finished
        progress = progress.after(float(number), settings)
    assert (progress.best_epoch, progress.finished) == (40, True)


@pytest.mark.parametrize("total", ["total_steps", "total_instances"])
def test_training_of_a_given_length_does_not_stop_early(total):
    """Runs of equal exposure would else differ in it; which weights are kept is another question."""
    progress = Progress()
    settings = TrainSettings(epochs=40, patience=2, **{total: 1})
    for number in range(40):
        assert not progress.finished
        progress = progress.after(float(number), settings)
    assert (progress.best_epoch, progress.finished) == (1, True)


def test_the_epoch_that_separates_patients_best_is_kept_where_that_is_asked(cohort):
    """By what the listener is told of its validation embeddings, whatever the loss does."""
    who = learner(seed=3)
    rows = list(epochs_of(who, cohort, epochs=8, keep="separation"))
    found = [done.health.same_patient - done.health.other_patient for done in rows]
    assert rows[-1].best_epoch == 1 + found.index(max(found))
    by_loss = [done.validation_loss for done in rows]
    assert found.index(max(found)) != by_loss.index(min(by_loss))  # else this test would show nothing


def test_a_separation_that_is_not_defined_is_said_to_be_so(cohort):
    """Validation patients may be one."""
    store, train, validation = cohort
    one = Instances(validation.frame[:1], validation.channel[:1])
    with pytest.raises(NonFiniteLoss, match="needs two patients"):
        next(epochs_of(learner(), (store, train, one), keep="separation"))


def test_the_best_weights_are_those_of_the_best_epoch(cohort):
    who, seen = learner(), {}
    for done in epochs_of(who, cohort, epochs=12):
        seen[done.epoch] = weights(who)
        assert done.improved == (done.best_epoch == done.epoch)
    assert same(who.best, seen[who.progress.best_epoch])


def test_every_instance_is_seen_once_an_epoch_and_in_another_order_the_next(cohort):
    _, train, _ = cohort
    seen = []

    def spy(batch, generator):
        seen.append(batch.record * 100 + batch.segment * 10 + batch.channel)
        return noisy_views(batch, generator)

    done = list(epochs_of(learner(), cohort, epochs=2, generate=spy))
    everything = torch.cat(seen).tolist()
    steps = len(done[0].losses)
    assert steps == -(-len(train) // 7)
    half = len(everything) // 2
    first, second = everything[: len(train)], everything[half : half + len(train)]
    assert sorted(first) == sorted(second)
    assert len(set(first)) == len(train)
    assert first != second


def test_validation_is_of_every_validation_instance_once_and_of_no_other(cohort):
    store, _, validation = cohort
    seen = []

    def spy(z, patient):
        if not torch.is_grad_enabled():
            seen.extend(patient.tolist())
        return z.square().mean()

    list(epochs_of(learner(ContrastiveObjective(spy)), cohort, epochs=1))
    assert seen == store.patient[validation.frame[:, 0]].tolist()


def test_the_mean_loss_counts_the_ragged_last_batch_for_what_it_holds(cohort):
    _, train, _ = cohort
    objective = ContrastiveObjective(lambda z, patient: z.sum() * 0 + len(patient))
    (done,) = epochs_of(learner(objective), cohort, epochs=1)
    sizes = [7] * (len(train) // 7) + [len(train) % 7]
    assert done.train_loss == pytest.approx(sum(size * size for size in sizes) / len(train))


def test_a_loss_that_is_not_a_number_names_the_step_and_the_records_of_its_batch(cohort):
    store, _, _ = cohort
    bad = int(store.patient[0])

    def explode(z, patient):
        return torch.where((patient == bad).any(), z.sum() * float("nan"), z.square().mean())

    with pytest.raises(NonFiniteLoss, match=r"not finite at step \d+ of epoch 1; its batch holds the records .*r0-"):
        list(epochs_of(learner(ContrastiveObjective(explode)), cohort))


def test_a_validation_loss_that_is_not_a_number_ends_the_run(cohort):
    """No epoch is better than NaN, and NaN is better than none: the weights of such a run would be of any epoch."""

    def explode(z, patient):
        return z.square().mean() if torch.is_grad_enabled() else z.sum() * float("nan")

    with pytest.raises(NonFiniteLoss, match=r"The validation loss of epoch 1 is NaN, though the training"):
        list(epochs_of(learner(ContrastiveObjective(explode)), cohort))


def test_validation_has_the_same_views_at_every_epoch(cohort):
    """Early stopping compares epochs; with other random numbers it would compare those."""
    torch.manual_seed(0)
    still = start(nn.ModuleList([nn.Sequential(nn.Flatten(), nn.Linear(FRAME, 8))]), NoisyTarget(), 0.0)
    still.objective.after_step = lambda encoder: None  # nothing changes from epoch to epoch
    done = list(epochs_of(still, cohort, epochs=3))
    assert len({one.validation_loss for one in done}) == 1
    assert len({one.train_loss for one in done}) == 3  # training does see other noise


def test_encoder_and_objective_are_in_eval_mode_during_validation_and_train_mode_in_training(cohort):
    """An objective may have dropout and statistics of its own, such as those of a target network."""
    modes = set()

    class Watching(NoisyTarget):
        def forward(self, encode, views):
            modes.add((torch.is_grad_enabled(), self.training, who.encoders.training, who.encoders[0][2].training))
            return super().forward(encode, views)

    who = learner(Watching())
    list(epochs_of(who, cohort, epochs=2))
    assert modes == {(True,) * 4, (False,) * 4}


def test_every_weight_of_encoder_and_objective_that_needs_a_gradient_is_trained_once():
    """A head that is not trained would stay random, and a weight in two modules must not take two steps."""
    encoder, head = nn.Linear(3, 2), nn.Linear(2, 2)
    frozen = nn.Linear(3, 2).requires_grad_(False)
    who = start(nn.ModuleList([encoder]), nn.ModuleList([head, frozen, encoder]), 0.25)
    assert list(map(id, who.optimiser.weights)) == [*map(id, encoder.parameters()), *map(id, head.parameters())]
    assert who.optimiser.lr == 0.25


def test_a_batch_of_one_trains(cohort):
    """The last batch of an epoch can be a single instance."""
    (done,) = epochs_of(learner(), cohort, epochs=1, batch_size=len(cohort[1]) - 1)
    assert done.losses.isfinite().all()


def test_a_checkpoint_of_other_settings_is_refused(cohort, tmp_path):
    save_checkpoint(learner(), tmp_path / "checkpoint")
    other = start(nn.ModuleList([nn.Linear(3, 2)]), nn.Module(), 1e-2)
    with pytest.raises(RunFolderError, match="does not fit the run's settings"):
        load_checkpoint(other, tmp_path / "checkpoint")


@pytest.mark.parametrize("damage", ["truncate", "empty", "text"])
def test_a_damaged_checkpoint_is_refused_with_its_name(cohort, tmp_path, damage):
    path = tmp_path / "checkpoint"
    save_checkpoint(learner(), path)
    whole = path.read_bytes()
    path.write_bytes({"truncate": whole[: len(whole) // 2], "empty": b"", "text": b"not a checkpoint"}[damage])
    with pytest.raises(RunFolderError, match=r"Cannot read .*checkpoint"):
        read_tensors(path)


def test_by_view_training_encodes_every_view_by_itself(cohort):
    """The setting must reach the step: BatchNorm then sees batches of one view."""
    store, train, validation = cohort
    sizes = []

    class Watching(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(FRAME, 4)

        def forward(self, signal):
            if self.training:
                sizes.append(len(signal))
            return self.linear(signal[:, 0])

    settings = TrainSettings(epochs=1, batch_size=len(train), per_view=True)
    training = Training(store, ViewMaker(noisy_views, (), normalise=min_max), train, validation, settings, 0)
    who = start(nn.ModuleList([Watching()]), NoisyTarget(), 1e-2)
    list(train_epochs(who, training, plain_epoch, itertools.count().__next__, lambda step, steps: None))
    assert sizes == [len(train)] * 2


def test_health_is_of_a_view_that_the_first_encoder_reads(cohort):
    """That encoder is kept and evaluated; another one's collapse is not its own."""

    def crossed(batch, generator):
        return Views(batch.signal.transpose(0, 1), batch, encoder_of_view=(1, 0))

    torch.manual_seed(0)
    first, second = (nn.Sequential(nn.Flatten(), nn.Linear(FRAME, 8)) for _ in range(2))
    with torch.no_grad():
        second[1].weight[1:] = second[1].bias[1:] = 0  # one dimension is left
    who = start(nn.ModuleList([first, second]), ContrastiveObjective(lambda z, patient: 0 * z.sum()), 0.0)
    (done,) = epochs_of(who, cohort, epochs=1, generate=crossed)
    assert done.health.effective_rank > 3


class Parted(NoisyTarget):
    """The same loss with one of its components."""

    def forward(self, encode, views):
        loss = super().forward(encode, views)
        return loss, {"all": loss, "batch": loss.detach() * 0 + views.signal.shape[1]}


def test_an_epoch_tells_the_components_of_its_loss(cohort):
    """They are those of training; the loss that they belong to is trained and validated as without them."""
    plain, parted = (list(epochs_of(learner(made), cohort, epochs=2)) for made in (NoisyTarget(), Parted()))
    assert [numbers(done) for done in plain] == [numbers(done) for done in parted]
    count = len(cohort[1])
    sizes = [7] * (count // 7) + [count % 7]
    for done in parted:
        assert done.components["all"] == pytest.approx(done.train_loss, rel=1e-6)
        assert done.components["batch"] == pytest.approx(sum(size * size for size in sizes) / count)
    assert [done.components for done in plain] == [{}, {}]
