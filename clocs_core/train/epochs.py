"""Run an epoch step by step. Every function that runs epochs has the same signature: `RunEpoch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs
import torch
from torch import Tensor

from clocs_core import seeds
from clocs_core.contracts.batches import Views
from clocs_core.data.store import Instances, Store
from clocs_core.settings.sections import TrainSettings
from clocs_core.train.learner import Learner
from clocs_core.train.ranks import Group
from clocs_core.train.step import Encoding, ViewMaker, update

Tick: TypeAlias = Callable[[int, int], None]
"""(done, steps): reports that `done` of an epoch's `steps` have been started; called after one or several steps."""


@attrs.frozen(eq=False)
class Training:
    """The constant inputs of training: data, views, settings, seed, and the processes that share it; None for one."""

    store: Store
    make_views: ViewMaker
    train: Instances
    validation: Instances
    settings: TrainSettings
    seed: int
    group: Group | None = None

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return -(-len(self.train) // self.settings.together)


RunEpoch: TypeAlias = Callable[[Learner, Training, int, Tick], Tensor]
"""(learner, training, epoch, tick) -> losses (step,) on the device. Changes the learner; causes no host sync.

Every random number of an epoch follows from (seed, epoch) alone.
"""


def plain_epoch(learner: Learner, training: Training, epoch: int, tick: Tick) -> Tensor:
    """Run an epoch one step at a time: gather, views, loss, gradient, update."""
    store, settings = training.store, training.settings
    generator = torch.Generator(store.device)
    begin_epoch(learner, training, generator, epoch)
    batches = order_of(training, epoch).to(store.device).split(settings.batch_size)
    losses = []
    for step, rows in enumerate(batches, start=1):
        views = training.make_views(store.gather(training.train, rows), generator)
        losses.append(step_of(learner, settings, views, generator, training.group))
        tick(step, len(batches))
    return torch.stack(losses)  # (step,)


def pairs_per_anchor(training: Training) -> tuple[float, float]:
    """Return, per anchor and on average over the first epoch's batches: instances of other patients, of its patient."""
    own = others = 0.0
    for batch in _patients_by_batch(training):
        counts = batch.unique(return_counts=True)[1]
        own += float((counts * (counts - 1)).sum())
        others += float((counts * (len(batch) - counts)).sum())
    return others / len(training.train), own / len(training.train)


def share_of_lone_patients(training: Training) -> float:
    """Return the share of the first epoch's batches that have instances of one patient only."""
    batches = _patients_by_batch(training)
    return sum(int(batch.min() == batch.max()) for batch in batches) / len(batches)


def _patients_by_batch(training: Training) -> tuple[Tensor, ...]:
    """Return the patients (batch,) of each batch of the first epoch, on the CPU."""
    patient = training.store.patient[training.train.frame[:, 0]].cpu()[order_of(training, 1)]
    return tuple(patient.split(training.settings.together))


def equal_views(training: Training) -> list[int]:
    """Return the views that equal the first view in all of up to 16 instances: such views teach nothing."""
    rows = torch.arange(min(len(training.train), 16), device=training.store.device)
    generator = seeds.generator(training.store.device, training.seed, "equal views")
    signal = training.make_views(training.store.gather(training.train, rows), generator).signal
    same = torch.isclose(signal, signal[:1], rtol=1e-4, atol=1e-5).flatten(1).all(1)  # (view,); sync point: once a run
    return [view for view, alike in enumerate(same.tolist()) if alike and view]


def order_of(training: Training, epoch: int) -> Tensor:
    """Return the order (n,) of the training instances in an epoch, on the CPU."""
    generator = seeds.generator(torch.device("cpu"), training.seed, "order", epoch)
    return torch.randperm(len(training.train), generator=generator)


def step_of(
    learner: Learner, settings: TrainSettings, views: Views, generator: torch.Generator, group: Group | None = None
) -> Tensor:
    """Update a learner once, as its settings say, and add up component losses. Return the loss, on the device.

    group: the processes that share the batch. Each has the views of the whole batch, and returns its share of the loss.
    """
    embed = Encoding(list(learner.encoders), views.encoder_of_view, settings.per_view, settings.autocast)
    loss, components = update(embed, learner.objective, learner.optimiser, views, generator, group)
    if components:
        learner.components.add(components, views.signal.shape[1])
    return loss


def begin_epoch(learner: Learner, training: Training, generator: torch.Generator, epoch: int) -> None:
    """Put a learner at the start of an epoch: generators, training mode, component losses, the step of a schedule."""
    seed_epoch(generator, training.seed, epoch, 0 if training.group is None else training.group.rank)
    learner.encoders.train()
    learner.objective.train()
    learner.components.begin()
    learner.optimiser.begin((epoch - 1) * training.steps, training.settings.epochs * training.steps)


def seed_epoch(generator: torch.Generator, seed: int, epoch: int, rank: int = 0) -> None:
    """Seed the generators of views and of dropout for the start of an epoch. Processes differ in dropout alone."""
    purpose = ("dropout", epoch, rank) if rank else ("dropout", epoch)
    torch.manual_seed(seeds.derive(seed, *purpose))  # dropout draws from torch's default generators
    generator.manual_seed(seeds.derive(seed, "views", epoch))
