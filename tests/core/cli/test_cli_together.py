"""`clocs run --together`, which a grid starts: every run as by its own command, and a line for each that fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_plugins import points
from fake_runs import RUN
from killed_runs import contents_of

from clocs_core.cli import main

pytestmark = pytest.mark.usefixtures("no_pictures")


def words(place: Path, name: str, *more: str) -> list[str]:
    return [*RUN, "--data-root", str(place / "data"), "--workers", "1", "--out", str(place / name), *more]


def test_each_run_is_that_of_its_own_command_and_a_mistake_costs_itself(tmp_path: Path, capsys: Any) -> None:
    assert main(words(tmp_path, "alone", "--seed", "1", "--temperature", "0.2"), points()) == 0
    lines = [
        words(tmp_path, "first", "--seed", "1", "--temperature", "0.2"),
        words(tmp_path, "second", "--seed", "2"),
        words(tmp_path, "third", "--temperature", "hot"),
    ]
    capsys.readouterr()
    assert main(["run", "--workers", "1", "--together", json.dumps(lines)], points()) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("Error: third: ")
    assert "temperature" in said
    assert contents_of(tmp_path / "first") == contents_of(tmp_path / "alone")
    report = json.loads((tmp_path / "second" / "report.json").read_text())
    assert report["seed"] == 2
    assert report["command"].startswith("clocs run --plugin together --dataset tiny")
    assert not (tmp_path / "third").exists()
    (tmp_path / "second" / "report.json").unlink()
    again = [["run", "--resume", str(tmp_path / "second")], lines[0]]
    assert main(["run", "--together", json.dumps(again)], points()) == 2
    assert "Error: first: " in capsys.readouterr().err.splitlines()[-1], "it is there already"
    assert (tmp_path / "second" / "report.json").exists()


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[["evaluate"]]'])
def test_anything_else_is_refused(text: str, capsys: Any) -> None:
    assert main(["run", "--together", text], points()) == 2
    assert "takes the words of several runs as JSON" in capsys.readouterr().err
