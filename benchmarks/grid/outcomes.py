"""What a job left in its folder becomes a line of the ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
import cattrs

from clocs_core.artifacts.run_folder import RunFolder
from clocs_core.contracts.scores import Score
from grid.cells import Cell, Pretraining, digest
from grid.converting import json_converter
from grid.executor import Job, Outcome
from grid.ledger import Curve, Distances, Entry, protocol_id

__all__ = ["Stamp", "evaluation_entry", "pretraining_entry", "skipped_entry"]


@attrs.frozen
class Stamp:
    """What every line says of where it comes from. now: the time, in UTC. invocation: the mark of this call."""

    out: Path
    commit: str
    now: Callable[[], datetime]
    invocation: str = ""


def pretraining_entry(run: Pretraining, job: Job, outcome: Outcome, stamp: Stamp) -> Entry:
    """The line of a pre-training."""
    return _entry(run.name, "pretrain", digest(run), run.seed, attrs.asdict(run), job, outcome, stamp)


def evaluation_entry(cells: Sequence[Cell], job: Job, outcome: Outcome, stamp: Stamp) -> Entry:
    """The line of an evaluation, with the scores of every F."""
    first = cells[0]
    key, seed = digest(first.evaluation), first.pretraining.seed
    entry = _entry(job.name, first.protocol, key, seed, _settings(first), job, outcome, stamp)
    return attrs.evolve(entry, label_fractions=tuple(cell.label_fraction for cell in cells))


def skipped_entry(cells: Sequence[Cell], job: Job, why: str, stamp: Stamp) -> Entry:
    """The line of an evaluation that could not be tried, since its pre-training failed."""
    return evaluation_entry(cells, job, Outcome(error=f"Not tried: its pre-training failed: {why}"), stamp)


def _entry(
    name: str, protocol: str, key: str, seed: int, settings: dict[str, Any], job: Job, outcome: Outcome, stamp: Stamp
) -> Entry:
    entry = Entry(
        key=key,
        protocol=protocol_id(protocol),
        name=name,
        seed=seed,
        status="failed",
        error=outcome.error,
        commit=stamp.commit,
        finished=stamp.now().isoformat(timespec="seconds"),
        seconds=round(outcome.seconds, 3),
        settings=settings,
        folder=str(job.folder.relative_to(stamp.out)),
        invocation=stamp.invocation,
    )
    if outcome.error:
        return entry
    try:
        return attrs.evolve(entry, status="done", **_found(job, stamp.out))
    except (OSError, ValueError, KeyError, cattrs.BaseValidationError) as problem:
        return attrs.evolve(entry, error=f"{job.folder.name}/report.json cannot be read: {problem}")


def _found(job: Job, out: Path) -> dict[str, Any]:
    """What the report of a job says, by the names of the ledger."""
    folder = RunFolder(job.folder)
    report: dict[str, Any] = json.loads(folder.report.read_text(encoding="utf-8"))
    converter = json_converter(forbid_extra_keys=False)  # a report holds more than is asked for here
    return {
        "scores": converter.structure(report.get("scores", []), tuple[Score, ...]),
        "distances": converter.structure(report.get("patients", []), tuple[Distances, ...]),
        "curves": tuple(map(_curve, report.get("curves", []))),
        "predictions": str(folder.predictions.relative_to(out)) if folder.predictions.exists() else "",
        "split": report.get("split", {}),
        "notes": tuple(report.get("notes", ())),
        "environment": report.get("environment", {}),
    }


def _curve(found: dict[str, Any]) -> Curve:
    """A curve of a report, less its losses: a ledger stays small enough to read."""
    about = {name: found[name] for name in ("init", "label_fraction", "metric")}
    epochs, scores = ([value[name] for value in found["values"]] for name in ("epoch", "validation_score"))
    return json_converter(forbid_extra_keys=False).structure({**about, "epochs": epochs, "scores": scores}, Curve)


def _settings(cell: Cell) -> dict[str, Any]:
    """What the key of an evaluation was made of, less F, which the line lists."""
    return {key: value for key, value in attrs.asdict(cell).items() if key != "label_fraction"}
