"""A large contrast, encoded a batch at a time: the gradients are those of encoding it at once."""

import copy

import pytest
import torch
from fake_frames import FRAME, fake_store
from fake_recordings import CHANNELS
from torch import nn

from clocs_core.contracts.batches import Views
from clocs_core.data.store import list_instances
from clocs_core.settings.sections import TrainSettings
from clocs_core.train.adam import Update
from clocs_core.train.epochs import Training, pairs_per_anchor
from clocs_core.train.gradcache import contrast_step, gradcache_epoch
from clocs_core.train.learner import start
from clocs_core.train.normalise import min_max
from clocs_core.train.schedule import Schedule
from clocs_core.train.step import ContrastiveObjective, ViewMaker, encode, train_step

CPU = torch.device("cpu")


def noisy_views(batch, generator):
    signal = batch.signal.transpose(0, 1)
    return Views(signal + 0.1 * torch.randn(signal.shape, generator=generator), batch)


def cross_views(batch, generator):
    return Views(noisy_views(batch, generator).signal, batch, pairs=((0, 1),))


def contrast(z, patient):
    """Every instance attracts its other view and repels all others: the gradient of one depends on all."""
    similarity = nn.functional.normalize(z[0], dim=-1) @ nn.functional.normalize(z[1], dim=-1).T / 0.2
    same = (patient[:, None] == patient[None, :]).to(z.dtype)
    return (similarity.logsumexp(1) - (similarity * same).sum(1) / same.sum(1)).mean()


@pytest.fixture(scope="module")
def cohort(prepared):
    train, _ = list_instances(prepared, frozenset({f"p{number}" for number in range(6)}), CHANNELS, 2, False, CPU)
    return fake_store(prepared), train


def training_of(cohort, batch_size, contrast_batch, generate=noisy_views):
    store, train = cohort
    settings = TrainSettings(batch_size=batch_size, contrast_batch=contrast_batch)
    return Training(store, ViewMaker(generate, (), normalise=min_max), train, train, settings, 0)


def learner_of(*layers):
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(FRAME, 16), *layers, nn.Linear(16, 8))
    made = start(nn.ModuleList([encoder]), ContrastiveObjective(contrast), 1e-2)
    made.encoders.train()
    return made


def gradients(learner):
    return [parameter.grad.clone() for parameter in learner.encoders.parameters()]


@pytest.mark.parametrize("generate", [noisy_views, cross_views])
def test_without_batchnorm_the_gradients_are_those_of_the_plain_large_batch(cohort, generate):
    """Views without randomness of their own would hide a generator that was not put back: these draw noise."""
    rows = torch.arange(20)
    learner, other = learner_of(nn.Tanh()), learner_of(nn.Tanh())
    training = training_of(cohort, 7, 20, generate)
    # The noise of a large batch is drawn in one go, that of three small ones in three: hand the same views to both.
    generator = torch.Generator().manual_seed(5)
    parts = [training.make_views(training.store.gather(training.train, part), generator) for part in rows.split(7)]
    signal = torch.cat([part.signal for part in parts], dim=1)
    patient = torch.cat([part.batch.patient for part in parts])
    expected = other.objective.of(encode(list(other.encoders), (), signal), patient, parts[0].pairs)
    expected.backward()
    loss = contrast_step(learner, training, rows, torch.Generator().manual_seed(5))
    assert torch.allclose(loss, expected, atol=1e-6)
    for found, wanted in zip(gradients(learner), gradients(other), strict=True):
        assert torch.allclose(found, wanted, atol=1e-6)


def test_with_batchnorm_and_dropout_they_are_those_of_one_loss_over_batches_encoded_one_by_one(cohort):
    """The same chunks, the same masks, statistics by chunk; and running statistics see every chunk once."""
    rows = torch.arange(20)
    layers = (nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3))
    learner, other = learner_of(*layers), learner_of(*copy.deepcopy(layers))
    training = training_of(cohort, 7, 20)
    torch.manual_seed(3)
    generator, embeddings, patients = torch.Generator().manual_seed(5), [], []
    for chunk in rows.split(7):
        views = training.make_views(training.store.gather(training.train, chunk), generator)
        embeddings.append(encode(list(other.encoders), (), views.signal))
        patients.append(views.batch.patient)
    contrast(torch.cat(embeddings, dim=1), torch.cat(patients)).backward()
    torch.manual_seed(3)
    contrast_step(learner, training, rows, torch.Generator().manual_seed(5))
    for found, wanted in zip(gradients(learner), gradients(other), strict=True):
        assert torch.allclose(found, wanted, atol=1e-6)
    for (name, found), wanted in zip(learner.encoders.named_buffers(), other.encoders.buffers(), strict=True):
        assert torch.allclose(found.double(), wanted.double(), atol=1e-6), name


def test_a_contrast_of_one_batch_is_the_plain_step(cohort):
    rows = torch.arange(9)
    layers = (nn.BatchNorm1d(16), nn.Dropout(0.3))
    learner, other = learner_of(*layers), learner_of(*copy.deepcopy(layers))
    training = training_of(cohort, 9, 9)
    torch.manual_seed(3)
    views = training.make_views(training.store.gather(training.train, rows), torch.Generator().manual_seed(5))
    expected = train_step(list(other.encoders), other.objective, other.optimiser, views)
    torch.manual_seed(3)
    found = contrast_step(learner, training, rows, torch.Generator().manual_seed(5))
    learner.optimiser.step()
    assert torch.allclose(found, expected)
    for name, tensor in learner.encoders.state_dict().items():
        assert torch.allclose(tensor, other.encoders.state_dict()[name], atol=1e-6), name


def test_an_epoch_sees_every_instance_in_contrasts_of_the_size_asked_for(cohort):
    sizes = []

    def spy(z, patient):
        sizes.append(z.shape[1])
        return contrast(z, patient)

    training = training_of(cohort, 8, 20)
    learner = learner_of(nn.Tanh())
    learner.objective = ContrastiveObjective(spy)
    losses = gradcache_epoch(learner, training, 1, lambda *_: None)
    count = len(training.train)
    assert sizes == [20] * (count // 20) + ([count % 20] if count % 20 else [])
    assert len(losses) == len(sizes)
    again = learner_of(nn.Tanh())
    assert torch.equal(losses, gradcache_epoch(again, training, 1, lambda *_: None))


def test_a_schedule_counts_contrasts(cohort):
    """A step is a contrast, of however many batches."""
    training = training_of(cohort, 8, 20)
    learner = learner_of(nn.Tanh())
    learner.optimiser.update = Update(Schedule("cosine"))
    losses = gradcache_epoch(learner, training, 3, lambda *_: None)
    assert learner.optimiser.done == 3 * len(losses)
    assert learner.optimiser.steps == training.settings.epochs * len(losses)


def test_how_many_an_instance_meets_is_counted_over_the_batches_of_an_epoch(cohort):
    """In one batch of all: everybody else, of whom the own patient's are counted apart."""
    store, train = cohort
    patient = store.patient[train.frame[:, 0]].tolist()
    own = sum(patient[i] == patient[j] for i in range(len(patient)) for j in range(len(patient)) if i != j)
    others, mine = pairs_per_anchor(training_of(cohort, len(patient), None))
    assert mine == pytest.approx(own / len(patient))
    assert others + mine == pytest.approx(len(patient) - 1)
    fewer, _ = pairs_per_anchor(training_of(cohort, 4, 8))
    assert fewer < 8
