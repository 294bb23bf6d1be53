"""An epoch of training steps, one after another. What else can run an epoch keeps the same promise: `RunEpoch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs
import torch
from torch import Tensor

from clocs_core import seeds
from clocs_core.data.store import Instances, Store
from clocs_core.settings.sections import TrainSettings
from clocs_core.train.learner import Learner
from clocs_core.train.step import ViewMaker, train_step

Tick: TypeAlias = Callable[[int, int], None]
"""(done, steps): so many steps of an epoch are started, after one or after several together."""


@attrs.frozen(eq=False)
class Training:
    """What is trained on, and how: everything about training that training does not change."""

    store: Store
    make_views: ViewMaker
    train: Instances
    validation: Instances
    settings: TrainSettings
    seed: int


RunEpoch: TypeAlias = Callable[[Learner, Training, int, Tick], Tensor]
"""(learner, training, epoch, tick) -> losses (step,) on the device, the learner changed. Nothing waits for the device.

Every random number of an epoch follows from (seed, epoch) alone.
"""


def plain_epoch(learner: Learner, training: Training, epoch: int, tick: Tick) -> Tensor:
    """Every step by itself: gather, views, loss, gradient, update."""
    store, settings = training.store, training.settings
    generator = torch.Generator(store.device)
    seed_epoch(generator, training.seed, epoch)
    learner.encoders.train()
    learner.objective.train()
    batches = order_of(training, epoch).to(store.device).split(settings.batch_size)
    losses = []
    for step, rows in enumerate(batches, start=1):
        views = training.make_views(store.gather(training.train, rows), generator)
        losses.append(
            train_step(list(learner.encoders), learner.objective, learner.optimiser, views, settings.per_view)
        )
        tick(step, len(batches))
    return torch.stack(losses)  # (step,)


def pairs_per_anchor(training: Training) -> tuple[float, float]:
    """How many instances of other patients, and of its own, an instance meets on average in the first epoch."""
    patient = training.store.patient[training.train.frame[:, 0]].cpu()[order_of(training, 1)]
    own = others = 0.0
    for batch in patient.split(training.settings.contrast_batch or training.settings.batch_size):
        counts = batch.unique(return_counts=True)[1]
        own += float((counts * (counts - 1)).sum())
        others += float((counts * (len(batch) - counts)).sum())
    return others / len(patient), own / len(patient)


def equal_views(training: Training) -> list[int]:
    """The views that are the same as the first in each of some instances: there is nothing to learn from them."""
    rows = torch.arange(min(len(training.train), 16), device=training.store.device)
    generator = seeds.generator(training.store.device, training.seed, "equal views")
    signal = training.make_views(training.store.gather(training.train, rows), generator).signal
    same = torch.isclose(signal, signal[:1], rtol=1e-4, atol=1e-5).flatten(1).all(1)  # (view,); sync point: once a run
    return [view for view, alike in enumerate(same.tolist()) if alike and view]


def order_of(training: Training, epoch: int) -> Tensor:
    """The order (n,) in which an epoch sees the training instances, on the CPU."""
    generator = seeds.generator(torch.device("cpu"), training.seed, "order", epoch)
    return torch.randperm(len(training.train), generator=generator)


def seed_epoch(generator: torch.Generator, seed: int, epoch: int) -> None:
    """Put the random numbers of views, and those of dropout, where they are at the beginning of an epoch."""
    torch.manual_seed(seeds.derive(seed, "dropout", epoch))  # dropout draws from torch's own generators
    generator.manual_seed(seeds.derive(seed, "views", epoch))
