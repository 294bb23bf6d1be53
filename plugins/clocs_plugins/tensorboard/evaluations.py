"""Write the results of `clocs evaluate` as TensorBoard events. No hook reports evaluations, so a command does it.

In TensorBoard an evaluation is a separate run, in its own folder. Its settings and scores have the same names as those
of a pre-training.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs
from tensorboard.compat.proto.event_pb2 import Event

from clocs_core import Comparison, RunFolderError, Score
from clocs_plugins.tensorboard.eventfile import frame, make_event, next_after, opening, replace
from clocs_plugins.tensorboard.results import score_values
from clocs_plugins.tensorboard.trials import session_end, session_start
from clocs_plugins.tensorboard.values import layout, scalar

CHARTS = {
    "fine-tuning": {
        "loss": ["finetune/train_loss", "finetune/validation_loss"],
        "score of the validation part": ["finetune/validation_score", "finetune_of_controls/.*/validation_score"],
    }
}

Row = TypeVar("Row", Score, Comparison)


def write_evaluations(folder: Path) -> tuple[int, int]:
    """Write the events of every finished evaluation below a folder; return how many there are, how many were written.

    An evaluation whose events are newer than its report is skipped. Raise RunFolderError for a report of another kind.
    """
    found = [path for path in sorted(folder.rglob("report.json")) if "protocol" in _read(path)]
    stale = [path for path in found if not _is_newer(_events_of(path), path)]
    for path in stale:
        replace(_events_of(path), frame(_events(path, _read(path))))
    return len(found), len(stale)


def _read(path: Path) -> dict[str, Any]:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise RunFolderError(f"{path} is no report: {problem}. Remove it, or evaluate again.") from None
    if not isinstance(report, dict) or report.get("schema") != 1:
        raise RunFolderError(f"{path} is no report of schema 1. Remove it, or look in another folder.")
    return report


def _events_of(report: Path) -> Path:
    return report.with_name(next_after(None, 0))


def _is_newer(events: Path, report: Path) -> bool:
    return events.exists() and events.stat().st_mtime_ns >= report.stat().st_mtime_ns


def _events(path: Path, report: Mapping[str, Any]) -> Iterator[Event]:
    ended = path.stat().st_mtime
    began = ended - sum(report["seconds"].values())
    keys = {"method": "init", "dataset": "dataset", "seed": "seed", "stage": "protocol"}
    about = {name: str(report[key]) for name, key in keys.items()} | {"pretrained_on": report["encoder"]["dataset"]}
    yield from opening(0, began)
    yield make_event(0, began, [layout(CHARTS), session_start(about, report["settings"], began)])
    for curve in report["curves"]:
        yield from _curve(report["init"], curve, ended)
    scores = score_values(report["init"], _rows(Score, report["scores"]), _rows(Comparison, report["comparisons"]))
    last = max((len(curve["values"]) for curve in report["curves"]), default=0)
    yield make_event(last, ended, [*scores, session_end(ended)])


def _curve(init: str, curve: Mapping[str, Any], wall_time: float) -> Iterator[Event]:
    """Yield the curve of one fine-tuning, an event per epoch."""
    start = "finetune" if curve["init"] == init else f"finetune_of_controls/{curve['init']}"
    share = "" if curve["label_fraction"] == 1 else f"/labels_{curve['label_fraction']:g}"
    for point in curve["values"]:
        names = ("train_loss", "validation_loss", "validation_score")
        known = [name for name in names if point[name] is not None]  # JSON has no NaN
        values = [scalar(f"{start}/{name}{share}", float(point[name])) for name in known]
        yield make_event(point["epoch"], wall_time, values)


def _rows(cls: type[Row], rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Build records from JSON, in which null stands for NaN and text for infinity. Older reports lack newer fields."""
    names = {field.name for field in attrs.fields(cls)}
    return [cls(**{name: _read_back(name, value) for name, value in row.items() if name in names}) for row in rows]


def _read_back(name: str, value: Any) -> Any:
    if name not in ("value", "low", "high", "difference"):
        return value
    return math.nan if value is None else float(value)
