"""A grid whose jobs run elsewhere, in an order of their own, makes the same page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
import run_all
from grid.flags import Request

from clocs_core.grids.executor import Job, Outcome

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

FAKE = (sys.executable, "-S", "-E", str(Path(__file__).parent / "fake_grid_command.py"))
GRID = ("--methods", "cmsc,simclr", "--datasets", "demo", "--seeds", "1", "--command", " ".join(FAKE))


PAGE = Path(__file__).parents[2] / "docs" / "benchmarks-grid.md"


class LastFirst:
    """Stands in for a cluster: two jobs are queued, and the last that came is the first that runs."""

    at_once = 2

    def __init__(self) -> None:
        self.came: list[str] = []
        self.ran: list[str] = []
        self.left = False
        self._queue: list[tuple[Job, Future[Outcome]]] = []

    def __enter__(self) -> LastFirst:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.left = True

    def submit(self, job: Job) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        self.came.append(job.name)
        self._queue.append((job, future))
        if len(self._queue) == self.at_once or len(self.came) > self.at_once:
            threading.Thread(target=self._run, args=(self._queue[::-1],)).start()
            self._queue = []
        return future

    def _run(self, jobs: list[tuple[Job, Future[Outcome]]]) -> None:
        for job, future in jobs:
            job.folder.parent.mkdir(parents=True, exist_ok=True)
            self.ran.append(job.name)
            subprocess.run([*FAKE, *(job.command() or ())], check=True)
            future.set_result(Outcome(seconds=1.0))


def test_jobs_may_run_in_any_order_on_any_executor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cluster keeps its own queue. An evaluation on the recordings of its pre-training belongs to the same job."""
    assert run_all.main([*GRID, "--jobs", "2", "--out", str(tmp_path / "here")]) == 0
    here = capsys.readouterr().out
    cluster = LastFirst()

    def open_cluster(request: Request, say: Callable[[str], None]) -> LastFirst:
        assert request.out == tmp_path / "there"
        say("one line for a person")
        return cluster

    assert run_all.main([*GRID, "--out", str(tmp_path / "there")], open_cluster) == 0
    said = capsys.readouterr()
    assert said.out == here
    assert "one line for a person" in said.err
    assert cluster.ran == cluster.came[::-1]
    assert len(set(cluster.came)) == 2
    assert cluster.left


def test_the_display_hears_of_jobs_that_take_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of a grid says which cells run; it was written when a job ended, which may be after hours."""
    monkeypatch.setattr("clocs_core.grids.schedule._OFTEN", 0.0)
    heard: list[object] = []
    monkeypatch.setattr("clocs_core.grids.display.ConsoleGrid.advance", lambda show, *told: heard.append(told[-1]))
    assert run_all.main([*GRID, "--jobs", "2", "--out", str(tmp_path / "here")]) == 0
    assert sum(note is None for note in heard) > 1


@pytest.mark.skipif(not shutil.which("flock"), reason="the example of the page takes locks with flock")
def test_the_executor_of_the_page_runs_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With commands of a cluster that run what they are given here and now."""
    asked = tmp_path / "asked"
    for name, does in (("sbatch", 'for word; do last=$word; done; eval "${last#--wrap=}"'), ("scancel", ":")):
        script = tmp_path / "bin" / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(f'#!/bin/sh\necho {name} "$@" >> {asked}\n{does}\n')
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    found: dict[str, Any] = {"__name__": "example"}
    exec(compile(example.replace('sys.executable, "-m", "clocs_core"', "*FAKE"), str(PAGE), "exec"), found)
    found["FAKE"] = FAKE
    words = ("run", "--plugin", "cmsc", "--dataset", "demo", "--split-seed", "0", "--out", str(tmp_path / "out" / "a"))
    job = Job(name="a", folder=tmp_path / "out" / "a", fresh=words, resume=words)
    with found["Slurm"](at_once=1) as cluster:
        first, again = cluster.submit(job).result(), cluster.submit(job).result()
    assert (first.error, again.error) == ("", "")
    assert first.seconds > 0
    assert again.seconds == 0
    assert [line.split()[0] for line in asked.read_text().splitlines()] == ["sbatch", "scancel"]
