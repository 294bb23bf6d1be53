"""The log of a training survives its trip through a checkpoint, numbers that JSON lacks included."""

from __future__ import annotations

import math

import attrs
import pytest
import torch

from clocs_core.artifacts.training_log import TrainingLog, pack_log, read_log
from clocs_core.contracts.events import EpochDone, Health
from clocs_core.errors import RunFolderError

HEALTH = Health(effective_rank=2.5, embedding_dim=8, same_patient=0.5, other_patient=math.nan, loss_over_log_batch=1.0)
DONE = EpochDone(
    epoch=1, losses=torch.tensor([0.1, math.inf]), train_loss=0.1, validation_loss=0.2, health=HEALTH, improved=True,
    best_epoch=1, instances=9, seconds=1.5, last=False, components={"pull": 0.25},
)  # fmt: skip


def test_a_log_is_read_as_it_was_packed() -> None:
    log = TrainingLog().after(DONE).adding(["careful"], {"prepare": 1.0})
    read = read_log(pack_log(log, []), "a checkpoint")
    assert (read.losses, read.warnings, read.seconds) == (log.losses, log.warnings, log.seconds)
    assert math.isnan(read.rows[0].other_patient)
    event = read.last(8, 1, False)
    assert (event.epoch, event.train_loss, event.last, event.seconds) == (1, 0.1, False, 1.5)
    assert event.losses.tolist() == DONE.losses.tolist()
    assert event.components == {"pull": 0.25}
    assert (event.health.effective_rank, event.health.embedding_dim) == (2.5, 8)


def test_rows_that_were_packed_are_kept_and_new_ones_are_added() -> None:
    packed: list[dict[str, object]] = []
    log = TrainingLog().after(DONE)
    first = pack_log(log, packed)
    longer = log.after(attrs.evolve(DONE, epoch=2))
    assert pack_log(longer, packed) == pack_log(longer, [])
    assert [one["epoch"] for one in packed] == [1, 2]
    assert packed[0] is first["rows"][0]  # type: ignore[index]
    other = log.after(attrs.evolve(DONE, epoch=2, train_loss=9.0))
    assert pack_log(other, packed) == pack_log(other, [])
    assert pack_log(log, packed) == first


def test_warnings_are_kept_once_and_seconds_add_up() -> None:
    before = TrainingLog().adding(["a", "b"], {"pretrain": 2.0})
    after = before.adding(["b", "c"], {"pretrain": 3.0, "prepare": 1.0})
    assert after.warnings == ("a", "b", "c")
    assert after.seconds == {"pretrain": 5.0, "prepare": 1.0}


def test_versions_that_changed_are_told_and_what_is_new_or_gone_is_not() -> None:
    """A plugin that was installed meanwhile has no part in the run, and an older checkpoint has no versions."""
    log = TrainingLog(versions={"torch": "2.11", "plugin ppg": "ppg 1.0", "plugin gone": "gone 1.0"})
    read = read_log(pack_log(log, []), "a checkpoint")
    now = {"torch": "2.11", "plugin ppg": "ppg 1.1", "plugin new": "new 1.0"}
    assert read.other_versions(now) == "plugin ppg ppg 1.1 (before: ppg 1.0)"
    assert TrainingLog().other_versions(now) == ""


def test_a_damaged_log_is_named() -> None:
    with pytest.raises(RunFolderError, match="a checkpoint does not hold what it should"):
        read_log({"rows": 3}, "a checkpoint")
