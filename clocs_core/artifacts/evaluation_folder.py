"""The folder that an evaluation writes into: what lies where, and which classifiers are finished.

And the one in which evaluations of several runs keep the controls that they share.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from clocs_core.artifacts.curves import CurvePoint, curve_beside, read_curve, save_curve
from clocs_core.artifacts.documents import dump_record, load_record
from clocs_core.artifacts.predictions import Classifier, Predictions, read_predictions, save_predictions
from clocs_core.artifacts.reports import CellSummary, EvaluationReport
from clocs_core.artifacts.run_folder import RunFolder, create_run_folder
from clocs_core.errors import RunFolderError
from clocs_core.files import write_atomically
from clocs_core.settings.toml_file import Tables, dump_tables


@attrs.frozen(eq=False)
class Finished:
    """A classifier that is finished: its numbers, what it predicted, and how its fine-tuning went.

    One that could not be made, as its notes say, has no predictions.
    """

    summary: CellSummary
    rows: Predictions | None = None
    curve: tuple[CurvePoint, ...] = ()


@attrs.frozen
class EvaluationFolder:
    """The paths of an evaluation. `settings` exists from the first moment, `report` only when it is over.

    A classifier that is finished has its predictions, its curve and its numbers in `cells`, written in this order; they
    go when the report and all predictions are written.
    """

    path: Path

    @property
    def settings(self) -> Path:
        """The effective settings."""
        return self.path / "settings.toml"

    @property
    def split(self) -> Path:
        """Which patient is in which part."""
        return self.path / "split.json"

    @property
    def predictions(self) -> Path:
        """What each classifier predicted of each row that was scored."""
        return self.path / "predictions.npz"

    @property
    def report(self) -> Path:
        """Scores with their controls."""
        return self.path / "report.json"

    @property
    def cells(self) -> Path:
        """What is finished of an evaluation that is under way."""
        return self.path / "cells"

    def classifier(self, init: str, fraction: float) -> Path:
        """The weights of a fine-tuned classifier, with their description inside."""
        return self.path / "classifiers" / f"{init}-{fraction:g}.safetensors"

    def checkpoint(self, key: Classifier) -> Path:
        """Where the training of a classifier stands."""
        return self.cells / f"{_name(key)}.safetensors"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes out of this folder."""
        with RunFolder(self.path).lock():
            yield

    def read_report(self) -> EvaluationReport:
        """The report of an evaluation that is over."""
        return load_record(self.report.read_text(encoding="utf-8"), EvaluationReport, str(self.report))

    def finished(self, key: Classifier) -> Finished | None:
        """A classifier, or None where it is not finished."""
        predicted, curve, numbers = self._cell(key)
        if not numbers.exists():
            return None
        summary = load_record(numbers.read_text(encoding="utf-8"), CellSummary, str(numbers))
        if not predicted.exists():
            return Finished(summary)
        (rows,) = read_predictions(predicted).values()
        return Finished(summary, rows, read_curve(curve))

    def finish(self, key: Classifier, cell: Finished, patients: tuple[str, ...], records: tuple[str, ...]) -> None:
        """Keep a classifier's predictions and its curve, then its numbers; with these it is finished."""
        self.cells.mkdir(exist_ok=True)
        predicted, curve, numbers = self._cell(key)
        if cell.rows is not None:
            save_predictions({key: cell.rows}, patients, records, predicted)
        if cell.curve:
            save_curve(cell.curve, curve)
        write_atomically(numbers, dump_record(cell.summary))
        self.checkpoint(key).unlink(missing_ok=True)

    def take_over(self, key: Classifier, other: EvaluationFolder) -> None:
        """Copy what another folder has of a finished classifier, its numbers last, byte by byte."""
        self.cells.mkdir(parents=True, exist_ok=True)
        for source, target in zip(other._cell(key), self._cell(key), strict=True):
            if source.exists():
                write_atomically(target, source.read_bytes())
        self.checkpoint(key).unlink(missing_ok=True)

    def finish_all(self, report: EvaluationReport) -> None:
        """Write the report, last of all, and clear away what was only there to go on from."""
        write_atomically(self.report, dump_record(report))
        self.clear()

    def clear(self) -> None:
        """Remove what was only there to go on from: at the end, or at the next start where a kill came between."""
        shutil.rmtree(self.cells, ignore_errors=True)

    def _cell(self, key: Classifier) -> tuple[Path, Path, Path]:
        """Predictions, curve and numbers, in the order in which they are written."""
        checkpoint = self.checkpoint(key)
        return checkpoint.with_suffix(".npz"), curve_beside(checkpoint), checkpoint.with_suffix(".json")


@attrs.frozen
class Controls:
    """Finished classifiers that owe nothing to a run, a folder for each, named by a hash of all it depends on.

    A folder holds what that of an evaluation does of one classifier; numbers come last, so half of one is never read.
    """

    path: Path

    def folder(self, name: str) -> EvaluationFolder:
        """Where the control of this name is, or will be."""
        return EvaluationFolder(self.path / name)

    @contextmanager
    def lock(self, name: str, wait: bool) -> Iterator[bool]:
        """Keep other processes from making this control too; False where one is at it and is not to be waited for.

        The system lets go of it when its holder ends, however it ends.
        """
        from filelock import FileLock, Timeout

        lock = FileLock(self.path / f".{name}.lock")
        try:
            lock.acquire(timeout=-1 if wait else 0)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()


def open_controls(path: Path) -> Controls:
    """The folder of shared controls, made where it is not there. Raises RunFolderError where none can be kept in it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        why = "" if os.access(path, os.W_OK | os.X_OK) else "it is read-only"
    except OSError as problem:
        why = problem.strerror or str(problem)
    if why:
        raise RunFolderError(
            f"Cannot keep controls in {path}: {why}. Choose another folder with `controls=...`, or leave it out."
        )
    return Controls(path)


def open_evaluation(path: Path, tables: Tables) -> EvaluationFolder:
    """The folder of an evaluation: a new one, or one of the same settings. Raises RunFolderError for any other."""
    folder = EvaluationFolder(path)
    if not folder.settings.exists():
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RunFolderError(
                f"{path} is there already, and is no evaluation. Choose another folder with `out=...`."
            )
        create_run_folder(path, tables)
        return folder
    if folder.settings.read_text(encoding="utf-8") != dump_tables(tables):
        raise RunFolderError(
            f"{path} holds an evaluation with other settings. Choose another folder with `out=...`, or leave it out: "
            "every evaluation then has a folder of its own."
        )
    return folder


def _name(key: Classifier) -> str:
    protocol, init, fraction = key
    return f"{protocol}-{init}-{fraction:g}"
