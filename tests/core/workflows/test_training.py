"""An interrupted run is resumed as if nothing had happened: its epochs, its listeners, its time and its recordings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
import torch
from fake_offers import TinyOptions, tiny, tiny_scan
from fake_plugins import FakeDistribution, FakePoint, fake_point
from fake_runs import RUN, points

from clocs_core import Listing, Task
from clocs_core.artifacts.metrics import EpochRow
from clocs_core.artifacts.run_keeper import FolderKeeper
from clocs_core.artifacts.tensors import read_tensors
from clocs_core.cli import main
from clocs_core.contracts.offers import Needs
from clocs_core.data.store import Instances
from clocs_core.errors import SettingsError
from clocs_core.progress import Display
from clocs_core.settings.sections import TrainSettings
from clocs_core.testing.threads import on_ranks
from clocs_core.train import checkpoint
from clocs_core.train.ranks import Group
from clocs_core.workflows import training
from clocs_core.workflows.training import _describe_contrast

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

Stop = Callable[[str, int], bool]
"""stop(event, epoch) -> whether the process is interrupted while it tells a listener of this event."""


class Listening:
    """A listener that keeps what it hears, and may press Ctrl-C."""

    def __init__(self, stop: Stop = lambda event, epoch: False) -> None:
        self.stop, self.heard = stop, []  # type: tuple[Stop, list[tuple[str, Any]]]

    def point(self) -> Any:
        return fake_point(
            "listening",
            clocs_run_started=lambda run: self.hear("started", run.first_epoch, run.first_epoch),
            clocs_epoch_done=lambda run, epoch: self.hear("epoch", epoch.epoch, epoch),
            clocs_run_done=lambda run, done: self.hear("done", done.epochs_run, done),
        )

    def hear(self, event: str, epoch: int, what: Any) -> None:
        if self.stop(event, epoch):
            raise KeyboardInterrupt
        self.heard.append((event, what))

    def events(self) -> list[Any]:
        """What was heard, in short."""
        return [what if event == "started" else getattr(what, "epoch", event) for event, what in self.heard]


@pytest.fixture(scope="module")
def whole(no_pictures: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Listening]:
    """A run that nobody interrupts."""
    folder, listening = tmp_path_factory.mktemp("whole"), Listening()
    assert begin(folder, listening) == 0
    return folder, listening


def begin(folder: Path, listening: Listening, **hooks: Any) -> int:
    arguments = [*RUN, "--data-root", str(folder / "data"), "--out", str(folder / "run"), "--workers", "1"]
    return main([*arguments, "--epochs", "3"], [*points(**hooks), listening.point()])


def resume(folder: Path, listening: Listening, **hooks: Any) -> int:
    return main(["run", "--resume", str(folder / "run")], [*points(**hooks), listening.point()])


def report_of(folder: Path) -> dict[str, Any]:
    """A report without the digest, which changes with the times inside."""
    found: dict[str, Any] = json.loads((folder / "run" / "report.json").read_text(encoding="utf-8"))
    return {key: value for key, value in found.items() if key != "digest"}


def lines_of(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        {key: value for key, value in json.loads(line).items() if key not in ("seconds", "digest")} for line in lines
    ]


@pytest.mark.parametrize("epoch", [1, 3], ids=["the first", "the last"])
def test_an_epoch_that_listeners_missed_is_told_again(
    tmp_path: Path, whole: tuple[Path, Listening], epoch: int
) -> None:
    """The checkpoint has it, so it is not trained again; without this, a curve would have a hole for ever."""
    first, second = Listening(lambda event, at: (event, at) == ("epoch", epoch)), Listening()
    assert begin(tmp_path, first) == 130
    assert resume(tmp_path, second) == 0
    assert first.events() == [1, *range(1, epoch)]
    assert second.events() == [epoch, *range(epoch, 4), "done"]
    told, known = second.heard[1][1], whole[1].heard[epoch][1]
    assert told.losses.tolist() == known.losses.tolist()
    again, once = (attrs.evolve(one, losses=None, seconds=0) for one in (told, known))
    assert repr(again) == repr(once)  # some numbers are NaN


@pytest.mark.filterwarnings("always::clocs_core.errors.ClocsWarning")
def test_a_plugin_of_another_version_is_told_and_kept_in_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Epochs of two versions in one run are a result that no installation repeats."""
    assert begin(tmp_path, Listening(lambda event, at: (event, at) == ("epoch", 2))) == 130
    capsys.readouterr()
    monkeypatch.setattr(FakePoint, "dist", property(lambda point: FakeDistribution(point.distribution, "2.0")))
    assert resume(tmp_path, Listening()) == 0
    said = "the run was resumed after epoch 2 with other versions: plugin fakes fakes 2.0 (before: fakes 1.0)"
    assert said in capsys.readouterr().err
    assert any(said in note for note in report_of(tmp_path)["notes"])


def test_an_epoch_that_listeners_know_of_is_not_told_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(keeper: FolderKeeper, row: EpochRow) -> None:
        if row.epoch == 2:
            raise KeyboardInterrupt
        keep(keeper, row)

    first, second = Listening(), Listening()
    with monkeypatch.context() as patch:
        keep = FolderKeeper.keep_epoch
        patch.setattr(FolderKeeper, "keep_epoch", die)
        assert begin(tmp_path, first) == 130
    assert resume(tmp_path, second) == 0
    assert (first.events(), second.events()) == ([1, 1], [2, 2, 3, "done"])


def test_the_end_is_told_again_where_a_kill_kept_it_from_listeners(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report was there, so the run was called finished, and TensorBoard never got its scores."""
    first, second, third = Listening(lambda event, _: event == "done"), Listening(), Listening()
    assert begin(tmp_path, first) == 130
    before = report_of(tmp_path)
    assert resume(tmp_path, second) == 0
    assert second.events() == ["done"]
    after = report_of(tmp_path)
    other = dict.fromkeys(("seconds", "command", "date"))  # of another process
    assert {**after, **other} == {**before, **other}
    assert second.heard[0][1].scores
    capsys.readouterr()
    assert resume(tmp_path, third) == 0
    assert third.heard == []
    assert "is finished: see" in capsys.readouterr().out


def test_metrics_that_were_deleted_are_restored_from_the_checkpoint(
    tmp_path: Path, whole: tuple[Path, Listening]
) -> None:
    assert begin(tmp_path, Listening(lambda event, at: (event, at) == ("epoch", 3))) == 130
    (tmp_path / "run" / "metrics.jsonl").unlink()
    assert resume(tmp_path, Listening()) == 0
    assert lines_of(tmp_path) == lines_of(whole[0])
    assert report_of(tmp_path)["notes"] == report_of(whole[0])["notes"]


def test_without_a_log_in_the_checkpoint_metrics_have_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Earlier versions wrote such checkpoints. A run is refused in a sentence, not by an index out of range."""
    with monkeypatch.context() as patch:
        save = checkpoint.save_checkpoint
        patch.setattr("clocs_core.workflows.saving.save_checkpoint", lambda learner, path, log: save(learner, path))
        assert begin(tmp_path, Listening(lambda event, at: (event, at) == ("epoch", 2))) == 130
    metrics = tmp_path / "run" / "metrics.jsonl"
    whole = metrics.read_bytes()
    metrics.unlink()
    assert resume(tmp_path, Listening()) == 2
    assert "metrics.jsonl has 0 of the 2 epochs of the checkpoint beside it." in capsys.readouterr().err
    metrics.write_bytes(whole)
    assert resume(tmp_path, Listening()) == 0
    assert [line["epoch"] for line in lines_of(tmp_path)] == [1, 2, 3]


def test_time_adds_up_over_the_processes_of_a_run(tmp_path: Path) -> None:
    """A run of a night that was resumed for its report did not take a tenth of a second."""
    assert begin(tmp_path, Listening(lambda event, at: (event, at) == ("epoch", 3))) == 130
    _, about = read_tensors(tmp_path / "run" / "checkpoint.safetensors")
    before = about["log"]["seconds"]
    assert resume(tmp_path, Listening()) == 0
    after = report_of(tmp_path)["seconds"]
    assert after["pretrain"] > before["pretrain"] > 0
    assert after["prepare"] > before["prepare"] > 0


def test_a_run_whose_recordings_changed_is_not_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its checkpoint was trained on patients that the new split may test on."""
    assert begin(tmp_path, Listening(lambda event, at: (event, at) == ("epoch", 2))) == 130
    split = (tmp_path / "run" / "split.json").read_bytes()

    def larger(root: Path, task: Task, options: TinyOptions) -> Listing:
        return tiny_scan(root, task, attrs.evolve(options, people=options.people + 3))

    def relabelled(root: Path, task: Task, options: TinyOptions) -> Listing:
        first, *others = tiny_scan(root, task, options).entries
        return Listing([attrs.evolve(first, label=1), *others])

    for scan, why in (
        (larger, "it had 20 recordings of 10 patients, now there are 26 recordings of 13 patients"),
        (relabelled, "patients or labels of some recordings are others"),
    ):
        assert resume(tmp_path, Listening(), clocs_datasets=lambda scan=scan: [tiny(scan=scan)]) == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert f"The recordings have changed since {tmp_path / 'run'} was begun: {why}. Put them back" in said
        assert (tmp_path / "run" / "split.json").read_bytes() == split
    assert resume(tmp_path, Listening()) == 0


@pytest.mark.parametrize(("patients", "warned"), [([3] * 8, True), (range(8), False)])
def test_a_run_warns_where_its_batches_have_one_patient_each(patients, warned) -> None:
    frames = Instances(torch.arange(8)[:, None], torch.zeros(8, 1, dtype=torch.int64))
    store = SimpleNamespace(patient=torch.tensor(list(patients)))
    training = SimpleNamespace(store=store, train=frames, settings=TrainSettings(batch_size=4), seed=0)
    plan = SimpleNamespace(needs=Needs(), loss="some")
    said: list[str] = []
    show = SimpleNamespace(say=lambda text: None, warn=said.append)
    _describe_contrast(plan, training, show)  # type: ignore[arg-type]  # the parts that it reads
    start = "100% of the batches have instances of one patient only, so that patients are hardly ever told apart; there"
    assert said == ([f"{start} are 1 to train on. Use a larger `batch_size`, or recordings of more patients"] * warned)


@pytest.mark.parametrize(
    ("patients", "contents", "expected"),
    [
        ((3, 2), "aa", "process 0 has train patients = 3, and process 1 has train patients = 2 in its place"),
        ((3, 3), "ab", "process 0 has checksum of the frames = a a, and process 1 has checksum of the frames = b b in"),
    ],
)
def test_processes_that_read_different_recordings_are_refused_with_the_difference(
    patients: tuple[int, int], contents: str, expected: str
) -> None:
    """Other patients, and other signals of the same patients."""

    def read(group: Group) -> None:
        frames = SimpleNamespace(record=range(4), records=range(2), contents=contents[group.rank])
        split = SimpleNamespace(hash="a", counts=lambda: {"train": patients[group.rank]})
        shared = SimpleNamespace(get=lambda _plan, _get: SimpleNamespace(split=split, pretrain=frames, evaluate=frames))
        around: Any = SimpleNamespace(group=group, workers=1, show=Display(), shared=shared)
        plan: Any = SimpleNamespace(pretrain_framing=None, evaluate_framing=None)
        training._cohort(plan, around, torch.device("cpu"))

    with pytest.raises(SettingsError, match=expected):
        on_ranks(2, read)
