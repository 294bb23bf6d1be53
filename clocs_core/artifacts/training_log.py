"""The log of a training: its epochs, the losses of the last one, its warnings and its time. A checkpoint has it inside.

So a resumed run restores metrics.jsonl, adds up its time, and tells listeners of an epoch that a kill kept from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
import torch

from clocs_core.artifacts.documents import as_plain, structure_record
from clocs_core.artifacts.metrics import EpochRow, health_of, row_of
from clocs_core.contracts.events import EpochDone


@attrs.frozen(kw_only=True)
class TrainingLog:
    """The epochs of a run so far.

    losses: the loss of each step of the last epoch. seconds: the time of all processes of the run, by stage.
    versions: the device, and the versions of clocs, its libraries and its plugins, of the last process.
    """

    rows: tuple[EpochRow, ...] = ()
    losses: tuple[float, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: dict[str, float] = attrs.field(factory=dict)
    versions: dict[str, str] = attrs.field(factory=dict)

    def after(self, done: EpochDone) -> TrainingLog:
        """Return the log with one more epoch."""
        losses = tuple(done.losses.tolist())  # sync point: once per epoch
        return attrs.evolve(self, rows=(*self.rows, row_of(done)), losses=losses)

    def adding(self, warnings: Iterable[str], seconds: Mapping[str, float]) -> TrainingLog:
        """Return the log with the warnings and the time of one more process."""
        spent = {stage: self.seconds.get(stage, 0.0) + more for stage, more in seconds.items()}
        said = tuple(dict.fromkeys((*self.warnings, *warnings)))
        return attrs.evolve(self, warnings=said, seconds={**self.seconds, **spent})

    def other_versions(self, now: Mapping[str, str]) -> str:
        """Return what is of another version now than in the last process, in words; empty if nothing is."""
        changed = {name: one for name, one in self.versions.items() if now.get(name, one) != one}
        return ", ".join(f"{name} {now[name]} (before: {one})" for name, one in sorted(changed.items()))

    def last(self, embedding_dim: int, best_epoch: int, finished: bool) -> EpochDone:
        """Return the event of the last epoch, as it was when the epoch ended."""
        row = self.rows[-1]
        return EpochDone(
            epoch=row.epoch,
            losses=torch.tensor(self.losses),
            train_loss=row.train_loss,
            validation_loss=row.validation_loss,
            health=health_of(row, embedding_dim),
            improved=row.improved,
            best_epoch=best_epoch,
            instances=row.instances,
            seconds=row.seconds,
            last=finished,
            components=row.components,
        )


def pack_log(log: TrainingLog, packed: list[dict[str, object]]) -> dict[str, object]:
    """Return a log as plain values for JSON.

    packed: rows of the same run, as an earlier call packed them. This call appends those that are not in it yet:
    packing all rows after every epoch took seconds in a run of 400 epochs.
    """
    del packed[max(0, len(log.rows) - 1) :]  # the last row may be another one than before
    packed += [as_plain(attrs.asdict(row)) for row in log.rows[len(packed) :]]
    return {
        "rows": list(packed),
        **as_plain(attrs.asdict(log, filter=lambda field, _: field.name != "rows")),
    }


def read_log(held: dict[str, object], what: str) -> TrainingLog:
    """Read what `pack_log` made. Raises RunFolderError, naming `what`, where it is damaged."""
    return structure_record(held, TrainingLog, what)
