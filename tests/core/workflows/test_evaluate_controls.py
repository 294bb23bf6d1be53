"""Controls that evaluations share: made once, by whomever, and the report is the same to the last bit."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from evaluation_files import held
from fake_plugins import points
from fake_runs import make_run
from filelock import FileLock

from clocs_core.artifacts import evaluation_folder
from clocs_core.artifacts.evaluation_folder import open_controls
from clocs_core.artifacts.predictions import read_predictions
from clocs_core.artifacts.reports import EvaluationReport
from clocs_core.cli import main
from clocs_core.errors import ClocsError, DataError, RunFolderError
from clocs_core.evaluation.controls import control_name, digest_rows
from clocs_core.plan.evaluation import resolve_evaluation
from clocs_core.plan.pretrained import open_encoder
from clocs_core.plugins.session import open_session
from clocs_core.workflows import classifiers
from clocs_core.workflows.evaluate import evaluate_encoder
from clocs_core.workflows.surroundings import Surroundings

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

FEW = "label_fraction=0.5,1"
QUICK = ("batch_size=64", "epochs=2")


class Screen:
    """Remembers what was shown. at_stage: called with the text of every stage."""

    def __init__(self, at_stage: Callable[[str], None] = lambda text: None) -> None:
        self.stages: list[str] = []
        self.lines: list[str] = []
        self.at_stage = at_stage

    def say(self, text: str) -> None:
        self.lines.append(text)

    warn = say

    def stage(self, text: str) -> None:
        self.stages.append(text)
        self.at_stage(text)

    def tick(self, done: int, total: int) -> None: ...

    def epoch(self, done: object, epochs: int) -> None: ...

    @property
    def taken(self) -> list[str]:
        """Which controls were taken from the shared folder."""
        return [line.split(":")[0] for line in self.lines if ": taken from " in line]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs of different weights beside one folder of prepared frames."""
    folder = tmp_path_factory.mktemp("runs")
    first = make_run(folder, "-o", "people=14").rename(folder / "first")
    return first, make_run(folder, "-o", "people=14", "--seed", "5")


@pytest.fixture(scope="module")
def evaluate(runs: tuple[Path, Path]) -> Callable[..., EvaluationReport]:
    session = open_session(points(), (), False)

    def call(path, *assignments, run=0, controls=None, screen=None, clock=None, **evaluation):
        opened = None if run is None else open_encoder(runs[run], session.catalogue)
        how = {"dataset": "many", "protocol": "finetune", "seed": 0, "device": "cpu", **evaluation}
        tables = {"evaluation": how, "data": {"data_root": str(runs[0].parent / "data")}}
        quick = QUICK if how["protocol"] == "finetune" else ()
        few = ["resamples=20", "permutations=20"]
        asked = resolve_evaluation(session.catalogue, opened, tables, [*few, *quick, *assignments])
        ticking = clock or itertools.count().__next__
        around = Surroundings(session.host, screen or Screen(), 1, ticking)
        return evaluate_encoder(asked, path, around, controls).report

    return call


def lasting(report: EvaluationReport) -> EvaluationReport:
    """A report without what a clock said."""
    cells = tuple(attrs.evolve(cell, seconds=0.0) for cell in report.cells)
    return attrs.evolve(report, seconds={}, cells=cells, date="")


def names(controls: Path) -> set[str]:
    return {path.name for path in controls.iterdir() if path.is_dir()}


ALL = {
    protocol: [*(f"{words} random, F = {f}" for f in ("0.5", "1")), *(f"class prior, F = {f}" for f in ("0.5", "1"))]
    for protocol, words in (("linear", "linear evaluation of"), ("finetune", "fine-tuning"))
}


@pytest.mark.parametrize("protocol", ["linear", "finetune"])
def test_reports_are_the_same_with_and_without_shared_controls(evaluate, tmp_path, protocol):
    """Whether the evaluation made them or another one did: scores, curves, predictions, and the weights on disk."""
    controls, first, second = tmp_path / "controls", Screen(), Screen()
    for number, screen in enumerate((first, second)):
        alone = evaluate(tmp_path / f"alone{number}", FEW, run=number, protocol=protocol)
        shared = evaluate(
            tmp_path / f"shared{number}", FEW, run=number, protocol=protocol, controls=controls, screen=screen
        )
        assert lasting(shared) == lasting(alone)
        assert held(tmp_path / f"shared{number}") == held(tmp_path / f"alone{number}")
    assert first.taken == []
    assert sorted(second.taken) == sorted(ALL[protocol])
    assert len(names(controls)) == 4


def test_files_are_read_once_and_rows_digested_once(evaluate, tmp_path, monkeypatch):
    """Predictions of a large test are long to unpack, and a digest goes over all labelled frames."""
    evaluate(tmp_path / "a", FEW, protocol="linear", controls=tmp_path / "c")
    read, digested = [], []
    monkeypatch.setattr(evaluation_folder, "read_predictions", lambda path: read.append(path) or read_predictions(path))
    monkeypatch.setattr(classifiers, "digest_rows", lambda bench: digested.append(bench) or digest_rows(bench))
    found = evaluate(tmp_path / "b", FEW, protocol="linear", run=1, controls=tmp_path / "c")
    assert len(read) == len(set(read)) == len(found.cells) == 6
    assert len(digested) == 1


def test_a_control_keeps_the_seconds_of_when_it_was_made(evaluate, tmp_path):
    """A reader who adds them up learns what the cells cost, not how quickly they were copied."""
    slow = itertools.count(step=7).__next__
    first = evaluate(tmp_path / "a", controls=tmp_path / "c", clock=slow)
    second = evaluate(tmp_path / "b", controls=tmp_path / "c", run=1)
    of = [next(cell.seconds for cell in one.cells if cell.init == "random" and cell.epochs) for one in (first, second)]
    assert of[0] == of[1] >= 7


# ---------------------------------------------------------------------------------------------- what it depends on


@pytest.fixture(scope="module")
def stocked(evaluate, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the controls of one evaluation."""
    folder = tmp_path_factory.mktemp("stocked")
    evaluate(folder / "e", controls=folder / "controls")
    return folder / "controls"


@pytest.mark.parametrize(
    "change",
    [
        ("label_fraction=0.5",),
        ("epochs=1",),
        ("batch_size=32",),
        ("learning_rate=0.002",),
        ("patience=3",),
        ("split_seed=1",),
        ("split=60/20/20",),
        ("part=validation",),
        ("normalise=none",),
        ("channels=left",),
        ("task=findings",),
        {"seed": 1},
        {"fraction_of": "patients"},
        {"step": "plain"},
        {"protocol": "linear"},
    ],
    ids=str,
)
def test_whatever_changes_a_control_gives_it_another_name(evaluate, stocked, tmp_path, change):
    """A control of other settings beside a score would be a wrong comparison that nobody sees."""
    shutil.copytree(stocked, tmp_path / "c")
    screen = Screen()
    options, how = (change, {}) if isinstance(change, tuple) else ((), change)
    evaluate(tmp_path / "e", *options, controls=tmp_path / "c", screen=screen, **how)
    assert [line for line in screen.taken if not line.startswith("class prior")] == []
    assert len(names(tmp_path / "c")) > len(names(stocked))


def test_what_does_not_change_a_control_leaves_its_name(evaluate, stocked, tmp_path):
    """Another run, and how often scores are resampled; the prior needs no encoder and no seed either."""
    controls, screen = tmp_path / "c", Screen()
    shutil.copytree(stocked, controls)
    evaluate(tmp_path / "e", "resamples=30", run=1, controls=controls, screen=screen)
    assert len(screen.taken) == 2
    screen = Screen()
    evaluate(tmp_path / "f", "normalise=none", "epochs=1", controls=controls, screen=screen, seed=3)
    assert screen.taken == ["class prior, F = 1"]


def test_the_architecture_is_part_of_the_name_and_who_asks_is_not(evaluate, stocked, tmp_path):
    """An untrained encoder by itself is the control of the runs that have its architecture, and of no other."""
    controls = tmp_path / "c"
    shutil.copytree(stocked, controls)
    for number, (options, how, taken) in enumerate(
        (((), {}, 2), (("bias=false",), {}, 1), ((), {"embedding_dim": 16}, 1))
    ):
        screen = Screen()
        evaluate(tmp_path / str(number), *options, run=None, controls=controls, screen=screen, encoder="flat", **how)
        assert len(screen.taken) == taken, (options, how)


def test_labels_and_versions_are_part_of_the_name():
    """Labels may be corrected while files stay; a library may round otherwise."""
    facts = {"rows": "a", "versions": {"torch": "2"}}
    others = [{**facts, "rows": "b"}, {**facts, "versions": {"torch": "3"}}]
    assert len({control_name(one) for one in (facts, *others)}) == 3
    assert control_name(facts) == control_name({"versions": {"torch": "2"}, "rows": "a"})


# ------------------------------------------------------------------------------------------------------------- trouble


@pytest.mark.parametrize("file", ["*.npz", "*.json", "*.curve.jsonl", "*.safetensors"])
def test_a_damaged_control_is_made_again(evaluate, stocked, tmp_path, file):
    """With a warning; the evaluation must not fall over what another one left."""
    controls = tmp_path / "c"
    shutil.copytree(stocked, controls)
    (broken,) = (path for path in controls.rglob(file) if "finetune" in path.name or "classifiers" in path.parts)
    whole = broken.read_bytes()
    broken.write_bytes(whole[: len(whole) // 2])
    screen = Screen()
    evaluate(tmp_path / "e", run=1, controls=controls, screen=screen)
    assert screen.taken == ["class prior, F = 1"]
    assert any(line.endswith("It is made again.") and str(broken) in line for line in screen.lines)
    again = Screen()
    evaluate(tmp_path / "f", controls=controls, screen=again)
    assert len(again.taken) == 2


def test_a_share_too_small_for_two_classes_is_not_kept(evaluate, tmp_path):
    """There is nothing to share; the note is made by each evaluation."""
    found = evaluate(tmp_path / "e", "label_fraction=0.001", controls=tmp_path / "c")
    assert found.scores == ()
    assert names(tmp_path / "c") == set()


def test_a_kill_while_a_control_is_made_leaves_none_and_the_next_evaluation_makes_it(evaluate, tmp_path):
    """The system lets go of the lock; what lies there is whole or is not counted."""

    class Stopped(Screen):
        def epoch(self, done, epochs):
            if self.stages[-1].startswith("fine-tuning random"):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(tmp_path / "e", controls=tmp_path / "c", screen=Stopped())
    assert names(tmp_path / "c") == set()
    other, again = Screen(), Screen()
    evaluate(tmp_path / "f", run=1, controls=tmp_path / "c", screen=other)
    evaluate(tmp_path / "e", controls=tmp_path / "c", screen=again)
    assert (other.taken, len(again.taken)) == ([], 2)


def test_a_kill_between_the_files_of_a_control_leaves_one_that_does_not_count(evaluate, stocked, tmp_path):
    """Numbers come last: without them, what is there is written over."""
    controls = tmp_path / "c"
    shutil.copytree(stocked, controls)
    for path in controls.rglob("*.json"):
        path.unlink()
    screen = Screen()
    evaluate(tmp_path / "e", controls=controls, screen=screen)
    assert screen.taken == []
    assert len(list(controls.rglob("*.json"))) == 2


def test_a_place_that_cannot_be_is_one_line_and_leaves_nothing(runs, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("CLOCS_DATA", str(runs[0].parent / "data"))
    (tmp_path / "letter").write_text("precious")
    words = ["evaluate", str(runs[0]), "--out", str(tmp_path / "e"), "--controls", str(tmp_path / "letter")]
    assert main([*words, "--device", "cpu", "--workers", "1"], points()) == 2
    assert f"Error: Cannot keep controls in {tmp_path / 'letter'}: " in capsys.readouterr().err
    assert not (tmp_path / "e").exists()


def refuse_recordings(*_: object) -> None:
    raise DataError("There are no recordings.")


@pytest.mark.parametrize("mistake", ["recordings", "folder of the evaluation", "folder of controls"])
def test_a_refused_evaluation_leaves_no_folder_of_controls(evaluate, tmp_path, monkeypatch, mistake):
    taken, controls = tmp_path / "taken", tmp_path / "new" / "controls"
    taken.mkdir()
    (taken / "letter").write_text("precious")
    if mistake == "recordings":
        monkeypatch.setattr("clocs_core.workflows.evaluation_frames.get_cohort", refuse_recordings)
    if mistake == "folder of controls":
        monkeypatch.setattr("os.access", lambda path, _mode: path != controls)
    with pytest.raises(ClocsError):
        evaluate(taken if mistake == "folder of the evaluation" else tmp_path / "e", controls=controls)
    assert list(tmp_path.iterdir()) == [taken]


def test_a_place_that_is_closed_to_this_user_is_refused_in_a_sentence(tmp_path, monkeypatch):
    """`Path.exists` raises PermissionError for what lies below a closed folder."""

    def closed(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", lambda path: closed(path) if tmp_path in path.parents else True)
    monkeypatch.setattr(Path, "mkdir", closed)
    with (
        pytest.raises(RunFolderError, match=r"Cannot keep controls in .*: Permission denied"),
        open_controls(tmp_path / "c"),
    ):
        pass


def test_a_folder_of_controls_that_was_there_stays(evaluate, tmp_path, monkeypatch):
    monkeypatch.setattr("clocs_core.workflows.evaluation_frames.get_cohort", refuse_recordings)
    (tmp_path / "controls").mkdir()
    with pytest.raises(DataError):
        evaluate(tmp_path / "e", controls=tmp_path / "controls")
    assert [path.name for path in tmp_path.iterdir()] == ["controls"]


def test_a_read_only_place_is_refused_before_anything_is_read(evaluate, tmp_path, monkeypatch):
    """Not after the minutes that the recordings, or the first control, take."""
    monkeypatch.setattr("os.access", lambda path, _mode: path != tmp_path / "c")
    screen = Screen()
    with pytest.raises(RunFolderError, match=r"Cannot keep controls in .*/c: it is read-only\. Choose another folder"):
        evaluate(tmp_path / "e", controls=tmp_path / "c", screen=screen)
    assert screen.stages == []
    assert not (tmp_path / "e").exists()


def test_a_disk_that_takes_no_control_costs_a_warning(evaluate, tmp_path, monkeypatch):
    """The evaluation has its own copy by then."""
    from clocs_core.artifacts.evaluation_folder import EvaluationFolder

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(EvaluationFolder, "take_over", full)
    screen = Screen()
    assert evaluate(tmp_path / "e", controls=tmp_path / "c", screen=screen).scores
    assert sum("could not be kept" in line and "No space left" in line for line in screen.lines) == 2


# --------------------------------------------------------------------------------------------------- several at once


def test_while_another_process_makes_a_control_the_own_classifiers_come_first(evaluate, stocked, tmp_path):
    """Eight processes of a grid that all wait for the same control would be one."""
    controls = tmp_path / "c"
    controls.mkdir()
    locks = [FileLock(controls / f".{name}.lock") for name in names(stocked)]
    for lock in locks:
        lock.acquire()

    def other_is_done(text: str) -> None:
        if text.startswith("waiting for another process: ") and text.endswith("(1 of 2)"):
            shutil.copytree(stocked, controls, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*"))
            for lock in locks:
                lock.release()

    screen = Screen(other_is_done)
    evaluate(tmp_path / "e", run=1, controls=controls, screen=screen)
    assert screen.stages[1].startswith("fine-tuning together, F = 1")
    assert [text.split(":")[0] for text in screen.stages[4:6]] == ["waiting for another process"] * 2
    assert len(screen.taken) == 2
