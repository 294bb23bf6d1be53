"""Pre-train from Python.

run = clocs.pretrain(METHOD, data, epochs=50, temperature=0.05, seed=0)
run.history; run.encoder; run.report
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import attrs

from clocs_core.api.arguments import PRETRAIN, assignments_of, choose_workers, with_settings_in_signature
from clocs_core.api.display import open_display
from clocs_core.api.encoder import Embedder
from clocs_core.api.recordings import Data
from clocs_core.api.results import Results
from clocs_core.api.tables import Table
from clocs_core.artifacts.documents import read_text
from clocs_core.artifacts.encoder import pack_encoder
from clocs_core.artifacts.metrics import EpochRow, read_rows
from clocs_core.artifacts.predictions import PredictedRows, read_rows_of
from clocs_core.artifacts.reports import Report, read_report
from clocs_core.artifacts.run_folder import RunFolder, open_run_folder, refuse_other_settings, refuse_taken
from clocs_core.artifacts.run_keeper import FolderKeeper, RunKeeper
from clocs_core.contracts.events import Listener
from clocs_core.contracts.scores import Score
from clocs_core.errors import RunFolderError
from clocs_core.plan.pretraining import Plan, resolve
from clocs_core.plugins.session import installed_session
from clocs_core.settings.toml_file import Tables
from clocs_core.workflows.encoders import BestEncoder
from clocs_core.workflows.pretrain import FinishedRun, pretrain_run
from clocs_core.workflows.surroundings import Surroundings


@attrs.frozen(eq=False, slots=False, repr=False)
class Run:
    """A finished run: its epochs, its best encoder, and its report.

    path: the run folder; None where nothing was kept. Then the encoder lives in memory, and travels with a pickle.
    other_files: files of the encoders beside the first, by name, where a method trains one for each modality.
    """

    path: Path | None
    epochs: tuple[EpochRow, ...] = attrs.field(repr=False)
    record: Report = attrs.field(repr=False)
    predictions: PredictedRows | None = attrs.field(repr=False)
    file: Path | bytes = attrs.field(repr=False)
    other_files: Mapping[str, Path | bytes] = attrs.field(factory=dict, repr=False)

    @cached_property
    def history(self) -> Table:
        """Losses and the health of the embeddings, a row for each epoch."""
        cells = [row.cells() for row in self.epochs]
        return Table(tuple(cells[0]), tuple(tuple(row.values()) for row in cells))

    @cached_property
    def encoder(self) -> Embedder:
        """The encoder of the best epoch."""
        return Embedder(self.file)

    @cached_property
    def other_encoders(self) -> dict[str, Embedder]:
        """The encoders beside the first, by name, where a method trains one for each modality."""
        return {name: Embedder(file) for name, file in self.other_files.items()}

    @cached_property
    def report(self) -> Results:
        """Scores beside their controls."""
        return Results(self.record)

    @property
    def scores(self) -> Table:
        """The scores of the report."""
        return self.report.scores

    def __repr__(self) -> str:
        place = "in memory" if self.path is None else str(self.path)
        record = self.record
        return (
            f"Run({record.method} on {record.dataset}, {record.epochs_run} epochs, best {record.best_epoch}, {place})"
        )

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


@with_settings_in_signature(PRETRAIN, "method", "dataset", "task", "root")
def pretrain(
    method: str,
    data: Data,
    *,
    out: str | Path | None = None,
    progress: bool = True,
    listeners: Sequence[Listener] = (),
    workers: int | None = None,
    **settings: object,
) -> Run:
    """Pre-train an encoder, evaluate it beside its controls, and report.

    method: by name; `clocs.methods()` lists them. data: `clocs.Recordings` or `clocs.dataset`.
    out: a run folder. A run that was interrupted there is resumed, a finished one is opened; None keeps nothing.
    progress: show how far it is. listeners: objects that follow the run.
    workers: processes that read recordings; default: one per core.
    settings: settings of the run (epochs, batch_size, seed, device, label_fraction, …), and options of the method, its
    views, loss and encoder, such as temperature=0.05; "loss.temperature" names a part where two have the same option.

    Ctrl-C leaves a folder that can be resumed by the same call. Raises SettingsError, UnknownName or DataError for an
    argument that does not fit, before anything is trained.
    """
    given = assignments_of(PRETRAIN, data, {**settings, "method": method})
    session = data.add_to(installed_session())
    plan = resolve(session.catalogue, {}, given)
    keeper = _keeper(plan, None if out is None else Path(out))
    if keeper is None:
        assert out is not None
        return load_run(out)
    around = Surroundings(session.host, workers=choose_workers(data, workers), listeners=tuple(listeners))
    with open_display(progress) as show:
        around = attrs.evolve(around, show=show, announces=out is not None)
        try:
            return as_run(pretrain_run(plan, keeper, around), None if out is None else Path(out))
        except KeyboardInterrupt:
            if out is not None and RunFolder(Path(out)).settings.exists():
                show.say(f"Stopped; {out} can be resumed: call pretrain again with the same arguments.")
            raise


def _keeper(plan: Plan, path: Path | None) -> RunKeeper | None:
    """Choose the keeper of a run; None where the folder already holds it, finished."""
    if path is None:
        return RunKeeper()
    if not RunFolder(path).settings.exists():
        refuse_taken(path)
        return FolderKeeper(path)
    folder, tables = open_run_folder(path)
    refuse_other_run(path, tables, plan)
    return None if folder.is_finished else FolderKeeper(path, tables)


def refuse_other_run(path: Path, stored: Tables, plan: Plan) -> None:
    """Raise RunFolderError where a folder was begun with other settings than those of the plan."""
    asked = plan.tables()
    if plan.fit:  # the framing may follow from the recordings, which are not read yet
        asked = {name: table for name, table in asked.items() if not name.endswith("_framing")}
    refuse_other_settings(path, stored, asked)


def as_run(done: FinishedRun, path: Path | None) -> Run:
    """Make a run from a workflow's result. path: its folder; None where it lives in memory."""
    first, *others = done.encoders
    scores = {one.name: one.scores for one in done.report.other_encoders}
    file: Path | bytes
    files: dict[str, Path | bytes]
    if path is None:
        file = _pack(first, done.report.scores)
        files = {one.part.name: _pack(one, scores[one.part.name]) for one in others}
    else:
        file, files = RunFolder(path).encoder, {name: RunFolder(path).encoder_of(name) for name in scores}
    return Run(path, done.history, done.report, done.predictions, file, files)


def _pack(encoder: BestEncoder, scores: tuple[Score, ...]) -> bytes:
    return pack_encoder(encoder.saved, attrs.evolve(encoder.card, scores=scores))


def load_run(path: str | Path) -> Run:
    """Open a finished run by its folder. Raises RunFolderError where it is none, or is not finished."""
    folder, _ = open_run_folder(Path(path))
    if not folder.report.exists():
        raise RunFolderError(
            f"{path} is not finished: it has no report.json. Go on with it: `pretrain(..., out={str(path)!r})`."
        )
    if not folder.metrics.exists():
        raise RunFolderError(f"{path} has no {folder.metrics.name}, which a finished run has. Put it back.")
    epochs = read_rows(read_text(folder.metrics))
    record = read_report(read_text(folder.report), str(folder.report))
    if len(epochs) != record.epochs_run:
        raise RunFolderError(
            f"{folder.metrics} is damaged: it has {len(epochs)} of the {record.epochs_run} epochs of the run."
        )
    return Run(
        path=folder.path,
        epochs=epochs,
        record=record,
        predictions=read_rows_of(folder.predictions, record.predictions_sha256),
        file=folder.encoder,
        other_files={one.name: folder.encoder_of(one.name) for one in record.other_encoders},
    )
