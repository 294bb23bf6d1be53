"""Read what a grid has found from the folders of its jobs: a folder with a report.json is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

import attrs

from clocs_core.artifacts.evaluation_folder import EvaluationFolder
from clocs_core.artifacts.reports import EvaluationReport, Report, read_report
from clocs_core.artifacts.run_folder import RunFolder
from clocs_core.errors import RunFolderError
from clocs_core.grids.cells import GridCell, Pretraining
from clocs_core.grids.jobs import evaluation_folder, pretraining_folder
from clocs_core.grids.notes import Note, read_note

R = TypeVar("R", Report, EvaluationReport)


@attrs.frozen(eq=False)
class JobResult(Generic[R]):
    """A job that ended: the report in its folder and the note beside it. A job that failed has no report."""

    folder: Path
    note: Note
    report: R | None

    @property
    def predictions(self) -> Path:
        """The raw predictions; the file may have been deleted to save space."""
        return RunFolder(self.folder).predictions


RunResult = JobResult[Report]
CellResult = JobResult[EvaluationReport]


@attrs.frozen(eq=False)
class Results:
    """The results in the folder of a grid. Each file is read once, when needed; after more jobs, make a new one.

    A page asks for a cell some forty times, and finding its folder takes a hash of its settings: it is found once.
    """

    out: Path
    _runs: dict[Pretraining, RunResult | None] = attrs.field(factory=dict, init=False)
    _cells: dict[GridCell, CellResult | None] = attrs.field(factory=dict, init=False)
    _evaluations: dict[Path, CellResult | None] = attrs.field(factory=dict, init=False)
    _names: dict[Path, frozenset[str]] = attrs.field(factory=dict, init=False)

    @property
    def is_empty(self) -> bool:
        """Whether no job was ever run here."""
        return not any((self.out / name).is_dir() for name in ("pretrained", "evaluated"))

    def is_trained(self, run: Pretraining) -> bool:
        """Whether a pre-training is done."""
        return RunFolder(pretraining_folder(run, self.out)).report.exists()

    def is_done(self, cell: GridCell) -> bool:
        """Whether a cell has been scored."""
        return any(RunFolder(folder).report.exists() for folder in self._folders(cell))

    def pretraining(self, run: Pretraining) -> RunResult | None:
        """Find how a pre-training ended; None where it has not."""
        if run not in self._runs:
            self._runs[run] = _read(pretraining_folder(run, self.out), Note(name=run.name, run=run), _read_run)
        return self._runs[run]

    def cell(self, cell: GridCell) -> CellResult | None:
        """Find the evaluation that scored a cell, or the last one that failed to; None where there is neither."""
        if cell not in self._cells:
            found = [one for folder in self._folders(cell) if (one := self.evaluation(folder, cell)) is not None]
            done = [one for one in found if one.report is not None]
            self._cells[cell] = max(done or found, key=lambda one: (one.note.finished, one.folder), default=None)
        return self._cells[cell]

    def trained(self, run: Pretraining) -> Report | None:
        """Read the report of a pre-training; None where it is not done."""
        found = self.pretraining(run)
        return found.report if found else None

    def evaluated(self, cell: GridCell) -> EvaluationReport | None:
        """Read the report of the evaluation that scored a cell; None where it is not done."""
        found = self.cell(cell)
        return found.report if found else None

    def evaluation(self, folder: Path, cell: GridCell) -> CellResult | None:
        """Find how the evaluation in a folder ended; None where it has not. cell: one of those that it scores."""
        if folder not in self._evaluations:
            unknown = Note(name=folder.name, run=cell.pretraining, cells=(cell,))
            self._evaluations[folder] = _read(folder, unknown, _read_evaluation)
        return self._evaluations[folder]

    def _folders(self, cell: GridCell) -> Iterator[Path]:
        """Find every folder whose name says that this cell is scored there; one folder may have several F."""
        begins = evaluation_folder(cell, "", self.out)
        if begins.parent not in self._names:
            inside = begins.parent.iterdir() if begins.parent.is_dir() else ()
            self._names[begins.parent] = frozenset(path.name.removesuffix(".json") for path in inside)
        words = begins.name.rpartition("-")[0]
        for name in sorted(self._names[begins.parent]):
            shares = name.removeprefix(words).rpartition("-")[0]
            if name.startswith(words) and f"{cell.label_fraction:g}" in shares.split("+"):
                folder = evaluation_folder(cell, shares, self.out)
                if folder.name == name:  # the same hash: the same options too
                    yield folder


def _read(folder: Path, unknown: Note, read: Callable[[Path], R]) -> JobResult[R] | None:
    """Read what there is of a job. unknown: the note where none was kept."""
    note = read_note(folder) or unknown
    if not RunFolder(folder).report.exists():
        return JobResult(folder, note, None) if note.error else None
    try:
        return JobResult(folder, note, read(folder))
    except RunFolderError as problem:
        return JobResult(folder, attrs.evolve(note, error=f"{folder.name}/report.json cannot be read: {problem}"), None)


def _read_run(folder: Path) -> Report:
    return read_report(RunFolder(folder).report.read_text(encoding="utf-8"))


def _read_evaluation(folder: Path) -> EvaluationReport:
    return EvaluationFolder(folder).read_report()
