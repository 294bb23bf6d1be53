"""What training changes, and when it is over."""

from __future__ import annotations

import torch
from torch import nn

from clocs_core.settings.sections import TrainSettings
from clocs_core.train.learner import Progress, start


def test_training_ends_when_no_epoch_was_better_for_longer_than_the_patience():
    """Better is strictly lower: an equal loss is stale."""
    settings, progress, told = TrainSettings(epochs=99, patience=2), Progress(), []
    for loss in (3.0, 2.0, 2.0, 2.5, 4.0):
        progress = progress.after(loss, settings)
        told.append((progress.best_epoch, progress.best_loss, progress.finished))
    assert told == [(1, 3.0, False), *[(2, 2.0, False)] * 3, (2, 2.0, True)]


def test_training_ends_with_the_last_epoch():
    progress = Progress().after(1.0, TrainSettings(epochs=2)).after(0.5, TrainSettings(epochs=2))
    assert (progress.epoch, progress.best_epoch, progress.finished) == (2, 2, True)


def test_a_parameter_that_encoder_and_objective_share_is_updated_once():
    encoder = nn.Linear(2, 2)
    encoder.bias.requires_grad_(False)
    objective = nn.Sequential(encoder, nn.Linear(2, 1))
    learner = start(nn.ModuleList([encoder]), objective, 0.1)
    assert [id(one) for one in learner.optimiser.weights] == [id(encoder.weight), *map(id, objective[1].parameters())]


def test_the_best_weights_are_a_copy():
    learner = start(nn.ModuleList([nn.Linear(2, 2)]), nn.Identity(), 0.1)
    with torch.no_grad():
        learner.encoders[0].weight.add_(1)
    assert not torch.equal(learner.best["0.weight"], learner.encoders[0].weight)
    learner.keep_best()
    assert torch.equal(learner.best["0.weight"], learner.encoders[0].weight)
