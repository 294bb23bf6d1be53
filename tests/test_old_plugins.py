"""Plugins that were written for version 1.0 of the hooks still load and run, from the wheels that were built then."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from clocs_process import run_clocs

# Built at commit cbcbe04: the plugin for pulse waves, and what `clocs plugins new` wrote.
GOLDEN = Path(__file__).parent / "golden"
WHEELS = [GOLDEN / f"clocs_plugin_{name}-0.1.0-py3-none-any.whl" for name in ("ppg", "old")]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the wheels are unpacked on the path, where their entry points are found."""
    folder = tmp_path_factory.mktemp("wheel")
    for file in WHEELS:
        with ZipFile(file) as wheel:
            wheel.extractall(folder)
    return {"PYTHONPATH": str(folder), "CLOCS_DATA": str(folder / "data")}


def clocs(environment: dict[str, str], *words: object, cwd: Path) -> str:
    done = run_clocs(*words, cwd=cwd, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_offers_are_listed_and_nothing_is_set_aside(environment: dict[str, str], tmp_path: Path) -> None:
    found = json.loads(clocs(environment, "plugins", "--json", cwd=tmp_path))
    assert found["broken"] == []
    mine = {(one["kind"], one["name"]) for one in found["offers"] if one["plugin"] == "ppg"}
    assert mine >= {("dataset", "ppg-bp"), ("dataset", "bidmc"), ("method", "cross-modal"), ("views", "modalities")}
    mine = {(one["kind"], one["name"]) for one in found["offers"] if one["plugin"] == "old"}
    assert mine >= {("dataset", "old"), ("method", "old")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ppg", "old"])
def test_it_keeps_every_promise_of_today(environment: dict[str, str], tmp_path: Path, name: str) -> None:
    """The conformance checks of this version, made on the plugin of that one."""
    program = (
        "from clocs_core.plugins.session import open_session\n"
        "from clocs_core.testing import checks_of, failures\n"
        "catalogue = open_session().catalogue\n"
        f"mine = [item.offer for shelf in catalogue.shelves() for item in shelf if item.plugin.name == {name!r}]\n"
        "assert len(mine) >= 5\n"
        "print([found for offer in mine if (found := failures(checks_of(offer, catalogue=catalogue)))])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.slow
def test_what_the_scaffold_wrote_runs(environment: dict[str, str], tmp_path: Path) -> None:
    words = "run --plugin old --dataset old --epochs 1 --device cpu --resamples 20 --out run"
    clocs(environment, *words.split(), cwd=tmp_path)
    report = json.loads((tmp_path / "run" / "report.json").read_text(encoding="utf-8"))
    assert {score["init"] for score in report["scores"]} == {"old", "random"}


@pytest.mark.slow
def test_it_runs_on_real_pulse_waves(environment: dict[str, str], tmp_path: Path, test_data: Path) -> None:
    root = test_data / "ppg_bp"
    if not root.is_dir():
        pytest.skip("no real PPG-BP here: set CLOCS_TEST_DATA to a folder that has ppg_bp/")
    words = f"run --plugin cmsc --dataset ppg-bp --root {root} --epochs 1 --device cpu --resamples 20 --out run"
    clocs(environment, *words.split(), cwd=tmp_path)
    report = json.loads((tmp_path / "run" / "report.json").read_text(encoding="utf-8"))
    assert {score["init"] for score in report["scores"]} == {"cmsc", "random"}
