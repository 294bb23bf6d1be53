"""Folders of a grid as its jobs leave them: a report, and the note beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from clocs_core.artifacts.documents import dump_record
from clocs_core.artifacts.reports import (
    Curve,
    EncoderSummary,
    EvaluationReport,
    PatientSeparation,
    Report,
    SplitSummary,
)
from clocs_core.contracts.scores import Score
from clocs_core.grids.cells import GridCell, Pretraining
from clocs_core.grids.jobs import evaluation_folder, pretraining_folder
from clocs_core.grids.notes import Note, note_path

SPLIT = SplitSummary(
    hash="of the patients",
    rule="60/20/20",
    seed=0,
    patients={"train": 18, "validation": 6, "test": 6},
    frames={},
    records={},
    shared_patients=0,
    duplicate_signals=0,
)


def write_run(out: Path, run: Pretraining, patients: Sequence[PatientSeparation] = (), **note: Any) -> Path:
    """A pre-training; one that failed where the note has an error."""
    report = Report(
        method=run.method,
        dataset=run.dataset,
        task=None,
        seed=run.seed,
        settings={},
        epochs_run=3,
        best_epoch=2,
        stopped="all epochs",
        split=attrs.evolve(SPLIT, seed=run.split_seed),
        environment={"python": "3"},
        patients=tuple(patients),
    )
    return _write(pretraining_folder(run, out), Note(name=run.name, run=run, finished="x"), report, note)


def write_evaluation(
    out: Path,
    cells: Sequence[GridCell],
    scores: Sequence[Score] = (),
    curves: Sequence[Curve] = (),
    patients: str = SPLIT.hash,
    **note: Any,
) -> Path:
    """The evaluation of some F of one encoder; one that failed where the note has an error.

    The option `encoder=NAME` of a run names another architecture.
    """
    first, run = cells[0], cells[0].pretraining
    named = [option.removeprefix("encoder=") for option in run.options if option.startswith("encoder=")]
    report = EvaluationReport(
        protocol=first.protocol,
        how="",
        init=run.method,
        encoder=EncoderSummary(
            name=(*named, "cnn")[0], dataset="", inputs=1, frame_samples=8, embedding_dim=8, sha256=""
        ),
        dataset=first.downstream,
        task="rhythm",
        part=first.part,
        seed=run.seed,
        settings={},
        split=attrs.evolve(SPLIT, seed=run.split_seed, hash=patients),
        environment={"python": "3"},
        scores=tuple(scores),
        curves=tuple(curves),
    )
    folder = evaluation_folder(first, "+".join(f"{cell.label_fraction:g}" for cell in cells), out)
    return _write(folder, Note(name="x", run=run, cells=tuple(cells), finished="x"), report, note)


def _write(folder: Path, about: Note, report: Report | EvaluationReport, changes: dict[str, Any]) -> Path:
    found = attrs.evolve(about, **changes)
    folder.mkdir(parents=True, exist_ok=True)
    note_path(folder).write_text(dump_record(found), encoding="utf-8")
    if not found.error:
        (folder / "report.json").write_text(dump_record(report), encoding="utf-8")
    return folder
