"""A run keeps its files in an order that makes a kill harmless; a run in memory keeps nothing."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
from begun_folders import begin_folder
from fake_encoders import fake_card

from clocs_core import files
from clocs_core.artifacts import encoder, run_folder, run_keeper
from clocs_core.artifacts.card import EncoderCard
from clocs_core.artifacts.documents import load_record
from clocs_core.artifacts.metrics import EpochRow, read_rows, to_line
from clocs_core.artifacts.predictions import Predictions, read_predictions
from clocs_core.artifacts.recordings import UsedRecordings
from clocs_core.artifacts.reports import Report, SplitSummary
from clocs_core.artifacts.run_folder import RunFolder
from clocs_core.artifacts.run_keeper import FolderKeeper, RunKeeper
from clocs_core.artifacts.split import Split, from_json
from clocs_core.artifacts.tensors import read_description
from clocs_core.contracts.records import Framing
from clocs_core.contracts.scores import Score
from clocs_core.errors import RunFolderError

TABLES = {"run": {"method": "m"}}
SPLIT = Split({"p1": "train", "p2": "test"}, 0, "60/20/20")
USED = UsedRecordings(recordings=2, patients=2, split="s", labels="l", files=("f",), frames="x")
SCORE = Score("linear", "m", "tiny", 1.0, "hits", "frame", 0.75, 0.5, 1.0)
REPORT = Report(
    method="m", dataset="tiny", task="t", seed=0, settings=TABLES, epochs_run=1, best_epoch=1, stopped="all epochs",
    split=SplitSummary("abc", "60/20/20", 0, {}, {}, {}, 0, 0), environment={}, scores=(SCORE,),
)  # fmt: skip


def row(epoch):
    numbers = dict.fromkeys(("validation_loss", "effective_rank", "same_patient", "other_patient", "margin"), 0.5)
    return EpochRow(
        epoch=epoch, train_loss=1 / epoch, loss_over_log_batch=1.0, improved=True, seconds=2.0, instances=9, **numbers
    )


def card():
    return fake_card(EncoderCard, method="m", count=1, pretrain_framing=Framing(frame_samples=100))


def predictions():
    ids = np.array([0, 1])
    return {("linear", "m", 1.0): Predictions(np.array([[0.2, 0.8], [0.7, 0.3]]), ids, ids, ids)}


def keep_all(keeper):
    """Everything that a run does with its keeper, in the order of a run."""
    with keeper.open():
        keeper.begin(TABLES, SPLIT, USED)
        keeper.restore_rows(())
        keeper.keep_epoch(row(1))
        keeper.tell_until(1)
        keeper.keep_encoder({"0.w": torch.ones(2)}, card())
        keeper.keep_predictions(predictions(), ("p1", "p2"), ("r1", "r2"))
        keeper.finish(REPORT, "<p>page</p>")
        keeper.close()


def test_a_run_in_memory_keeps_nothing_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keeper = RunKeeper()
    keep_all(keeper)
    assert (keeper.kept_rows(9), keeper.told_until()) == ((), 0)
    assert (keeper.checkpoint, keeper.profile) == (None, None)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match=os.devnull):  # a listener that tries to write into the folder of such a run
        (keeper.path / "events").write_text("", encoding="utf-8")


def test_all_that_is_kept_can_be_read_again(tmp_path):
    keep_all(FolderKeeper(tmp_path / "run"))
    folder = RunFolder(tmp_path / "run")
    assert from_json(folder.split.read_text(encoding="utf-8")) == SPLIT
    assert read_rows(folder.metrics.read_text(encoding="utf-8")) == (row(1),)
    assert list(read_predictions(folder.predictions)) == [("linear", "m", 1.0)]
    assert folder.page.read_text(encoding="utf-8") == "<p>page</p>"
    assert load_record(folder.report.read_text(encoding="utf-8"), Report, "report.json") == REPORT
    assert read_description(folder.encoder)["scores"][0]["value"] == SCORE.value


def test_the_report_is_written_last(tmp_path, monkeypatch):
    """A folder with a report is finished: whatever is written after it could be missing from a finished run."""
    written = []
    for module in (run_folder, run_keeper, encoder):
        whole = module.write_atomically
        monkeypatch.setattr(
            module, "write_atomically", lambda path, data, whole=whole: (written.append(path.name), whole(path, data))
        )
    keep_all(FolderKeeper(tmp_path / "run"))
    assert written[-2:] == ["report.html", "report.json"]
    assert written.index("split.json") < written.index("metrics.jsonl") < written.index("encoder.safetensors")


def test_an_encoder_without_scores_means_no_report(tmp_path):
    """Scores come first; a folder whose encoder is damaged is not finished."""
    keeper = FolderKeeper(tmp_path / "run")
    with keeper.open():
        keeper.begin(TABLES, SPLIT, USED)
        keeper.folder.encoder.write_bytes(b"half")
        with pytest.raises(RunFolderError, match=r"encoder\.safetensors"):
            keeper.finish(REPORT, "")
    assert not keeper.folder.report.exists()
    assert not keeper.folder.page.exists()


def is_locked(path):
    try:
        with RunFolder(path).reserve():
            return False
    except RunFolderError:
        return True


@pytest.mark.parametrize("begun", [None, TABLES], ids=["new", "resumed"])
def test_a_folder_is_locked_from_the_first_moment_to_the_last(tmp_path, begun):
    """Before recordings are read: two runs that begin at once must not share a folder."""
    if begun:
        begin_folder(tmp_path / "run", TABLES)
    with FolderKeeper(tmp_path / "run", begun).open():
        assert is_locked(tmp_path / "run")
    assert not is_locked(tmp_path / "run")
    assert (tmp_path / "run").exists() == bool(begun)


def test_a_run_that_began_since_the_caller_looked_is_not_touched(tmp_path):
    begin_folder(tmp_path / "run", {"run": {"method": "other"}})
    with pytest.raises(RunFolderError, match="run is there already"), FolderKeeper(tmp_path / "run").open():
        pass
    with pytest.raises(RunFolderError, match="have just been changed"), FolderKeeper(tmp_path / "run", TABLES).open():
        pass
    with pytest.raises(RunFolderError, match="is not a run folder"), FolderKeeper(tmp_path / "gone", TABLES).open():
        pass
    assert not (tmp_path / "gone").exists()


def test_metrics_are_restored_without_later_epochs_and_half_a_line(tmp_path):
    keeper = FolderKeeper(tmp_path)
    half = to_line(row(4))[:20]
    keeper.folder.metrics.write_text("".join(map(to_line, map(row, (1, 2, 3)))) + half, encoding="utf-8")
    assert keeper.kept_rows(2) == (row(1), row(2))
    keeper.restore_rows((row(1), row(2)))
    keeper.keep_epoch(row(3))
    assert read_rows(keeper.folder.metrics.read_text(encoding="utf-8")) == (row(1), row(2), row(3))


def test_metrics_that_are_missing_or_short_are_refused_where_the_checkpoint_has_no_copy(tmp_path):
    keeper = FolderKeeper(tmp_path)
    with pytest.raises(RunFolderError, match=r"metrics\.jsonl has 0 of the 2 epochs of the checkpoint"):
        keeper.kept_rows(2)
    keeper.keep_epoch(row(1))
    with pytest.raises(RunFolderError, match=r"metrics\.jsonl has 1 of the 2 epochs"):
        keeper.kept_rows(2)


def test_an_epoch_is_on_the_disk_before_its_checkpoint_can_be(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(files, "flush", lambda file: flushed.append(file.name))
    FolderKeeper(tmp_path).keep_epoch(row(1))
    assert flushed == [str(tmp_path / "metrics.jsonl")]


def test_a_run_is_finished_once_listeners_know_of_its_end(tmp_path):
    keeper = FolderKeeper(tmp_path)
    keeper.tell_until(3)
    keeper.folder.report.touch()
    assert (keeper.told_until(), keeper.folder.is_finished) == (3, False)
    keeper.folder.told.write_text("", encoding="utf-8")  # a kill in the middle of writing it
    assert (keeper.told_until(), keeper.folder.is_finished) == (0, False)
    keeper.close()
    assert keeper.folder.is_finished


def test_nothing_predicted_leaves_no_file_of_predictions(tmp_path):
    FolderKeeper(tmp_path).keep_predictions({}, (), ())
    assert list(tmp_path.iterdir()) == []
