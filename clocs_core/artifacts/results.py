"""Open finished runs and evaluations for a comparison: settings, scores and predictions."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import attrs

from clocs_core.artifacts.documents import read_text
from clocs_core.artifacts.evaluation_folder import EvaluationFolder
from clocs_core.artifacts.predictions import PredictedRows, read_predicted_rows
from clocs_core.artifacts.reports import EvaluationReport, Report, SplitSummary, read_report
from clocs_core.artifacts.run_folder import SEEDS, RunFolder, holds_seeds
from clocs_core.contracts.scores import Score
from clocs_core.errors import RunFolderError
from clocs_core.settings.sections import default_settings
from clocs_core.settings.toml_file import Tables, read_tables

_SEEDS = {"run.seed", "evaluation.seed"}
_OF_THE_MACHINE = {
    f"{table}.{key}"
    for table, keys in {
        "run": ("device", "step"),
        "evaluation": ("device", "step"),
        "data": ("root", "data_root"),
        "pre-training data": ("root", "data_root"),
    }.items()
    for key in keys
}
_RENAMED = {"data": "pre-training data", "dataset": "pre-training dataset"}  # tables of the encoder's run
_NOT_ASKED = (
    "evaluate",
    "evaluate_framing",
)  # tables that describe the run only; ignored when evaluations are compared


@attrs.frozen(eq=False, kw_only=True)
class Candidate:
    """A finished run or evaluation. weights: the init that it scored beside the controls, named by its method.

    settings: values by "table.key"; an evaluation has those of its encoder's run too, where the run folder exists.
    """

    path: Path
    kind: Literal["run", "evaluation"]
    weights: str
    protocol: str
    dataset: str
    task: str
    part: str
    seed: int
    settings: dict[str, object]
    split: SplitSummary
    scores: tuple[Score, ...]
    notes: tuple[str, ...]
    rows: PredictedRows | None

    def is_own(self, score: Score) -> bool:
        """Return whether a score belongs to the evaluated weights, not to a control."""
        return (score.protocol, score.init) == (self.protocol, self.weights)


Group = tuple[Candidate, ...]
"""Candidates that differ by their seed only."""


def open_candidate(path: Path) -> Candidate:
    """Open a finished run or evaluation by its folder."""
    folder = RunFolder(path)
    if not folder.report.is_file():
        raise RunFolderError(_no_report(path))
    rows = read_predicted_rows(folder.predictions) if folder.predictions.exists() else None
    if "evaluation" in read_tables(folder.settings):
        report = EvaluationFolder(path).read_report()
        return candidate_of_evaluation(path, report, rows, _of_its_run(path, report))
    return candidate_of_run(path, read_report(read_text(folder.report), str(folder.report)), rows)


def candidate_of_run(path: Path, report: Report, rows: PredictedRows | None) -> Candidate:
    """Make a candidate of a finished run. path: its name in the comparison."""
    return Candidate(
        path=path,
        kind="run",
        weights=report.method,
        protocol="linear",
        part=str(report.settings["evaluate"]["part"]),
        settings=_flat(report.settings),
        **_common(report, rows),
    )


def candidate_of_evaluation(
    path: Path, report: EvaluationReport, rows: PredictedRows | None, of_its_run: dict[str, object] | None = None
) -> Candidate:
    """Make a candidate of a finished evaluation. of_its_run: settings that its encoder was pre-trained with."""
    tables = {"evaluate_framing" if name == "framing" else name: held for name, held in report.settings.items()}
    settings = _flat(tables) | (of_its_run or {})
    return Candidate(
        path=path,
        kind="evaluation",
        weights=report.init,
        protocol=report.protocol,
        part=report.part,
        settings={name: value for name, value in settings.items() if value is not None},
        **_common(report, rows),
    )


def _common(report: Report | EvaluationReport, rows: PredictedRows | None) -> dict[str, Any]:
    return {
        "dataset": report.dataset,
        "task": report.task or "no labels",
        "seed": report.seed,
        "split": report.split,
        "scores": report.scores,
        "notes": report.notes,
        "rows": rows,
    }


def _no_report(path: Path) -> str:
    if not path.exists():
        return f"{path} is not there. Give folders that `pretrain` or `evaluate` made."
    if (path / SEEDS).is_file():
        return holds_seeds(path)
    if (path / "settings.toml").exists():
        return (
            f"{path} has no report.json: it is not finished. Go on with it: `pretrain(..., out={str(path)!r})`, or "
            "`evaluate` again."
        )
    return f"{path} is no run and no evaluation: it has no report.json."


def _flat(tables: Tables) -> dict[str, object]:
    """Return all settings by "table.key", those of later versions with their defaults."""
    whole = {table: {**default_settings(table), **held} for table, held in tables.items()}
    return {f"{table}.{key}": value for table, keys in whole.items() for key, value in keys.items()}


def _of_its_run(path: Path, report: EvaluationReport) -> dict[str, object]:
    """Return the settings that the encoder was pre-trained with, from the run folder around the evaluation.

    They replace the hash of its file, which shows that encoders differ, but not in which settings.
    """
    run = RunFolder(path.absolute().parent.parent)
    if not report.encoder.sha256 or not (run.settings.exists() and run.encoder.exists()):
        return {}
    if sha256(run.encoder.read_bytes()).hexdigest() != report.encoder.sha256:
        return {}
    tables = read_tables(run.settings)
    kept = {_RENAMED.get(name, name): held for name, held in tables.items() if name not in _NOT_ASKED}
    return {**_flat(kept), "evaluation.encoder_sha256": None}


def group_by_seed(found: Sequence[Candidate]) -> tuple[Group, ...]:
    """Group candidates that differ by their seed only, in the order given."""
    groups: dict[object, list[Candidate]] = {}
    for one in found:
        held = {name: repr(value) for name, value in one.settings.items() if name not in _SEEDS | _OF_THE_MACHINE}
        key = one.kind, one.dataset, one.split.hash, frozenset(held.items())
        groups.setdefault(key, []).append(one)
    return tuple(map(tuple, groups.values()))
