"""The demo over 1, 2 and 4 ranks in float64: one course of training, to rounding."""

from __future__ import annotations

import itertools
from pathlib import Path

import attrs
import pytest
import torch

from clocs_core.contracts.batches import Batch, Views
from clocs_core.contracts.events import EpochDone
from clocs_core.data.store import fill_store
from clocs_core.plan.pretraining import resolve
from clocs_core.plugins.session import open_session
from clocs_core.testing.threads import on_ranks
from clocs_core.train.build import build_learner, describe_signals
from clocs_core.train.epochs import Training, plain_epoch
from clocs_core.train.learner import Learner
from clocs_core.train.loop import train_epochs
from clocs_core.train.ranks import Group
from clocs_core.train.step import share_statistics
from clocs_core.workflows.surroundings import Surroundings
from clocs_core.workflows.training import prepare_run

CPU = torch.device("cpu")
# Without biases before BatchNorm: their gradient is zero, and Adam makes steps of its rounding.
ASKED = ("patients=12", "dropout=0", "widths=4,8", "blocks=1", "epochs=5", "batch_size=22", "device=cpu")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["cmsc", "vicreg", "moco"])
def test_validation_losses_do_not_depend_on_the_number_of_ranks(method: str, tmp_path: Path) -> None:
    """Batches are ragged: the last one has fewer instances. VICReg has the whole batch in every rank, MoCo its keys."""
    session = open_session()
    run = {"method": method, "dataset": "demo", "encoder": "resnet1d"}
    plan = resolve(session.catalogue, {"run": run}, (*ASKED, f"data_root={tmp_path}"))
    ready = prepare_run(plan, Surroundings(session.host))
    plan, cohort = ready.plan, ready.cohort
    signals = describe_signals(plan, cohort.pretrain, cohort.channels)
    store = fill_store(cohort.pretrain, cohort.labels, plan.task, cohort.channels, CPU, cohort.about)
    assert len(ready.instances["train"]) % 22

    def make_views(batch: Batch, generator: torch.Generator) -> Views:
        views = ready.make_views(batch, generator)
        return attrs.evolve(views, signal=views.signal.double())

    def untrained() -> Learner:
        learner = build_learner(plan, signals, CPU, len(ready.instances["train"]), cohort.columns)
        for network in (learner.encoders, learner.objective):
            network.double()
        return learner

    def trained(learner: Learner, group: Group | None) -> list[EpochDone]:
        if group is not None:
            share_statistics(learner.encoders, learner.objective, group)
        parts = ready.instances["train"], ready.instances["validation"]
        training = Training(store, make_views, *parts, plan.train, plan.run.seed, group)
        clock = itertools.count().__next__
        return list(train_epochs(learner, training, plain_epoch, clock, lambda step, steps: None))

    one = trained(untrained(), None)
    assert len(one) == 5
    for count in (2, 4):
        several = [untrained() for _ in range(count)]  # not by threads: they share the generator of weights
        for epochs in on_ranks(count, lambda group, several=several: trained(several[group.rank], group)):  # type: ignore[misc]
            for done, expected in zip(epochs, one, strict=True):
                assert done.train_loss == pytest.approx(expected.train_loss, rel=1e-9)
                assert done.validation_loss == pytest.approx(expected.validation_loss, rel=1e-9)
