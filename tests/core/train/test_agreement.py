"""A whole training over ranks: the same epochs as in one process; drift and different settings are refused."""

from __future__ import annotations

import itertools

import pytest
import torch
from fake_frames import FRAME, fake_store
from fake_recordings import CHANNELS
from torch import nn

from clocs_core.contracts.batches import Views
from clocs_core.data.store import list_instances
from clocs_core.errors import PluginError, SettingsError
from clocs_core.settings.sections import TrainSettings
from clocs_core.testing.threads import on_ranks
from clocs_core.train.agreement import refuse_differences, settings_facts
from clocs_core.train.epochs import Training, plain_epoch
from clocs_core.train.gradcache import gradcache_epoch
from clocs_core.train.learner import Learner, start
from clocs_core.train.loop import train_epochs
from clocs_core.train.normalise import min_max
from clocs_core.train.norms import share_norms
from clocs_core.train.ranks import Group
from clocs_core.train.step import ContrastiveObjective, ViewMaker
from clocs_plugins.contrastive_losses.patient_nce import patient_nce

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def cohort(prepared):
    train, _ = list_instances(prepared, frozenset({"p0", "p1", "p2", "p3"}), CHANNELS, 2, False, CPU)
    validation, _ = list_instances(prepared, frozenset({"p4", "p5"}), CHANNELS, 2, False, CPU)
    store = fake_store(prepared)
    for part in (train, validation):
        store.gather(part, torch.zeros(1, dtype=torch.int64))  # threads then only read it
    return store, train, validation


class Spread(nn.Module):
    """An objective that knows nothing of ranks, with a buffer and a component; it is no mean over instances.

    No gradient of it is nearly zero: Adam would make steps of their rounding.
    """

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.register_buffer("running", torch.zeros(()))

    def forward(self, encode, views):
        z = encode(views.signal)
        far = (self.scale * z.tanh() - 0.3 - 0.1 * self.running).pow(4).mean().sqrt()
        return (z[0] - z[1]).square().mean() + far, {"far": far}

    def after_step(self, encoder):
        self.running.mul_(0.9).add_(0.1)


def contrast():
    return ContrastiveObjective(lambda z, patient, ranks=None: patient_nce(z, patient, 0.1, ranks=ranks))


def noisy_views(batch, generator):
    signal = batch.signal.transpose(0, 1)
    return Views(signal + 0.1 * torch.randn(signal.shape, generator=generator), batch)


def min_max_in_double(signal, like=None):
    return min_max(signal.double(), None if like is None else like.double())


def untrained(objective, norm=True) -> Learner:
    last = nn.BatchNorm1d(8) if norm else nn.Tanh()
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(FRAME, 8, bias=False), last).double()
    with torch.no_grad():
        encoder[1].weight.copy_(torch.randn(8, FRAME, generator=torch.Generator().manual_seed(0)) / FRAME**0.5)
    return start(nn.ModuleList([encoder]), objective().double(), 1e-2)


def trained(cohort, objective, batch_size, group=None, shared=True, contrast=None):
    learner = untrained(objective, norm=contrast is None)
    if group is not None and shared:
        share_norms(learner.encoders, group)
    store, train, validation = cohort
    settings = TrainSettings(epochs=2, batch_size=batch_size, contrast_batch=contrast)
    training = Training(store, ViewMaker(noisy_views, (), min_max_in_double), train, validation, settings, 0, group)
    clock = itertools.count().__next__
    run_epoch = plain_epoch if contrast is None else gradcache_epoch
    return list(train_epochs(learner, training, run_epoch, clock, lambda step, steps: None)), learner


@pytest.mark.parametrize("objective", [contrast, Spread])
@pytest.mark.parametrize(("count", "leaves"), [(2, 3), (3, 1), (4, 2)])
def test_epochs_over_ranks_are_those_of_one_process(cohort, objective, count, leaves):
    """With 4 ranks and a last batch of 2 instances, two ranks are empty there."""
    size = next(size for size in range(2 * count, 40) if len(cohort[1]) % size == leaves)
    one, learner = trained(cohort, objective, size)
    for epochs, mine in on_ranks(count, lambda group: trained(cohort, objective, size, group)):
        for done, expected in zip(epochs, one, strict=True):
            assert done.train_loss == pytest.approx(expected.train_loss, rel=1e-10)
            assert done.validation_loss == pytest.approx(expected.validation_loss, rel=1e-10)
            assert done.components == pytest.approx(expected.components, rel=1e-10)
            assert torch.allclose(done.losses, expected.losses, rtol=1e-10)
            assert done.health.same_patient == pytest.approx(expected.health.same_patient, rel=1e-5)
            assert done.best_epoch == expected.best_epoch
        for name, value in learner.encoders.state_dict().items():
            assert torch.allclose(mine.encoders.state_dict()[name], value, rtol=0, atol=1e-9), name


@pytest.mark.parametrize("objective", [contrast, Spread])
@pytest.mark.parametrize(("count", "together"), [(2, 15), (3, 23), (4, 15)])
def test_a_contrast_larger_than_a_batch_is_that_of_all_ranks(cohort, objective, count, together):
    """Batches of 4 do not end where parts do; the last contrast of 47 instances by 23 has one, so two ranks none."""
    one, learner = trained(cohort, objective, 4, contrast=together)
    for epochs, mine in on_ranks(count, lambda group: trained(cohort, objective, 4, group, contrast=together)):
        for done, expected in zip(epochs, one, strict=True):
            assert done.validation_loss == pytest.approx(expected.validation_loss, rel=1e-10)
            assert done.components == pytest.approx(expected.components, rel=1e-10)
            assert torch.allclose(done.losses, expected.losses, rtol=1e-10)
        for name, value in learner.encoders.state_dict().items():
            assert torch.allclose(mine.encoders.state_dict()[name], value, rtol=0, atol=1e-9), name


def test_batch_norm_of_single_ranks_leaves_one_network(cohort):
    """Running statistics differ between ranks until the end of an epoch; the kept network must be one."""
    (_, first), (_, second) = on_ranks(2, lambda group: trained(cohort, contrast, 7, group, shared=False))
    for name, value in first.encoders.state_dict().items():
        assert torch.equal(second.encoders.state_dict()[name], value), name


class Drifting(Spread):
    """Changes a weight in one process only."""

    def forward(self, encode, views, ranks=None):
        z = encode(views.signal)
        with torch.no_grad():
            self.scale.add_(0.1 * (ranks is not None and ranks.rank == 1))
        return ((z - z.mean()).square().mean() + self.scale * 0) * 0.5


def test_weights_that_differ_between_ranks_are_refused(cohort):
    with pytest.raises(PluginError, match=r"The weight 'objective\.scale' differs between processes [01] and [01],"):
        on_ranks(2, lambda group: trained(cohort, Drifting, 7, group))


def test_different_settings_are_refused_with_the_difference():
    def compare(group: Group) -> None:
        tables = {"run": {"seed": 0}, "train": {"batch_size": 8 + group.rank}}
        refuse_differences({"clocs": "0.1.0", **settings_facts(tables)}, group, CPU)

    expected = "process 0 has train.batch_size = 8, and process 1 has train.batch_size = 9 in its place"
    with pytest.raises(SettingsError, match=expected):
        on_ranks(2, compare)


def test_equal_settings_are_not_refused():
    on_ranks(3, lambda group: refuse_differences({"clocs": "0.1.0", "data": "a\nb"}, group, CPU))
