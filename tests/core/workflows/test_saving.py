"""Epochs are saved before listeners hear of them, at once or in a thread beside the next epoch."""

from __future__ import annotations

from pathlib import Path
from threading import Event, current_thread, main_thread
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from clocs_core.artifacts.training_log import TrainingLog
from clocs_core.train.checkpoint import hold, load_checkpoint
from clocs_core.train.learner import Learner, Progress, start
from clocs_core.workflows import saving

CPU, GPU = torch.device("cpu"), torch.device("cuda")


class Kept:
    """Stands for a keeper and for the surroundings: writes down what happens, in its order."""

    writes = True

    def __init__(self, path: Path) -> None:
        self.checkpoint, self.order = path, list[str]()

    def keep_epoch(self, row: SimpleNamespace) -> None:
        self.order.append(f"row {row.epoch}")

    def tell_until(self, epoch: int) -> None:
        self.order.append(f"told {epoch}")

    def epoch(self, run: object, done: SimpleNamespace) -> None:
        assert saved_epoch(self.checkpoint) >= done.epoch  # listeners may rely on it
        self.order.append(f"listeners {done.epoch}")


def learner() -> Learner:
    torch.manual_seed(0)
    return start(torch.nn.ModuleList([torch.nn.Linear(3, 2)]), torch.nn.Identity(), 0.1)


def saved_epoch(path: Path) -> int:
    found = learner()
    load_checkpoint(found, path)
    return found.progress.epoch


def train(kept: Kept, device: torch.device, epochs: int, made: Learner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Save some epochs; after each, change the weights, as the next epoch would."""
    monkeypatch.setattr(saving, "pack_log", lambda log, _: {"epochs": len(log.rows)})
    any_kept: Any = kept
    with saving.saving(None, any_kept, any_kept, device) as saver:  # type: ignore[arg-type]  # listeners get it only
        for epoch in range(1, epochs + 1):
            made.progress = Progress(epoch=epoch)
            row: Any = SimpleNamespace(epoch=epoch)
            saver.save(row, made, TrainingLog(rows=(row,) * epoch))
            with torch.no_grad():
                made.encoders[0].weight.add_(1.0)


@pytest.mark.parametrize("device", [CPU, GPU], ids=str)
def test_every_epoch_is_saved_and_told_in_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: torch.device
) -> None:
    kept = Kept(tmp_path / "c")
    train(kept, device, 3, learner(), monkeypatch)
    assert kept.order == [f"{what} {epoch}" for epoch in (1, 2, 3) for what in ("row", "listeners", "told")]


@pytest.mark.parametrize("device", [CPU, GPU], ids=str)
def test_weights_are_saved_as_they_were_at_the_end_of_the_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: torch.device
) -> None:
    """The next epoch changes them while a thread writes: here it writes only when they have changed."""
    changed, save = Event(), saving.save_snapshot

    def late(*arguments: Any) -> None:
        assert changed.wait(10)
        save(*arguments)

    monkeypatch.setattr(saving, "save_snapshot", late)
    kept, made = Kept(tmp_path / "c"), learner()
    expected = made.encoders[0].weight.detach().clone()
    any_kept: Any = kept
    monkeypatch.setattr(saving, "pack_log", lambda log, _: {})
    with saving.saving(None, any_kept, any_kept, device) as saver:  # type: ignore[arg-type]
        made.progress = Progress(epoch=1)
        row: Any = SimpleNamespace(epoch=1)
        saver.save(row, made, TrainingLog(rows=(row,)))
        with torch.no_grad():
            made.encoders[0].weight.add_(1.0)
        changed.set()
    found = learner()
    load_checkpoint(found, kept.checkpoint)
    assert torch.equal(found.encoders[0].weight, expected)


def test_weights_that_were_held_are_saved_whatever_came_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU the next epoch may be under way before an epoch is saved."""
    monkeypatch.setattr(saving, "pack_log", lambda log, _: {})
    kept, made = Kept(tmp_path / "c"), learner()
    any_kept: Any = kept
    expected = made.encoders[0].weight.detach().clone()
    with saving.saving(None, any_kept, any_kept, GPU) as saver:  # type: ignore[arg-type]
        made.progress = Progress(epoch=1)
        saver.hold(hold(made))
        with torch.no_grad():
            made.encoders[0].weight.add_(1.0)
        row: Any = SimpleNamespace(epoch=1)
        saver.save(row, made, TrainingLog(rows=(row,)))
    found = learner()
    load_checkpoint(found, kept.checkpoint)
    assert (found.progress.epoch, torch.equal(found.encoders[0].weight, expected)) == (1, True)


def test_only_a_training_on_a_gpu_has_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []
    for name in ("save_checkpoint", "save_snapshot"):
        save = getattr(saving, name)
        monkeypatch.setattr(
            saving, name, lambda *more, save=save: (threads.append(current_thread() is main_thread()), save(*more))[1]
        )
    train(Kept(tmp_path / "a"), CPU, 1, learner(), monkeypatch)
    train(Kept(tmp_path / "b"), GPU, 1, learner(), monkeypatch)
    assert threads == [True, False]


@pytest.mark.parametrize("epochs", [1, 3], ids=["at the end", "at the next epoch"])
def test_a_checkpoint_that_cannot_be_written_stops_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epochs: int
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saving, "save_snapshot", full)
    kept = Kept(tmp_path / "c")
    with pytest.raises(OSError, match="No space left"):
        train(kept, GPU, epochs, learner(), monkeypatch)
    assert kept.order == ["row 1"]  # nobody was told of an epoch that is not there


def test_an_interrupt_leaves_the_checkpoint_whole_and_its_epoch_untold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed run tells listeners of it."""
    monkeypatch.setattr(saving, "pack_log", lambda log, _: {})
    kept, made = Kept(tmp_path / "c"), learner()
    any_kept: Any = kept

    def interrupted() -> None:
        made.progress = Progress(epoch=1)
        row: Any = SimpleNamespace(epoch=1)
        with saving.saving(None, any_kept, any_kept, GPU) as saver:  # type: ignore[arg-type]
            saver.save(row, made, TrainingLog(rows=(row,)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert saved_epoch(kept.checkpoint) == 1
    assert kept.order == ["row 1"]
