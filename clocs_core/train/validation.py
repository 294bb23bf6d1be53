"""Validate a learner: the mean loss over the validation instances, and embeddings of them, without an update."""

from __future__ import annotations

from typing import Protocol, TypeAlias, runtime_checkable

import torch
from torch import Tensor

from clocs_core import seeds
from clocs_core.train import health
from clocs_core.train.epochs import RunEpoch, Training
from clocs_core.train.learner import Learner
from clocs_core.train.step import validation_step

Validated: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""The mean loss, and embeddings (view, n, dim) with patients (n,) of the first or of all instances, on the device."""

PURPOSE = "validation views"  # of the seed: the same random numbers every epoch, or early stopping would compare noise


@runtime_checkable
class Validates(Protocol):
    """A `RunEpoch` that has its own way to validate."""

    def validate(self, learner: Learner, training: Training, whole: bool) -> Validated:
        """Validate, as `plain_validation` does."""


def validate(run_epoch: RunEpoch, learner: Learner, training: Training, whole: bool) -> Validated:
    """Validate in the way of `run_epoch`, if it has one, else plainly. whole: return all embeddings."""
    way = run_epoch.validate if isinstance(run_epoch, Validates) else plain_validation
    return way(learner, training, whole)


def plain_validation(learner: Learner, training: Training, whole: bool) -> Validated:
    """Validate one batch at a time. No host sync."""
    store, batch_size, count = training.store, training.settings.batch_size, len(training.validation)
    group = training.group
    learner.encoders.eval()
    learner.objective.eval()
    generator = seeds.generator(store.device, training.seed, PURPOSE)
    losses, embeddings, patients = [], [], []
    for number, rows in enumerate(torch.arange(count, device=store.device).split(batch_size)):
        views = training.make_views(store.gather(training.validation, rows), generator)
        loss, z = validation_step(
            list(learner.encoders), learner.objective, views, training.settings.autocast, generator, group
        )
        losses.append(loss)
        if number < batches_kept(training, whole):
            embeddings.append(z if group is None else group.join(z, dim=1))
            patients.append(views.batch.patient)
    each = torch.stack(losses) if group is None else group.sum(torch.stack(losses))  # (batch,)
    mean = weighted_mean(each, count, batch_size)
    return mean, first_encoder_first(torch.cat(embeddings, dim=1), views.encoder_of_view), torch.cat(patients)


def batches_kept(training: Training, whole: bool) -> int:
    """Return how many batches' embeddings are returned: all, or those that the health of training is measured on."""
    batch_size = training.settings.batch_size
    every = -(-len(training.validation) // batch_size)
    return every if whole else min(every, -(-health.MEASURED // batch_size))


def first_encoder_first(z: Tensor, encoder_of_view: tuple[int, ...]) -> Tensor:
    """Roll embeddings (view, n, dim) until the first view is one of encoder 0, which evaluation uses."""
    return z.roll(-encoder_of_view.index(0) if 0 in encoder_of_view else 0, dims=0)


def weighted_mean(losses: Tensor, instances: int, batch_size: int) -> Tensor:
    """Return the mean over instances; the last batch, which may be smaller, counts by its size."""
    full = torch.full_like(losses, batch_size)
    full[-1:].fill_(instances - batch_size * (len(losses) - 1))  # an assignment would wait for the device
    return (losses * full).sum() / instances
