"""A run on somebody's own arrays, from the command line: the channels get the names that were given."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from clocs_core.cli import main
from clocs_core.plugins.host import installed_entry_points

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forty recordings of twenty patients, two channels, in a folder to run in."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.normal(size=(40, 2, 800)).astype(np.float32))
    rows = [f"{number // 2}.0,{'ab'[number // 2 % 2]}" for number in range(40)]
    (tmp_path / "ids.csv").write_text("\n".join(["patient,label", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    return tmp_path


def clocs(*arguments: str) -> int:
    """The command, with the plugin whether or not its entry point is installed."""
    others = [point for point in installed_entry_points() if point.name != "arrays"]
    given = ["--plugin", "cmsc", "--dataset", "arrays", "--root", "x.npy", "--sampling-rate", "125"]
    quick = ["--epochs", "1", "-o", "frame_samples=400", "-o", "resamples=20", "--embedding-dim", "8", "--workers", "1"]
    return main(["run", *given, *quick, *arguments], [*others, EntryPoint("arrays", "clocs_plugins.arrays", "clocs")])


def channels(run: Path) -> list[str]:
    return tomllib.loads((run / "settings.toml").read_text())["data"]["channels"]


@pytest.mark.slow
def test_channels_without_names_get_those_that_were_given(here: Path, capsys: pytest.CaptureFixture[str]):
    tables = ["--patients", "ids.csv", "--labels", "ids.csv"]
    assert clocs(*tables, "--channels", "PPG,ECG", "--out", "named") == 0, capsys.readouterr().err
    assert "40 recordings of 20 patients" in capsys.readouterr().err
    assert channels(here / "named") == ["PPG", "ECG"]
    assert clocs(*tables, "--channels", "1", "--out", "second") == 0  # a number chooses
    assert channels(here / "second") == ["1"]
    prepared = [path for path in (here / "data" / "prepared" / "arrays").iterdir() if path.is_dir()]
    assert len(prepared) == 1  # names change nothing that is on the disk


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("PPG", "1 names for 2 channels of 'arrays': PPG."),
        ("0,PPG", "Channel 'PPG' was asked for, but the recordings of 'arrays' have 0, 1."),
    ],
)
def test_names_that_do_not_fit_are_refused(here: Path, capsys: pytest.CaptureFixture[str], asked: str, message: str):
    assert clocs("--channels", asked) == 2
    assert message in capsys.readouterr().err


def write_ten_seconds(folder: Path, rate: int) -> None:
    """Two recordings of each of twelve patients, one channel, slow or fast, in one file that says everything."""
    rng, time = np.random.default_rng(0), np.arange(10 * rate) / rate
    wave = [np.sin(2 * np.pi * (1 + n // 2 % 2) * time) + 0.1 * rng.normal(size=len(time)) for n in range(24)]
    labels = ["slow" if n // 2 % 2 == 0 else "fast" for n in range(24)]
    np.savez(folder / "x.npz", x=np.stack(wave), patient=np.repeat(np.arange(12), 2), label=labels, sampling_rate=rate)


def ten_seconds(*more: str) -> list[str]:
    given = ["run", "--method", "cmsc", "--dataset", "arrays", "--root", "x.npz", "--out", "run", "--epochs", "1"]
    return [*given, "--embedding-dim", "8", "-o", "resamples=10", "--workers", "1", "--device", "cpu", *more]


@pytest.mark.slow
@pytest.mark.parametrize("rate", [50, 100, 125, 250, 500])
def test_ten_seconds_at_any_rate_are_trained_on_by_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rate: int
):
    """From file to report: 5,000 samples are two frames as they are, fewer are two halves, resampled."""
    write_ten_seconds(tmp_path, rate)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    assert main(ten_seconds()) == 0
    assert (tmp_path / "run" / "report.html").exists()
    said = f"windows of {5 * rate:,} are resampled to frames of 2,500 (`-o source_samples={5 * rate}`)"
    assert (said in capsys.readouterr().err) == (rate < 500)
    framing = tomllib.loads((tmp_path / "run" / "settings.toml").read_text())["evaluate_framing"]
    assert framing["source_samples"] == (5 * rate if rate < 500 else "none")
    assert main(["embed", "run", "--out", "z.npz"]) == 0
    assert np.load(tmp_path / "z.npz")["embedding"].shape == (48, 8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labels", "why"),
    [
        (["slow"] * 24, "all labelled recordings of 'arrays' have one class for 'label' (slow)"),
        ([f"{number / 7:.3f}" for number in range(24)], "the labels have 24 different values for 24 recordings"),
        ("none", "arrays has no labels"),
    ],
)
def test_labels_never_keep_recordings_from_pre_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], labels: object, why: str
):
    """The run trains, and its report says why it has no score; an evaluation, which needs labels, is refused."""
    write_ten_seconds(tmp_path, 100)
    (tmp_path / "y.txt").write_text("\n".join(labels) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    assert main(ten_seconds("--labels", "none" if labels == "none" else "y.txt")) == 0
    said = capsys.readouterr()
    assert f"There is no score: {why}" in " ".join(said.out.split())
    assert json.loads((tmp_path / "run" / "report.json").read_text())["scores"] == []
    assert main(["evaluate", "run"]) == 2
    assert "label" in capsys.readouterr().err


@pytest.mark.parametrize("given", [("frame_samples=500",), ("frame_samples=2500",)])
def test_the_advice_for_recordings_that_are_too_short_can_be_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: tuple[str, ...]
):
    """At 50 Hz it led in a circle: to 500 samples, to 250, and to at least 388."""
    write_ten_seconds(tmp_path, 50)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    asked = [word for one in given for word in ("-o", one)]
    assert main(ten_seconds(*asked)) == 2
    advice = re.search(r"`-o (source_samples=\d+)`", capsys.readouterr().err)
    assert advice is not None
    monkeypatch.setattr("clocs_core.workflows.pretrain.train_run", _stop)
    assert main(ten_seconds(*asked, "-o", advice[1])) == 130, "it comes as far as training"


def _stop(*_given: object) -> None:
    raise KeyboardInterrupt
