"""Open finished runs and evaluations for a comparison: settings, scores and predictions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import attrs

from clocs_core.artifacts.documents import load_record, read_text
from clocs_core.artifacts.evaluation_folder import EvaluationFolder
from clocs_core.artifacts.predictions import PredictedRows, read_rows_of
from clocs_core.artifacts.recordings import UsedRecordings
from clocs_core.artifacts.reports import EvaluationReport, Report, SplitSummary, read_report
from clocs_core.artifacts.run_folder import SEEDS, RunFolder, holds_seeds
from clocs_core.contracts.scores import Score
from clocs_core.errors import RunFolderError
from clocs_core.settings.sections import default_settings
from clocs_core.settings.toml_file import Tables, read_tables

_SEEDS = {"run.seed", "evaluation.seed"}
_PLACES = {f"{table}.{key}" for table in ("data", "pre-training data") for key in ("root", "data_root")}
_OF_THE_MACHINE = _PLACES | {f"{table}.{key}" for table in ("run", "evaluation") for key in ("device", "step")}
_RENAMED = {"data": "pre-training data", "dataset": "pre-training dataset"}  # tables of the encoder's run
_NOT_ASKED = (
    "evaluate",
    "evaluate_framing",
)  # tables that describe the run only; ignored when evaluations are compared


@attrs.frozen(eq=False, kw_only=True)
class Candidate:
    """A finished run or evaluation. weights: the init that it scored beside the controls, named by its method.

    settings: values by "table.key"; an evaluation has those of its encoder's run too, where the run folder exists.
    seed: of the pre-training, where it is known: evaluations of one encoder with other seeds do not repeat it.
    recordings: hashes of the frames and labels that its folder names, and that of its encoder; () where one is unknown.
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
    recordings: tuple[str, ...] = ()

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
    if "evaluation" in read_tables(folder.settings):
        evaluated = EvaluationFolder(path).read_report()
        rows = read_rows_of(folder.predictions, evaluated.predictions_sha256)
        run = _its_run(path, evaluated)
        found = candidate_of_evaluation(path, evaluated, rows, _of_its_run(run) if run else None)
        return attrs.evolve(found, recordings=_recordings(folder, *([run] if run else [])))
    report = read_report(read_text(folder.report), str(folder.report))
    found = candidate_of_run(path, report, read_rows_of(folder.predictions, report.predictions_sha256))
    return attrs.evolve(found, recordings=_recordings(folder))


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
        **{**_common(report, rows), "seed": settings.get("run.seed", report.seed)},
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


def _its_run(path: Path, report: EvaluationReport) -> RunFolder | None:
    """Return the run folder around an evaluation, where its encoder is the one that was evaluated."""
    run = RunFolder(path.absolute().parent.parent)
    if not report.encoder.sha256 or not (run.settings.exists() and run.encoder.exists()):
        return None
    return run if sha256(run.encoder.read_bytes()).hexdigest() == report.encoder.sha256 else None


def _of_its_run(run: RunFolder) -> dict[str, object]:
    """Return the settings that the encoder was pre-trained with.

    They replace the hash of its file, which shows that encoders differ, but not in which settings.
    """
    tables = read_tables(run.settings)
    kept = {_RENAMED.get(name, name): held for name, held in tables.items() if name not in _NOT_ASKED}
    return {**_flat(kept), "evaluation.encoder_sha256": None}


def _recordings(*folders: RunFolder) -> tuple[str, ...]:
    """Return a hash of the frames and the labels of each folder; () where an older version did not keep them."""
    if not all(folder.recordings.is_file() for folder in folders):
        return ()
    used = [load_record(read_text(one.recordings), UsedRecordings, str(one.recordings)) for one in folders]
    return tuple(f"{one.frames} {one.labels}" for one in used)


def group_by_seed(found: Sequence[Candidate]) -> tuple[Group, ...]:
    """Group candidates that differ by their seed only, in the order given.

    The folder of the data does not count, since it differs between machines. But where two folders hold other signals
    or labels under the same names, such as raw recordings and filtered ones, their runs are not seeds of each other.
    """
    alike = [_but_for_the_seed(one) for one in found]
    together: dict[Hashable, list[Candidate]] = {}
    for one, key in zip(found, alike, strict=True):
        together.setdefault(key, []).append(one)
    groups: dict[Hashable, list[Candidate]] = {}
    for one, key in zip(found, alike, strict=True):
        apart = one.recordings if _from_several_folders(together[key]) else ()
        groups.setdefault((key, apart), []).append(one)
    return tuple(map(tuple, groups.values()))


def _but_for_the_seed(one: Candidate) -> Hashable:
    held = {name: repr(value) for name, value in one.settings.items() if name not in _SEEDS | _OF_THE_MACHINE}
    return one.kind, one.dataset, one.split.hash, frozenset(held.items())


def _from_several_folders(alike: Sequence[Candidate]) -> bool:
    """Return whether candidates read several folders, and all know what these hold."""
    folders = {tuple(one.settings.get(name) for name in sorted(_PLACES)) for one in alike}
    return len(folders) > 1 and all(one.recordings for one in alike)
