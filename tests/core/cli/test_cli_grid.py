"""`clocs grid` from a file to its page, with an executor of a plugin and a quick command in place of clocs."""

from __future__ import annotations

import csv
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import attrs
import pytest
from fake_plugins import fake_point

from clocs_core import ExecutorOffer, Job, Outcome, Workplace, option, run_job
from clocs_core.cli import main
from clocs_core.plugins.host import installed_entry_points

FAKE = (sys.executable, "-S", "-E", str(Path(__file__).parents[2] / "benchmarks" / "fake_grid_command.py"))
GRID = """
title = "Two methods"
[axes]
method = ["cmsc", "simclr"]
dataset = ["demo"]
seed = [0, 1]
[[cells]]
name = "first"
method = "cmsc"
[[cells]]
name = "second"
method = "simclr"
"""


@attrs.frozen
class Options:
    """Of the engine `quick`."""

    address: str = option("", "Where it is.")


OPENED: list[tuple[Options, Workplace]] = []


class Quick:
    """Runs jobs as a cluster would: where it is, by `run_job`."""

    def __init__(self, workplace: Workplace) -> None:
        self.at_once, self._pool = workplace.at_once, ThreadPoolExecutor(workplace.at_once)
        self._place = attrs.evolve(workplace, command=FAKE)

    def __enter__(self) -> Quick:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def submit(self, job: Job) -> Any:
        return self._pool.submit(run_job, job, self._place)


def open_quick(options: Options, workplace: Workplace) -> Quick:
    OPENED.append((options, workplace))
    return Quick(workplace)


def clocs(*words: str) -> int:
    offer = ExecutorOffer(name="quick", summary="Quick.", options=Options, open=cast(Any, open_quick))
    plugin = fake_point("quick", clocs_executors=lambda: [offer])
    return main(list(words), [*installed_entry_points(), cast(Any, plugin)])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_figures: None) -> Path:
    (tmp_path / "mine.toml").write_text(GRID, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_grid_runs_and_is_asked_for_its_status_its_page_and_its_scores(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails is said, with why; the same command tries it again and runs nothing twice."""
    run = ("grid", "run", "mine.toml", "--engine", "quick", "--address", "here", "--jobs", "2")
    monkeypatch.setenv("FAKE_FAIL", "simclr-demo-E128-p0-s1")
    monkeypatch.setenv("FAKE_LOG", str(place / "log"))
    assert clocs(*run) == 1
    options, workplace = OPENED[-1]
    assert (options.address, workplace.at_once) == ("here", 2)
    assert "clocs:demo" in workplace.plugins
    said = capsys.readouterr()
    assert "4 cells; 8 jobs to do, 2 at once" in said.err
    assert "| second | " in said.out
    assert clocs("grid", "status", "runs/grids/mine") == 1
    said = capsys.readouterr()
    assert "4 cells: 3 done, 1 failed" in said.out
    assert "made to fail" in said.out
    monkeypatch.delenv("FAKE_FAIL")
    before = (place / "log").read_text().count("begin")
    assert clocs(*run) == 0
    assert (place / "log").read_text().count("begin") == before + 2
    table = capsys.readouterr().out
    assert clocs("grid", "page", "runs/grids/mine") == 0
    assert capsys.readouterr().out == table
    html = (place / "runs/grids/mine/grid.html").read_text()
    assert "4 cells: 4 done" in html
    assert "clocs grid run mine.toml" in html
    assert clocs("grid", "export", "runs/grids/mine", "--csv", "scores.csv") == 0
    rows = list(csv.DictReader((place / "scores.csv").read_text().splitlines()))
    assert {row["name"] for row in rows} == {"first", "second", "random"}


def test_pages_are_made_from_what_was_exported_without_the_runs(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tables are run one at a time, counted, exported to small files, and the runs deleted."""
    text = 'grid = ["linear-main", "more-with-less"]\n[axes]\nmethod = ["cmsc", "simclr"]\nseed = [0, 1]\n'
    text += 'dataset = ["chapman=demo", "physionet2020=demo", "physionet2017=demo", "cardiology=demo"]\n'
    (place / "paper.toml").write_text(text, encoding="utf-8")
    run = ("grid", "run", "paper.toml", "--engine", "quick", "--jobs", "2", "--out", "out", "--resamples", "20")
    assert clocs(*run, "--only", "linear-mian") == 2
    assert "The grid has no table 'linear-mian'. Did you mean 'linear-main'" in capsys.readouterr().err
    assert clocs(*run, "--only", "linear-main") == 0
    assert clocs("grid", "list", "paper.toml", "--out", "out") == 0
    said = capsys.readouterr().out
    assert "made: 4 of 4 pre-trainings, 4 of 4 evaluations, 4 of 4 cells" in said
    assert "made: 4 of 4 pre-trainings, 0 of 4 evaluations, 0 of 16 cells" in said
    assert clocs("grid", "export", "out", "--folder", "files", "--asked", "paper.toml") == 0
    (place / "out").rename(place / "gone")
    capsys.readouterr()
    assert clocs("grid", "page", "files", "--pages", "pages", "--asked", "paper.toml") == 0
    assert "linear-main: 4 of 4 cells are made.\nmore-with-less: 0 of 16 cells" in capsys.readouterr().out
    assert "| cmsc | 0." in (place / "pages" / "linear-main.md").read_text()


def test_several_pre_trainings_are_one_job_where_that_is_asked_for(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them fails: it alone is said to have failed, and is tried again alone."""
    run = ("grid", "run", "mine.toml", "--engine", "quick", "--runs-per-job", "3")
    monkeypatch.setenv("FAKE_FAIL", "cmsc-demo-E128-p0-s1")
    monkeypatch.setenv("FAKE_LOG", str(place / "log"))
    assert clocs(*run) == 1
    told = (place / "log").read_text()
    assert told.count("together 4") == 2  # four pre-trainings in two jobs of the same size, each with its evaluations
    assert told.count("together") == 2
    assert told.count("begin") == 7  # four pre-trainings, and the evaluations of three
    said = capsys.readouterr()
    assert "failed: cmsc-demo-E128-p0-s1" in said.err
    assert "made to fail. (cmsc-demo-E128-p0-s1" in said.err  # the log of the first has what the process said
    monkeypatch.delenv("FAKE_FAIL")
    assert clocs(*run) == 0
    assert (place / "log").read_text().removeprefix(told).count("begin") == 2


def test_a_dry_run_lists_cells_and_writes_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An axis of the command line replaces that of the file."""
    assert clocs("grid", "run", "mine.toml", "--axis", "seed=5", "--dry-run") == 0
    assert capsys.readouterr().out.count("missing") == 2
    assert not (place / "runs").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), ("auroc", "frame")),
        (("--axis", "protocol=linear-record"), ("auroc", "record")),
        (("--axis", "protocol=linear,linear-record"), ("auroc", "frame")),
        (("--axis", "protocol=patient-identification"), ("recall_at_1", "record")),
        (("--axis", "protocol=patient-identification", "--metric", "recall_at_5"), ("recall_at_5", "record")),
        (("--axis", "protocol=linear-record", "--metric", "f1", "--level", "frame"), ("f1", "frame")),
    ],
)
def test_a_protocol_of_recordings_is_shown_by_its_own_scores(
    place: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], expected: tuple[str, str]
) -> None:
    """Its rows were empty: they were asked for scores of frames, or for a metric that it does not have."""
    seen = []
    monkeypatch.setattr("clocs_core.grids.carry_out.find_work", lambda grid, out: seen.append(grid.measure))
    monkeypatch.setattr("clocs_core.grids.carry_out.say_work", lambda *_: "")
    assert clocs("grid", "run", "mine.toml", *words, "--dry-run") == 0
    assert [measure.of for measure in seen] == [expected]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "none.toml"), "Cannot read the grid none.toml"),
        (("run", "linear-mian"), "No grid 'linear-mian'. Did you mean 'linear-main'"),
        (("run", "mine.toml", "linear-main"), "Give one file, or names of grids"),
        (("run", "mine.toml", "--axis", "seed"), "An axis is NAME=VALUE,VALUE"),
        (("run", "mine.toml", "--engine", "slrum"), "No executor 'slrum'"),
        (("run", "mine.toml", "--address", "x"), "The engine 'local' has no option 'address=x'"),
        (("run", "mine.toml", "--metric", "aurok"), "Did you mean 'auroc'"),
        (("run", "mine.toml", "--root", "demo"), "--root takes NAME=PATH"),
        (("page", "none", "--pages", "pages"), "Say which tables to make pages of"),
        (("page", "none", "other"), "name the folder of one grid alone"),
        (("status", "none"), "none is not the folder of a grid"),
        (("page", "none"), "none is not the folder of a grid"),
        (("export", "none", "--csv", "a.csv"), "none holds no job of a grid"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    place: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    """Before anything is run or written."""
    assert clocs("grid", *words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert sum(line.startswith("Error: ") for line in said.splitlines()) == 1
    assert [path.name for path in place.iterdir()] == ["mine.toml"]


def test_the_outcome_of_a_lost_job_is_an_error_and_no_exception(tmp_path: Path) -> None:
    """A grid goes on with its other jobs."""
    job = Job(name="a", folder=tmp_path / "a", fresh=("run",), resume=("run",))
    assert "it said nothing" in run_job(job, Workplace(command=(sys.executable, "-c", "raise SystemExit(3)"))).error
    assert isinstance(run_job(job, Workplace(command=("/no/such/program",))), Outcome)
