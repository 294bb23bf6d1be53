"""A checkpoint that was changed is refused with a sentence; `test_loop.py` trains on from whole ones."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from clocs_core.artifacts.tensors import read_tensors, save_tensors
from clocs_core.errors import RunFolderError
from clocs_core.settings.sections import TrainSettings
from clocs_core.train.checkpoint import hold, load_checkpoint, save_checkpoint
from clocs_core.train.learner import Learner, start


def learner() -> Learner:
    torch.manual_seed(0)
    return start(nn.ModuleList([nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))]), nn.Linear(2, 1), 1e-2)


def trained() -> Learner:
    """A learner after one step."""
    made = learner()
    made.objective(made.encoders[0](torch.randn(4, 3))).sum().backward()
    made.optimiser.step()
    return made


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "checkpoint.safetensors"
    save_checkpoint(trained(), path)
    return path


def rename(tensors, old, new):
    tensors[new] = tensors.pop(old)


def test_a_whole_checkpoint_is_loaded(written):
    before, after = trained(), learner()
    load_checkpoint(after, written)
    assert torch.equal(after.encoders[0][0].weight, before.encoders[0][0].weight)
    assert torch.equal(after.best["0.0.weight"], before.best["0.0.weight"])
    assert after.progress == before.progress
    states = [one.optimiser.state_dict() for one in (before, after)]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][n]["exp_avg"], states[1][n]["exp_avg"]) for n in states[0])


def test_a_restored_learner_takes_the_same_next_step(tmp_path):
    """Adam's moments are restored with the weights; without them the next step would differ."""
    first, second = trained(), learner()
    first.progress = first.progress.after(0.5, TrainSettings())
    save_checkpoint(first, tmp_path / "c.safetensors", {"a": [1]})
    assert load_checkpoint(second, tmp_path / "c.safetensors") == {"a": [1]}
    assert second.progress == first.progress
    for one in (first, second):
        one.optimiser.zero_grad()
        one.objective(one.encoders[0](torch.arange(12.0).view(4, 3))).sum().backward()
        one.optimiser.step()
    for mine, theirs in zip(first.encoders.parameters(), second.encoders.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, a: rename(t, "best.0.0.weight", "best.0.0.other"), "Missing key.*0.0.weight"),
        (lambda t, a: rename(t, "best.0.0.weight", "worst.0.0.weight"), "Missing key.*0.0.weight"),
        (lambda t, a: rename(t, "encoders.0.0.bias", "encoders.0.0.b"), "Missing key"),
        (lambda t, a: t.update({"best.0.0.bias": torch.tensor([0.0, torch.nan])}), "0.0.bias holds .* not finite"),
        (lambda t, a: t.update({"encoders.0.0.bias": torch.zeros(2).half()}), "holds torch.float16, expected"),
        (
            lambda t, a: rename(t, "optimiser.0.step", "optimiser.x.step"),
            "optimiser.x.step of shape .* belongs to",
        ),
        (lambda t, a: rename(t, "optimiser.0.step", "optimiser.99.step"), "belongs to none of its weights"),
        (lambda t, a: rename(t, "optimiser.0.step", "optimiser.0.stop"), "belongs to none of its weights"),
        (lambda t, a: t.update({"optimiser.0.exp_avg": torch.zeros(7)}), "belongs to none of its weights"),
        (lambda t, a: t.pop("optimiser.0.exp_avg"), "state of weight 0 is incomplete"),
        (lambda t, a: a.pop("progress"), "has no option 'progress'"),
        (lambda t, a: a["progress"].update(epoch="3"), "expected a whole number, got '3'"),
        (lambda t, a: a["progress"].update(best_epoch=9), "its best epoch is 9 of 0"),
        (lambda t, a: a.update(schema=True), "written by another version of clocs .schema True"),
    ],
)
def test_a_checkpoint_that_was_changed_is_refused_with_what_is_wrong(tmp_path, written, change, message):
    tensors, about = read_tensors(written)
    change(tensors, about)
    save_tensors(tensors, about, tmp_path / "checkpoint.safetensors")
    with pytest.raises(RunFolderError, match=f"checkpoint.safetensors .*{message}"):
        load_checkpoint(learner(), tmp_path / "checkpoint.safetensors")


def test_a_state_that_was_held_is_put_back_though_the_optimiser_knew_no_weight_yet():
    """Adam's averages of a weight begin with its first gradient, which may be in the epoch that is taken back."""
    made, other = learner(), learner()
    held = hold(made)
    made.objective(made.encoders[0](torch.randn(4, 3))).sum().backward()
    made.optimiser.step()
    assert not torch.equal(made.objective.bias, other.objective.bias)
    held.put_back(made)
    for found, expected in ((made.encoders, other.encoders), (made.objective, other.objective)):
        assert all(map(torch.equal, found.state_dict().values(), expected.state_dict().values()))
    assert made.optimiser.state
    assert not any(value.any() for state in made.optimiser.state.values() for value in state.values())
