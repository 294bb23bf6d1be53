"""Write the files of a run in the order that lets it be resumed; or write nothing, for a run in memory."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from clocs_core.artifacts.card import EncoderCard
from clocs_core.artifacts.documents import dump_record
from clocs_core.artifacts.encoder import add_scores, save_encoder
from clocs_core.artifacts.metrics import EpochRow, read_rows, to_line
from clocs_core.artifacts.predictions import Classifier, Predictions, save_predictions
from clocs_core.artifacts.recordings import UsedRecordings
from clocs_core.artifacts.reports import Report
from clocs_core.artifacts.run_folder import RunFolder, open_run_folder, refuse_taken
from clocs_core.artifacts.split import Split
from clocs_core.errors import RunFolderError
from clocs_core.files import append_line, naming, write_atomically
from clocs_core.settings.toml_file import Tables, seal_tables


class RunKeeper:
    """Keeps the files of a run. This class writes nothing; it is for runs in memory."""

    path = Path(os.devnull)
    """The run folder. In memory there is none: a listener that writes into it fails, and causes a warning."""
    checkpoint: Path | None = None
    """The file that training is saved to after every epoch; None where nothing is kept."""
    writes = True
    """Whether training is saved to the checkpoint, or only read from it."""
    profile: Path | None = None
    """The folder of traces of training steps."""

    def again(self) -> RunKeeper:
        """Return a keeper of the same run that goes on with what this one has kept."""
        return self

    @contextmanager
    def open(self) -> Iterator[None]:
        """Reserve the folder for the duration of the run."""
        yield

    def begin(self, tables: Tables, split: Split, used: UsedRecordings) -> None:
        """Write the settings of a new run, and its recordings. Raises RunFolderError where a run had others."""

    def finds_run(self) -> bool:
        """Return whether this process sees the folder of a run that was begun."""
        return True

    def kept_rows(self, epoch: int) -> tuple[EpochRow, ...]:
        """Read the epochs up to `epoch` where the checkpoint does not have them: an earlier version wrote it."""
        return ()

    def restore_rows(self, rows: Sequence[EpochRow]) -> None:
        """Make the metrics hold these epochs, and no later ones, which a killed process may leave."""

    def keep_epoch(self, row: EpochRow) -> None:
        """Append an epoch to the metrics."""

    def told_until(self) -> int:
        """Return the last epoch that listeners were told of; 0 where there is none."""
        return 0

    def tell_until(self, epoch: int) -> None:
        """Note that listeners were told of an epoch."""

    def close(self) -> None:
        """Note that listeners were told of the end of the run, so that nothing is left to do."""

    def keep_encoder(self, weights: Mapping[str, Tensor], card: EncoderCard, name: str = "") -> None:
        """Write the best encoder. name: that of an encoder beside the first."""

    def keep_predictions(
        self,
        predicted: Mapping[Classifier, Predictions],
        patients: Sequence[str],
        records: Sequence[str],
        beside: Mapping[str, NDArray[Any]] = MappingProxyType({}),
    ) -> str:
        """Write the predictions of each classifier, with facts of their rows beside them. Return the file's SHA-256.

        It is empty where there are no predictions.
        """
        return ""

    def finish(self, report: Report, page: str) -> None:
        """Write the scores into the encoder files, then the page, then the report, which marks the run as finished."""


class FollowingKeeper(RunKeeper):
    """Reads the checkpoint of a run folder that another process keeps."""

    writes = False

    def __init__(self, path: Path, patience: float = 10.0) -> None:
        """Follow the run at `path`. patience: seconds until a file that another machine wrote must be there."""
        self.folder, self.patience = RunFolder(path), patience
        self.checkpoint = self.folder.checkpoint

    def finds_run(self) -> bool:
        """Look for the settings, again and again: a network disk may show new files late.

        Such a disk compares what it knows of a folder with the server when the folder is listed.
        """
        settings, until = self.folder.settings, time.monotonic() + self.patience
        while not settings.exists() and time.monotonic() < until:
            for folder in (settings.parent.parent, settings.parent):
                with suppress(OSError):
                    list(folder.iterdir())
            time.sleep(0.5)
        return settings.exists()


class FolderKeeper(RunKeeper):
    """Keeps everything in a run folder, so that a kill at any moment leaves a run that can be resumed."""

    def __init__(self, path: Path, begun: Tables | None = None) -> None:
        """Keep a new run at `path`, or resume one. begun: the settings that were found there; None for a new run."""
        self.path, self.folder, self.begun = path, RunFolder(path), begun
        self.checkpoint, self.profile = self.folder.checkpoint, self.folder.profile

    def again(self) -> RunKeeper:
        """Return a keeper that resumes the run, or begins it where it has no settings yet."""
        return FolderKeeper(self.path, open_run_folder(self.path)[1] if self.folder.settings.exists() else None)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Reserve the folder. Raises RunFolderError where another process was there since the caller looked."""
        with self.folder.reserve():
            if self.begun is None:
                refuse_taken(self.path)
            elif open_run_folder(self.path)[1] != self.begun:
                raise RunFolderError(f"The settings in {self.path} have just been changed; try again.")
            yield

    def begin(self, tables: Tables, split: Split, used: UsedRecordings) -> None:
        """Write settings.toml of a new run, then split.json and recordings.json."""
        if not self.folder.settings.exists():
            write_atomically(self.folder.settings, seal_tables(tables))
        self.folder.keep_recordings(split, used)

    def kept_rows(self, epoch: int) -> tuple[EpochRow, ...]:
        """Read metrics.jsonl. Raises RunFolderError where epochs are missing."""
        file = self.folder.metrics
        past = read_rows(file.read_text(encoding="utf-8")) if file.exists() else ()
        rows = tuple(row for row in past if row.epoch <= epoch)
        if len(rows) != epoch:
            raise RunFolderError(
                f"{file} has {len(rows)} of the {epoch} epochs of the checkpoint beside it. Put the file back, or "
                "start a new run."
            )
        return rows

    def restore_rows(self, rows: Sequence[EpochRow]) -> None:
        """Write metrics.jsonl."""
        write_atomically(self.folder.metrics, "".join(map(to_line, rows)))

    def keep_epoch(self, row: EpochRow) -> None:
        """Append a line to metrics.jsonl."""
        append_line(self.folder.metrics, to_line(row))

    def told_until(self) -> int:
        """Read .told. An incomplete one counts as 0: it is better to tell twice than never."""
        try:
            return int(self.folder.told.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return 0

    def tell_until(self, epoch: int) -> None:
        """Write .told, without a flush to the disk, which would cost more than telling twice after a power cut."""
        with naming(self.folder.told):
            self.folder.told.write_text(str(epoch), encoding="utf-8")

    def close(self) -> None:
        """Remove .told."""
        self.folder.told.unlink(missing_ok=True)

    def keep_encoder(self, weights: Mapping[str, Tensor], card: EncoderCard, name: str = "") -> None:
        """Write encoder.safetensors, or encoder-NAME.safetensors."""
        save_encoder(weights, card, self.folder.encoder_of(name))

    def keep_predictions(
        self,
        predicted: Mapping[Classifier, Predictions],
        patients: Sequence[str],
        records: Sequence[str],
        beside: Mapping[str, NDArray[Any]] = MappingProxyType({}),
    ) -> str:
        """Write predictions.npz, if there are predictions, and return its SHA-256."""
        if not predicted:
            return ""
        return save_predictions(predicted, patients, records, self.folder.predictions, beside)

    def finish(self, report: Report, page: str) -> None:
        """Write the scores into the encoder files, then report.html, then report.json."""
        add_scores(self.folder.encoder, report.scores)
        for other in report.other_encoders:
            add_scores(self.folder.encoder_of(other.name), other.scores)
        write_atomically(self.folder.page, page)
        write_atomically(self.folder.report, dump_record(report))
