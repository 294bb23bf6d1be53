"""A checkpoint restores all that training changes, and says why it does not fit."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from clocs_core.artifacts.tensors import read_tensors, save_tensors
from clocs_core.errors import RunFolderError
from clocs_core.settings.sections import TrainSettings
from clocs_core.train.checkpoint import load_checkpoint, save_checkpoint
from clocs_core.train.learner import start


def learner_of(seed, width=3):
    torch.manual_seed(seed)
    return start(nn.ModuleList([nn.Linear(2, width)]), nn.Linear(width, 1), 0.1)


def step(learner):
    learner.optimiser.zero_grad()
    learner.objective(learner.encoders[0](torch.ones(4, 2))).sum().backward()
    learner.optimiser.step()


def test_a_restored_learner_takes_the_same_next_step(tmp_path):
    """Adam's moments are restored with the weights; without them the next step would differ."""
    first, second = learner_of(0), learner_of(1)
    step(first)
    first.progress = first.progress.after(0.5, TrainSettings())
    save_checkpoint(first, tmp_path / "c.safetensors")
    load_checkpoint(second, tmp_path / "c.safetensors")
    step(first)
    step(second)
    assert second.progress == first.progress
    for mine, theirs in zip(first.encoders.parameters(), second.encoders.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    assert all(torch.equal(first.best[name], second.best[name]) for name in first.best)


def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "c.safetensors"
    save_checkpoint(learner_of(0), path)
    with pytest.raises(RunFolderError, match=r"does not fit the run's settings: .* Start a new run\."):
        load_checkpoint(learner_of(0, width=5), path)
    tensors, about = read_tensors(path)
    save_tensors(tensors, {**about, "schema": 99}, path)
    with pytest.raises(RunFolderError, match=r"written by another version of clocs \(schema 99, this one reads 1"):
        load_checkpoint(learner_of(0), path)
