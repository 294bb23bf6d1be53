"""metrics.jsonl: one line of JSON per epoch of pre-training."""

from __future__ import annotations

import json

import attrs

from clocs_core.artifacts.documents import as_plain, read_object, seal, structure_sealed
from clocs_core.contracts.events import EpochDone, Health


@attrs.frozen(kw_only=True)
class EpochRow:
    """One line of metrics.jsonl: the numbers of one epoch. The names are those of `EpochDone` and its health.

    A line has `components` only where the objective names some.
    """

    epoch: int
    train_loss: float
    validation_loss: float
    effective_rank: float
    same_patient: float
    other_patient: float
    margin: float
    loss_over_log_batch: float
    improved: bool
    seconds: float
    instances: int
    components: dict[str, float] = attrs.field(factory=dict)

    def cells(self) -> dict[str, object]:
        """Return the values by column, with a column for each component."""
        values = attrs.asdict(self)
        components = values.pop("components")
        return values | {f"components.{name}": value for name, value in components.items()}


def row_of(done: EpochDone) -> EpochRow:
    """Make the row of an epoch, without the loss of each step."""
    health = done.health
    return EpochRow(
        epoch=done.epoch,
        train_loss=done.train_loss,
        validation_loss=done.validation_loss,
        effective_rank=health.effective_rank,
        same_patient=health.same_patient,
        other_patient=health.other_patient,
        margin=health.margin,
        loss_over_log_batch=health.loss_over_log_batch,
        improved=done.improved,
        seconds=done.seconds,
        instances=done.instances,
        components=dict(done.components),
    )


def health_of(row: EpochRow, embedding_dim: int) -> Health:
    """Return the measures of collapse of an epoch."""
    return Health(row.effective_rank, embedding_dim, row.same_patient, row.other_patient, row.loss_over_log_batch)


def to_line(row: EpochRow) -> str:
    """Format a row as one line of JSON with its newline, for a single write."""
    values = attrs.asdict(row, filter=lambda field, value: field.name != "components" or bool(value))
    return json.dumps(seal(as_plain(values)), allow_nan=False) + "\n"


def from_line(line: str) -> EpochRow:
    """Read one line. Raises RunFolderError where it is incomplete or lacks a field."""
    what = "a line of metrics.jsonl"
    return structure_sealed(read_object(line, what), EpochRow, what)


def read_rows(text: str) -> tuple[EpochRow, ...]:
    """Read all of metrics.jsonl. Ignores an incomplete last line, which a killed process leaves; refuses any other."""
    lines = [line for line in text.split("\n") if line.strip()]
    if lines and not _is_json(lines[-1]):
        lines = lines[:-1]
    return tuple(from_line(line) for line in lines)


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
