"""Write the files of a run in the order that lets it be resumed; or write nothing, for a run in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from torch import Tensor

from clocs_core.artifacts.card import EncoderCard
from clocs_core.artifacts.documents import dump_record
from clocs_core.artifacts.encoder import add_scores, save_encoder
from clocs_core.artifacts.metrics import EpochRow, read_rows, to_line
from clocs_core.artifacts.predictions import Classifier, Predictions, save_predictions
from clocs_core.artifacts.reports import Report
from clocs_core.artifacts.run_folder import RunFolder, create_run_folder
from clocs_core.artifacts.split import Split, to_json
from clocs_core.files import write_atomically
from clocs_core.settings.toml_file import Tables


class RunKeeper:
    """Keeps the files of a run. This class writes nothing; it is for runs in memory."""

    path = Path(os.devnull)
    """The run folder. In memory there is none: a listener that writes into it fails, and causes a warning."""
    checkpoint: Path | None = None
    """The file that training is saved to after every epoch; None where nothing is kept."""
    profile: Path | None = None
    """The folder of traces of training steps."""

    @contextmanager
    def open(self) -> Iterator[None]:
        """Lock an existing folder for the duration of the run."""
        yield

    def begin(self, tables: Tables, split: Split) -> None:
        """Create the folder if it is missing, lock it, and write the split."""

    def rows_until(self, epoch: int) -> list[EpochRow]:
        """Return the epochs kept so far, up to `epoch`. Drops later ones, which a killed process may leave."""
        return []

    def keep_epoch(self, row: EpochRow) -> None:
        """Append an epoch to the metrics."""

    def keep_encoder(self, weights: dict[str, Tensor], card: EncoderCard) -> None:
        """Write the best encoder."""

    def keep_predictions(
        self, predicted: Mapping[Classifier, Predictions], patients: Sequence[str], records: Sequence[str]
    ) -> None:
        """Write the predictions of each classifier, if there are any."""

    def finish(self, report: Report, page: str) -> None:
        """Write the scores into the encoder file, then the page, then the report, which marks the run as finished."""


class FolderKeeper(RunKeeper):
    """Keeps everything in a run folder, so that a kill at any moment leaves a run that can be resumed."""

    def __init__(self, path: Path) -> None:
        self.path, self.folder = path, RunFolder(path)
        self.checkpoint, self.profile = self.folder.checkpoint, self.folder.profile
        self._locks = ExitStack()

    @contextmanager
    def open(self) -> Iterator[None]:
        """Lock the folder: now if it exists, else as soon as `begin` has created it."""
        with self._locks:
            if self.folder.settings.exists():
                self._locks.enter_context(self.folder.lock())
            yield

    def begin(self, tables: Tables, split: Split) -> None:
        """Create the folder if it is missing, lock it, and write the split."""
        if not self.folder.settings.exists():
            create_run_folder(self.path, tables)
            self._locks.enter_context(self.folder.lock())
        write_atomically(self.folder.split, to_json(split))

    def rows_until(self, epoch: int) -> list[EpochRow]:
        """Read metrics.jsonl; rewrite it without epochs later than `epoch` and without an incomplete line."""
        file = self.folder.metrics
        past = read_rows(file.read_text(encoding="utf-8")) if file.exists() else ()
        rows = [row for row in past if row.epoch <= epoch]
        write_atomically(file, "".join(map(to_line, rows)))
        return rows

    def keep_epoch(self, row: EpochRow) -> None:
        """Append a line to metrics.jsonl."""
        with open(self.folder.metrics, "a", encoding="utf-8") as file:
            file.write(to_line(row))

    def keep_encoder(self, weights: dict[str, Tensor], card: EncoderCard) -> None:
        """Write encoder.safetensors."""
        save_encoder(weights, card, self.folder.encoder)

    def keep_predictions(
        self, predicted: Mapping[Classifier, Predictions], patients: Sequence[str], records: Sequence[str]
    ) -> None:
        """Write predictions.npz, if there are predictions."""
        if predicted:
            save_predictions(predicted, patients, records, self.folder.predictions)

    def finish(self, report: Report, page: str) -> None:
        """Write the scores into the encoder file, then report.html, then report.json."""
        add_scores(self.folder.encoder, report.scores)
        write_atomically(self.folder.page, page)
        write_atomically(self.folder.report, dump_record(report))
