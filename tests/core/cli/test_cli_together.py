"""`--together` of `clocs run` and `clocs evaluate`: each as by its own command, and a line for each that fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_plugins import points
from fake_runs import RUN
from killed_runs import contents_of

from clocs_core.cli import main
from clocs_core.workflows import evaluation_frames, several_evaluations

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


def scores_of(evaluation: Path) -> dict[str, Any]:
    """All that its report says, but for when and how it was made."""
    report = json.loads((evaluation / "report.json").read_text())
    report["cells"] = [{**cell, "seconds": None} for cell in report["cells"]]
    return {name: value for name, value in report.items() if name not in ("seconds", "command", "date", "digest")}


def test_each_evaluation_is_that_of_its_own_command_and_recordings_are_read_once(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(words(tmp_path, "run"), points()) == 0

    def evaluation(name: str, *more: str) -> list[str]:
        where = ["--data-root", str(tmp_path / "data"), "--workers", "1", "--out", str(tmp_path / name)]
        return ["evaluate", str(tmp_path / "run"), *where, "--controls", str(tmp_path / "controls"), *more]

    assert main(evaluation("alone", "--label-fraction", "0.5,1"), points()) == 0
    lines = [
        evaluation("first", "--label-fraction", "0.5,1"),
        evaluation("second", "--seed", "3"),
        evaluation("third", "--label-fraction", "most"),
        ["evaluate", str(tmp_path / "nowhere"), "--out", str(tmp_path / "fourth")],
    ]
    read: list[str] = []
    whole = evaluation_frames.get_cohort
    monkeypatch.setattr(evaluation_frames, "get_cohort", lambda *more: (read.append("read"), whole(*more))[1])
    capsys.readouterr()
    assert main(["evaluate", "--workers", "1", "--together", json.dumps(lines)], points()) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Error: ")]
    assert [line.split(": ")[1] for line in said] == ["third", "fourth"]
    assert read == ["read"]
    assert scores_of(tmp_path / "first") == scores_of(tmp_path / "alone")
    report = json.loads((tmp_path / "second" / "report.json").read_text())
    assert report["seed"] == 3
    assert report["command"].startswith("clocs evaluate ")
    assert not (tmp_path / "third").exists()


def test_evaluations_follow_their_runs_in_one_process_and_are_those_of_their_own_commands(
    tmp_path: Path, capsys: Any
) -> None:
    def evaluation(run: str, name: str) -> list[str]:
        where = ["--data-root", str(tmp_path / "data"), "--workers", "1", "--out", str(tmp_path / name)]
        return ["evaluate", str(tmp_path / run), *where, "--controls", str(tmp_path / f"controls of {name}")]

    assert main(words(tmp_path, "alone", "--seed", "1"), points()) == 0
    assert main(evaluation("alone", "alone scored"), points()) == 0
    lines = [
        words(tmp_path, "first", "--seed", "1"),
        words(tmp_path, "hot", "--temperature", "hot"),
        evaluation("first", "scored"),
        evaluation("hot", "lost"),
    ]
    capsys.readouterr()
    assert main(["run", "--workers", "1", "--together", json.dumps(lines)], points()) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Error: ")]
    assert said[0].startswith("Error: hot: ")
    assert said[1:] == ["Error: lost: Not tried: its pre-training failed."]
    assert contents_of(tmp_path / "first") == contents_of(tmp_path / "alone")
    made, alone = (scores_of(tmp_path / name) for name in ("scored", "alone scored"))
    assert [made[part] for part in ("scores", "comparisons", "split")] == [
        alone[part] for part in ("scores", "comparisons", "split")
    ]
    assert not (tmp_path / "lost").exists()


def test_an_evaluation_that_fails_costs_itself(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(words(tmp_path, "run"), points()) == 0
    where = ["--data-root", str(tmp_path / "data"), "--workers", "1"]
    lines = [["evaluate", str(tmp_path / "run"), *where, "--out", str(tmp_path / name)] for name in ("a", "b")]
    whole = several_evaluations.evaluate_encoder

    def fail_once(plan: Any, path: Path, *more: Any) -> Any:
        if path.name == "a":
            raise MemoryError("of a plugin")
        return whole(plan, path, *more)

    monkeypatch.setattr(several_evaluations, "evaluate_encoder", fail_once)
    assert main(["evaluate", "--together", json.dumps(lines)], points()) == 2
    (said,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Error: ")]
    assert said.startswith("Error: a: ")
    assert (tmp_path / "b" / "report.json").exists()


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[["embed"]]'])
@pytest.mark.parametrize(("verb", "what"), [("run", "runs and evaluations"), ("evaluate", "evaluations")])
def test_anything_else_is_refused(text: str, verb: str, what: str, capsys: Any) -> None:
    assert main([verb, "--together", text], points()) == 2
    assert f"takes the words of several {what} as JSON" in capsys.readouterr().err
