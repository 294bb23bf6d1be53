"""The folder of an evaluation: its files, and its finished classifiers.

Also the folder of controls that evaluations of several runs share.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from clocs_core.artifacts.curves import CurvePoint, curve_beside, read_curve, save_curve
from clocs_core.artifacts.documents import dump_record, load_record, read_text
from clocs_core.artifacts.predictions import Classifier, Predictions, read_predictions, save_predictions
from clocs_core.artifacts.reports import CellSummary, EvaluationReport
from clocs_core.artifacts.run_folder import ReportFolder, is_free, removed_if_empty
from clocs_core.errors import RunFolderError
from clocs_core.files import sweep, write_atomically
from clocs_core.settings.toml_file import Tables, dump_tables, seal_tables


@attrs.frozen(eq=False)
class Finished:
    """A finished classifier: its summary, its predictions and its learning curve.

    A classifier that could not be trained has no predictions; its notes give the reason.
    """

    summary: CellSummary
    rows: Predictions | None = None
    curve: tuple[CurvePoint, ...] = ()


@attrs.frozen
class EvaluationFolder(ReportFolder):
    """The paths of an evaluation.

    A finished classifier has its predictions, curve and summary in `cells`, written in this order. They are deleted
    once the report and all predictions are written.
    """

    @property
    def cells(self) -> Path:
        """The folder of finished classifiers while the evaluation is running."""
        return self.path / "cells"

    def classifier(self, init: str, fraction: float) -> Path:
        """Return the path of a fine-tuned classifier: weights and card."""
        return self.path / "classifiers" / f"{init}-{fraction:g}.safetensors"

    def checkpoint(self, key: Classifier) -> Path:
        """Return the path of the training checkpoint of a classifier."""
        return self.cells / f"{_name(key)}.safetensors"

    def read_report(self) -> EvaluationReport:
        """Read the report of a finished evaluation."""
        return load_record(read_text(self.report), EvaluationReport, str(self.report))

    def finished(self, key: Classifier) -> Finished | None:
        """Read a finished classifier; None where it is not finished."""
        predicted, curve, numbers = self._cell(key)
        if not numbers.exists():
            return None
        summary = load_record(read_text(numbers), CellSummary, str(numbers))
        if not predicted.exists():
            return Finished(summary)
        (rows,) = read_predictions(predicted).values()
        return Finished(summary, rows, read_curve(curve))

    def finish(self, key: Classifier, cell: Finished, patients: tuple[str, ...], records: tuple[str, ...]) -> None:
        """Write a classifier's predictions and curve, then its summary, which marks it as finished."""
        self.cells.mkdir(exist_ok=True)
        predicted, curve, numbers = self._cell(key)
        if cell.rows is not None:
            save_predictions({key: cell.rows}, patients, records, predicted)
        if cell.curve:
            save_curve(cell.curve, curve)
        write_atomically(numbers, dump_record(cell.summary))
        self.checkpoint(key).unlink(missing_ok=True)

    def take_over(self, key: Classifier, other: EvaluationFolder) -> None:
        """Copy the files of a finished classifier from another folder, byte for byte, the summary last."""
        self.cells.mkdir(parents=True, exist_ok=True)
        for source, target in zip(other._cell(key), self._cell(key), strict=True):
            if source.exists():
                write_atomically(target, source.read_bytes())
        self.checkpoint(key).unlink(missing_ok=True)

    def finish_all(self, report: EvaluationReport, page: str) -> None:
        """Write the page and, as the last file, the report, and delete the intermediate files."""
        write_atomically(self.page, page)
        write_atomically(self.report, dump_record(report))
        self.clear()

    def clear(self) -> None:
        """Delete the intermediate files: at the end, or at the next start if the process was killed before."""
        shutil.rmtree(self.cells, ignore_errors=True)

    def _cell(self, key: Classifier) -> tuple[Path, Path, Path]:
        """Return the paths of predictions, curve and summary, in the order of writing."""
        checkpoint = self.checkpoint(key)
        return checkpoint.with_suffix(".npz"), curve_beside(checkpoint), checkpoint.with_suffix(".json")


@attrs.frozen
class Controls:
    """Finished classifiers that do not depend on a run; each has a folder named by a hash of all its inputs.

    A folder has the files that an evaluation keeps of one classifier. The summary is written last, so an unfinished
    folder is never read.
    """

    path: Path

    def folder(self, name: str) -> EvaluationFolder:
        """Return the folder of a control, whether it exists or not."""
        return EvaluationFolder(self.path / name)

    @contextmanager
    def lock(self, name: str, wait: bool) -> Iterator[bool]:
        """Lock a control while this process makes it; yield False where another process holds it and `wait` is False.

        The system releases the lock when the process ends, even by a kill.
        """
        from filelock import FileLock, Timeout

        self.path.mkdir(parents=True, exist_ok=True)  # a process that was refused may have removed it, empty
        lock = FileLock(self.path / f".{name}.lock")
        try:
            lock.acquire(timeout=-1 if wait else 0)
        except Timeout:
            yield False
            return
        try:
            for folder in (self.path / name, *(self.path / name).glob("c*")):  # cells and classifiers
                sweep(folder)
            yield True
        finally:
            lock.release()


@contextmanager
def open_controls(path: Path) -> Iterator[Controls]:
    """Open the folder of shared controls, or create it; remove it at the end if it is new and nothing was kept in it.

    Raises RunFolderError where it cannot be written.
    """
    with removed_if_empty(path):
        try:
            path.mkdir(parents=True, exist_ok=True)
            why = "" if os.access(path, os.W_OK | os.X_OK) else "it is read-only"
        except OSError as problem:
            why = problem.strerror or str(problem)
        if why:
            raise RunFolderError(
                f"Cannot keep controls in {path}: {why}. Choose another folder with `controls=...`, or leave it out."
            )
        yield Controls(path)


def refuse_other_evaluation(folder: EvaluationFolder, tables: Tables) -> None:
    """Raise RunFolderError unless a folder is free, or holds an evaluation with these settings."""
    path = folder.path
    if not folder.settings.exists():
        if not is_free(path):
            raise RunFolderError(
                f"{path} is there already, and is no evaluation. Choose another folder with `out=...`."
            )
    elif read_text(folder.settings) not in (seal_tables(tables), dump_tables(tables)):  # earlier versions: no digest
        raise RunFolderError(
            f"{path} holds an evaluation with other settings. Choose another folder with `out=...`, or leave it out: "
            "every evaluation then has a folder of its own."
        )


def _name(key: Classifier) -> str:
    protocol, init, fraction = key
    return f"{protocol}-{init}-{fraction:g}"
