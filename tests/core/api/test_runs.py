"""Pre-training from Python: the engine of the command line, resumable, quiet where asked, and nothing left behind."""

from __future__ import annotations

import inspect
import json
import pickle
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from fake_recordings import SAMPLES
from fake_runs import ARGUMENTS

import clocs_core as clocs
from clocs_core.cli import main

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them


def test_nothing_is_kept_and_nothing_is_shown_unless_asked(
    data: clocs.Recordings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    clocs.pretrain("cmsc", data, **ARGUMENTS)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
    clocs.pretrain("cmsc", data, **ARGUMENTS | {"progress": True})
    assert "per anchor, on average" in capfd.readouterr().err


def test_python_and_the_command_line_are_one_engine(tmp_path: Path) -> None:
    made = clocs.pretrain(
        "cmsc", clocs.dataset("demo", patients=12, data_root=tmp_path / "data"), label_fraction=[0.5, 1], **ARGUMENTS
    )
    words = "run --plugin cmsc --dataset demo --patients 12 --label-fraction 0.5,1 --epochs 2 --embedding-dim 8"
    words += f" --resamples 20 --device cpu --data-root {tmp_path / 'data'} --out {tmp_path / 'run'}"
    assert main(words.split()) == 0
    again = clocs.load_run(tmp_path / "run")
    assert again.record.scores == made.record.scores
    assert [(row["train_loss"], row["validation_loss"]) for row in again.history] == [
        (row["train_loss"], row["validation_loss"]) for row in made.history
    ]


class Interrupt(clocs.Listener):
    """Presses Ctrl-C after the first epoch."""

    def epoch_done(self, run: clocs.RunStarted, epoch: clocs.EpochDone) -> None:
        raise KeyboardInterrupt


def test_a_run_that_is_interrupted_is_resumed_by_the_same_call(data: clocs.Recordings, tmp_path: Path) -> None:
    whole = clocs.pretrain("cmsc", data, out=tmp_path / "whole", **ARGUMENTS)
    with pytest.raises(KeyboardInterrupt):
        clocs.pretrain("cmsc", data, out=tmp_path / "stopped", listeners=[Interrupt()], **ARGUMENTS)
    assert not (tmp_path / "stopped" / "report.json").exists()
    resumed = clocs.pretrain("cmsc", data, out=tmp_path / "stopped", **ARGUMENTS)
    assert resumed.record.scores == whole.record.scores
    finished = clocs.pretrain("cmsc", data, out=tmp_path / "stopped", **ARGUMENTS)
    assert finished.record == resumed.record
    assert finished.history["train_loss"] == resumed.history["train_loss"] == whole.history["train_loss"]


def test_a_folder_of_other_settings_is_refused_with_the_setting(data: clocs.Recordings, tmp_path: Path) -> None:
    clocs.pretrain("cmsc", data, out=tmp_path / "run", **ARGUMENTS)
    with pytest.raises(clocs.RunFolderError, match=r"run\.seed is 0 there and 1 here\. Choose another folder"):
        clocs.pretrain("cmsc", data, out=tmp_path / "run", seed=1, **ARGUMENTS)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(clocs.RunFolderError, match="is there already"):
        clocs.pretrain("cmsc", data, out=tmp_path / "file", **ARGUMENTS)


def test_listeners_follow_a_run_and_a_broken_one_costs_a_warning(
    data: clocs.Recordings, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    heard: list[str] = []

    class Notes(clocs.Listener):
        def run_started(self, run: clocs.RunStarted) -> None:
            heard.append(f"started {run.method}")

        def epoch_done(self, run: clocs.RunStarted, epoch: clocs.EpochDone) -> None:
            heard.append(f"epoch {epoch.epoch}")

        def run_done(self, run: clocs.RunStarted, done: clocs.RunDone) -> None:
            heard.append(f"done after {done.epochs_run}")

    class Broken(clocs.Listener):
        def epoch_done(self, run: clocs.RunStarted, epoch: clocs.EpochDone) -> None:
            raise ValueError("no room")

    clocs.pretrain("cmsc", data, listeners=[Broken(), Notes()], **ARGUMENTS | {"progress": True})
    assert heard == ["started cmsc", "epoch 1", "epoch 2", "done after 2"]
    assert "Broken.epoch_done failed: ValueError: no room" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"tempratur": 0.1},
            "`tempratur=...`: no part of this run has an option 'tempratur'. Did you mean 'temperature'",
        ),
        ({"epochs": 0}, "`train.epochs=...`: must be positive, got 0"),
        ({"epochs": 1.5}, "`train.epochs=...`: expected a whole number, got 1.5"),
        ({"label_fraction": 2}, "`evaluate.label_fraction=...`: must be above 0 and at most 1"),
        ({"channels": ["V9"]}, "has no channel 'V9'"),
        ({"device": "tpu"}, "expected one of auto, cpu, cuda, got 'tpu'"),
        ({"loss.colour": 1}, "`loss.colour=...`: 'loss' has no option 'colour'"),
    ],
)
def test_arguments_are_checked_like_settings(data: clocs.Recordings, settings, problem) -> None:
    with pytest.raises(clocs.ClocsError, match=problem.replace(".", r"\.")):
        clocs.pretrain("cmsc", data, **ARGUMENTS | settings)


def test_the_signature_lists_every_setting_once() -> None:
    """So that help and completion show them, from the one definition of a setting."""
    names = list(inspect.signature(clocs.pretrain).parameters)
    assert {"epochs", "batch_size", "seed", "label_fraction", "split_seed", "out", "progress"} <= set(names)
    assert len(names) == len(set(names))
    assert {"protocol", "label_fraction", "learning_rate"} <= set(inspect.signature(clocs.evaluate).parameters)


def test_a_run_in_memory_travels_with_its_encoder(run: clocs.Run, data: clocs.Recordings) -> None:
    signal = np.sin(np.arange(SAMPLES) / 9)[None]
    copy = pickle.loads(pickle.dumps(run))
    expected = run.encoder.embed(signal, sampling_rate=100).embedding
    np.testing.assert_array_equal(copy.encoder.embed(signal, sampling_rate=100).embedding, expected)
    assert copy.record == run.record
    assert clocs.evaluate(copy.encoder, data, resamples=20, progress=False).record.scores == run.record.scores


def test_embedding_works_in_threads(run: clocs.Run) -> None:
    signals = [np.random.default_rng(n).normal(size=(1, SAMPLES)) for n in range(4)]
    expected = [run.encoder.embed(one, sampling_rate=100).embedding for one in signals]
    found: dict[int, np.ndarray] = {}

    def embed(number: int) -> None:
        found[number] = run.encoder.embed(signals[number], sampling_rate=100).embedding

    threads = [threading.Thread(target=embed, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for number, one in enumerate(expected):
        np.testing.assert_array_equal(found[number], one)


def test_an_unfinished_folder_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(clocs.RunFolderError, match="is not a run folder"):
        clocs.load_run(tmp_path / "none")


def test_settings_of_a_run_can_be_read_back(data: clocs.Recordings, tmp_path: Path) -> None:
    clocs.pretrain("cmsc", data, out=tmp_path / "run", **ARGUMENTS)
    held = json.loads((tmp_path / "run" / "report.json").read_text())
    assert held["settings"]["run"]["dataset"] == "recordings"


def test_runs_in_threads_keep_their_warnings_apart(data: clocs.Recordings) -> None:
    """Python has one hook for warnings in a process; a run that ends must not leave its own behind."""
    before = warnings.showwarning
    made: dict[int, clocs.Run] = {}

    def train(number: int) -> None:
        made[number] = clocs.pretrain("cmsc", data, seed=number, **ARGUMENTS)

    threads = [threading.Thread(target=train, args=(number,)) for number in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(made) == [0, 1]
    assert warnings.showwarning is before


def test_without_pictures_a_run_and_an_evaluation_find_the_same(
    run: clocs.Run, data: clocs.Recordings, tmp_path: Path
) -> None:
    """The pages have the figures and no picture. An evaluation with pictures may go on in the folder of one without."""
    plain = clocs.pretrain("cmsc", data, seed=0, temperature=0.05, out=tmp_path / "run", pictures=False, **ARGUMENTS)
    assert plain.record.scores == run.record.scores
    few = {"resamples": 20, "permutations": 30, "progress": False, "out": tmp_path / "evaluation"}
    scored = clocs.evaluate(plain, data, pictures=False, **few)
    for folder in ("run", "evaluation"):
        assert "data:image/png" not in (tmp_path / folder / "report.html").read_text(encoding="utf-8")
    assert clocs.evaluate(plain, data, **few).record == scored.record
    again = clocs.pretrain("cmsc", data, seed=0, temperature=0.05, out=tmp_path / "run", **ARGUMENTS)
    assert again.record == plain.record


def test_without_pictures_nothing_that_draws_is_imported(tmp_path: Path) -> None:
    """matplotlib takes a second."""
    code = (
        "import sys, clocs_core as clocs\n"
        "few = dict(epochs=1, patients=12, resamples=20, permutations=0, device='cpu', progress=False)\n"
        "data = clocs.dataset('demo', data_root=sys.argv[1])\n"
        "clocs.pretrain('cmsc', data, out=sys.argv[1] + '/run', pictures=False, **few)\n"
        "assert 'matplotlib' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
