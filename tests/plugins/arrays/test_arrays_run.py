"""A run on somebody's own arrays, from the command line: the channels get the names that were given."""

from __future__ import annotations

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
