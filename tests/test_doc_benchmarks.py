"""Every benchmark that a page shows can be typed, and is run, smaller: in this process, on a CPU, on simulated ECGs."""

from __future__ import annotations

import argparse
import importlib
import json
import runpy
import shlex
import sys
from concurrent.futures import Future
from pathlib import Path

import pytest
import run_all
from doc_commands import ROOT, RUN_ELSEWHERE, shown, smaller
from grid import reference, smoke, story

from clocs_core.cli import main
from clocs_core.grids.executor import Job, Outcome
from clocs_core.grids.notes import read_notes

BENCHMARKS = sorted(line for line in shown() if line.startswith("python benchmarks/"))
LISTING, CHECK = "python benchmarks/run_all.py --list", "python benchmarks/run_all.py --check"
HERE = [line for line in BENCHMARKS if line not in RUN_ELSEWHERE]
GRIDS = [line for line in HERE if "/run_all.py" in line and line not in (LISTING, CHECK)]
MEASURED = [line for line in HERE if " benchmarks/results/" in line]


class Parsed(Exception):
    """Raised in place of what would be done after the arguments were read."""


@pytest.mark.parametrize("line", BENCHMARKS)
def test_the_arguments_of_a_benchmark_are_accepted(line, monkeypatch):
    """As the page has them, before anything is made smaller."""
    read = argparse.ArgumentParser.parse_args

    def parse_and_leave(parser, *given):
        read(parser, *given)
        raise Parsed

    words = shlex.split(line)[1:]
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_and_leave)
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    with pytest.raises(Parsed):
        runpy.run_path(str(ROOT / words[0]), run_name="__main__")


def test_every_benchmark_of_a_page_is_run_by_a_test_below():
    """One with a script of a new name must not fall between the groups."""
    assert sorted([LISTING, CHECK, *GRIDS, *MEASURED]) == HERE


# ---------------------------------------------------------------------------------------------------------------- grids


class InThisProcess:
    """Runs the jobs of a grid one by one, at once: an import of torch for each would take most of the time."""

    at_once = 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, job: Job) -> Future[Outcome]:
        job.folder.parent.mkdir(parents=True, exist_ok=True)
        code = main(list(job.command() or ()))
        future: Future[Outcome] = Future()
        future.set_result(Outcome("" if code == 0 else f"it ended with {code}", seconds=1.0))
        return future


def run_grid(command):
    return run_all.main(shlex.split(command)[2:], lambda _request, _say: InThisProcess())


def test_the_list_of_tables_is_printed(capsys):
    assert run_grid(LISTING) == 0
    assert "linear-main" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("line", GRIDS)
def test_a_grid_ends_with_its_tables_and_its_page(line, tmp_path, monkeypatch, capsys):
    """One that fails in a single cell ends with 1."""
    monkeypatch.chdir(tmp_path)
    assert run_grid(smaller(line)) == 0
    (folder,) = Path("runs").iterdir()
    notes = [note for _, note in read_notes(folder)]
    assert notes
    assert not any(note.error for note in notes)
    assert "demo" in capsys.readouterr().out
    assert (folder / "grid.html").exists()


@pytest.mark.slow
def test_the_gate_compares_real_scores_with_a_reference(tmp_path, monkeypatch, capsys):
    """In miniature, so that its interval is all there is; test_grid_gates.py has scores that leave theirs."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "reference.json"
    file.write_text(json.dumps({"cmsc": {"value": 0.5, "low": 0.0, "high": 1.0}}), encoding="utf-8")
    monkeypatch.setattr(story, "REFERENCE", file)
    for module in (story, reference):
        monkeypatch.setattr(module, "reference_repeats", smoke.smoke_repeats)
    assert run_grid(CHECK) == 0
    assert "recorded 0.500 [0.000, 1.000]: holds" in capsys.readouterr().out


# ---------------------------------------------------------------------------------------------------------------- times


def run_script(command, monkeypatch):
    """What a script's `main` returns, given these words."""
    words = shlex.split(command)[1:]
    monkeypatch.setattr(sys, "argv", words)
    return importlib.import_module(Path(words[0]).stem).main()


@pytest.mark.slow
@pytest.mark.parametrize("line", MEASURED)
def test_what_is_measured_is_kept_with_its_command(line, tmp_path, monkeypatch):
    """Under the name of the page, in another folder: the results of the checkout stay."""
    monkeypatch.chdir(tmp_path)
    Path("benchmarks/results").mkdir(parents=True)
    command = smaller(line)
    assert run_script(command, monkeypatch) == 0
    (file,) = Path("benchmarks/results").iterdir()
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["command"] == command
    assert len(found) > 3
