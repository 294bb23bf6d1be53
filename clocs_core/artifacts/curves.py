"""The learning curve of fine-tuning, for the figure "doing more with less" (section 6.4 of the paper).

The file holds a line of JSON per epoch. It is written before the checkpoint beside it, so it has every epoch of the
checkpoint; later epochs are computed again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path

import attrs

from clocs_core.artifacts.documents import as_plain, read_object, read_text, seal, structure_sealed
from clocs_core.contracts.events import EpochDone
from clocs_core.files import write_atomically


@attrs.frozen
class CurvePoint:
    """One epoch: the losses, and the score of the whole validation part, NaN where the metric is undefined."""

    epoch: int
    train_loss: float
    validation_loss: float
    validation_score: float


def point_of(done: EpochDone) -> CurvePoint:
    """Make the curve point of an epoch of fine-tuning."""
    score = math.nan if done.validation_score is None else done.validation_score
    return CurvePoint(done.epoch, done.train_loss, done.validation_loss, score)


def curve_beside(checkpoint: Path) -> Path:
    """Return the path of the curve that belongs to a checkpoint."""
    return checkpoint.with_suffix(".curve.jsonl")


def save_curve(points: Iterable[CurvePoint], path: Path) -> None:
    """Write the curve atomically. NaN, which JSON lacks, becomes null; infinity becomes a string."""
    write_atomically(path, "".join(map(_line, points)))


def read_curve(path: Path) -> tuple[CurvePoint, ...]:
    """Read what `save_curve` wrote, floats bit for bit; empty without a file, as in older evaluations.

    Raises RunFolderError for a damaged file.
    """
    if not path.exists():
        return ()
    return tuple(
        _point(line, f"{path} holds no curve that can be read: a line") for line in read_text(path).splitlines()
    )


def _line(point: CurvePoint) -> str:
    return json.dumps(seal(as_plain(attrs.asdict(point))), allow_nan=False) + "\n"


def _point(line: str, what: str) -> CurvePoint:
    return structure_sealed(read_object(line, what), CurvePoint, what)
