"""How fine-tuning went, epoch by epoch: what "doing more with less" is drawn from (section 6.4 of the paper).

As a file it lies beside the checkpoint, a line of JSON per epoch, and is written before it: it never lacks an epoch
that the checkpoint has, and those that it has too many are made again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path

import attrs

from clocs_core.contracts.events import EpochDone
from clocs_core.errors import RunFolderError
from clocs_core.files import write_atomically


@attrs.frozen
class CurvePoint:
    """One epoch: the losses, and the score of the whole validation part, NaN where the metric has none."""

    epoch: int
    train_loss: float
    validation_loss: float
    validation_score: float


def point_of(done: EpochDone) -> CurvePoint:
    """The point of an epoch of fine-tuning."""
    score = math.nan if done.validation_score is None else done.validation_score
    return CurvePoint(done.epoch, done.train_loss, done.validation_loss, score)


def curve_beside(checkpoint: Path) -> Path:
    """The file of the curve that belongs to a checkpoint."""
    return checkpoint.with_suffix(".curve.jsonl")


def save_curve(points: Iterable[CurvePoint], path: Path) -> None:
    """Write the curve, whole or not at all. NaN, which JSON lacks, is null, and infinity a word."""
    write_atomically(path, "".join(map(_line, points)))


def read_curve(path: Path) -> tuple[CurvePoint, ...]:
    """Read what `save_curve` wrote, floats to the last bit; nothing where there is no file, as older evaluations have.

    Raises RunFolderError for a file that was damaged.
    """
    if not path.exists():
        return ()
    try:
        return tuple(_point(line) for line in path.read_text(encoding="utf-8").splitlines())
    except (TypeError, ValueError, KeyError) as problem:
        raise RunFolderError(f"{path} holds no curve that can be read: {problem}.") from None


def _line(point: CurvePoint) -> str:
    return json.dumps({name: _plain(value) for name, value in attrs.asdict(point).items()}, allow_nan=False) + "\n"


def _plain(value: float) -> float | str | None:
    if math.isfinite(value):
        return value
    return None if math.isnan(value) else str(value)


def _point(line: str) -> CurvePoint:
    epoch, *numbers = (json.loads(line)[field.name] for field in attrs.fields(CurvePoint))
    return CurvePoint(epoch, *(math.nan if value is None else float(value) for value in numbers))
