"""A grid from its command line to its page, with a command that takes 50 ms in place of clocs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest
import run_all

from clocs_core.grids.notes import read_notes

HERE = Path(__file__).parent
FAKE = f"{sys.executable} -S -E {HERE / 'fake_grid_command.py'}"
GRID = ("--methods", "cmsc,simclr", "--datasets", "demo", "--seeds", "2", "--jobs", "2")


def begun(log: Path) -> list[str]:
    return [line.split(" ", 1)[1] for line in log.read_text().splitlines() if line.startswith("begin")]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_figures: None) -> Path:
    """A folder for the grid, with a log of what the command was asked for."""
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    (tmp_path / "log").touch()
    return tmp_path


def grid(place: Path, *more: str) -> int:
    return run_all.main([*GRID, "--out", str(place / "out"), "--command", FAKE, *more])


def test_a_second_call_runs_nothing_and_prints_the_same(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four pre-trainings and their four evaluations; then their folders say that they are done."""
    assert grid(place) == 0
    first, jobs = capsys.readouterr().out, begun(place / "log")
    assert len(jobs) == len(set(jobs)) == 8
    assert grid(place) == 0
    assert begun(place / "log") == jobs
    assert capsys.readouterr().out == first
    assert "| cmsc | 0." in first


def test_tables_go_to_a_file_while_progress_is_on_a_terminal(place: Path) -> None:
    """A bar on a terminal takes what is printed while it stands."""
    assert grid(place) == 0
    ours, theirs = os.openpty()
    reader = Thread(target=read_terminal, args=(ours,))  # a terminal that nobody reads holds a slow command up
    reader.start()
    command = [sys.executable, str(HERE.parents[1] / "benchmarks" / "run_all.py"), *GRID, "--out", str(place / "out")]
    try:
        done = subprocess.run([*command, "--report-only"], stdout=subprocess.PIPE, stderr=theirs, text=True, check=True)
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)
    assert "| cmsc |" in done.stdout


def read_terminal(ours: int) -> None:
    """Read what is written to a terminal until its last writer has closed it."""
    with suppress(OSError):  # Linux ends the reading this way
        while os.read(ours, 65536):
            pass


def test_more_seeds_and_shares_run_only_what_is_new(place: Path) -> None:
    """Pre-training is shared: a new F needs no new encoder, a new seed needs one for each method."""
    assert grid(place) == 0
    before = len(begun(place / "log"))
    assert grid(place, "--label-fractions", "0.5,1") == 0
    new = begun(place / "log")[before:]
    assert sorted(name.rsplit("-", 1)[0] for name in new) == ["demo-linear-test-F1"] * 4
    before += len(new)
    assert grid(place, "--seeds", "3") == 0
    assert len(begun(place / "log")) == before + 4
    seconds = [note.seconds for _, note in read_notes(place / "out")]
    assert len(seconds) == before + 4
    assert all(seconds)  # an encoder that is there keeps the time of its own training


def test_the_untrained_encoder_is_a_method_that_needs_no_pre_training(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two splits of two seeds: four evaluations, no run, one line; the sd of each source apart."""
    words = ("--methods", "random", "--downstream", "demo", "--seeds", "2", "--splits", "2", "--label-fractions", "0.5")
    assert run_all.main([*words, "--out", str(place / "out"), "--command", FAKE]) == 0
    jobs = begun(place / "log")
    assert len(jobs) == 4
    assert all(name.startswith("demo-finetune-test-F0.5") for name in jobs)
    printed = capsys.readouterr().out
    (line,) = [line for line in printed.splitlines() if line.startswith("| random")]
    assert line.endswith("| 4 |")  # all of them
    assert "sd over splits" in printed


def test_a_deleted_encoder_is_trained_again_only_where_it_is_needed(place: Path) -> None:
    """What was scored stays scored; a new evaluation needs the file."""
    assert grid(place) == 0
    before = len(begun(place / "log"))
    for folder in (place / "out" / "pretrained").iterdir():
        if folder.is_dir():
            subprocess.run(["rm", "-r", str(folder)], check=True)
    assert grid(place) == 0
    assert len(begun(place / "log")) == before
    assert grid(place, "--label-fractions", "0.25") == 0
    assert len(begun(place / "log")) == before + 8


def test_a_failed_cell_is_recorded_and_the_others_go_on(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One broken data set must not cost a night; and what failed is tried again when it is asked for again."""
    monkeypatch.setenv("FAKE_FAIL", "simclr-demo")
    assert grid(place) == 1
    failed = [note for _, note in read_notes(place / "out") if note.error]
    assert len(failed) == 4  # two pre-trainings, and the two evaluations that could not be tried
    assert all("Error: made to fail. (simclr-demo" in note.error for note in failed)
    assert sum(note.error.startswith("Not tried: its pre-training failed") for note in failed) == 2
    shown = capsys.readouterr()
    assert "| simclr |  |  |  | 0 of 2, failed |" in shown.out
    assert "failed: simclr-demo" in shown.err
    assert "made to fail" in (place / "out" / "grid.html").read_text()
    monkeypatch.delenv("FAKE_FAIL")
    assert grid(place) == 0
    assert "| 2 |" in capsys.readouterr().out
    assert "made to fail" not in (place / "out" / "grid.html").read_text()


def test_a_dry_run_lists_the_cells_and_runs_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With how long it will take: unknown at first, and then from what jobs took."""
    assert grid(place, "--dry-run") == 0
    said = capsys.readouterr()
    assert "4 cells; 8 jobs to do, 2 at once: unknown" in said.err
    assert said.out.count("missing cmsc on demo, leads 4, E 128, seed") == 2
    assert begun(place / "log") == []
    assert grid(place, "--seeds", "1") == 0
    capsys.readouterr()
    assert grid(place, "--dry-run") == 0
    said = capsys.readouterr()
    assert re.search(r"4 cells; 4 jobs to do, 2 at once: \d s", said.err)
    assert said.out.count("done    ") == 2


def test_only_the_report_is_made_where_that_is_asked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table can be looked at while it fills, from another terminal."""
    assert grid(place, "--seeds", "1") == 0
    before = begun(place / "log")
    capsys.readouterr()
    assert grid(place, "--report-only") == 0
    assert begun(place / "log") == before
    assert "| 1 of 2 |" in capsys.readouterr().out


def test_a_report_needs_the_folders_and_no_recordings(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page of a grid that ran on another machine, or whose recordings are gone."""
    own = place / "recordings"
    own.mkdir()
    (own / "one.dat").touch()
    arguments = ["--methods", "cmsc", "--datasets", "ptbxl", "--downstream", "ptbxl,cardiology", "--seeds", "1"]
    arguments += ["--data-root", str(place / "none"), "--out", str(place / "out"), "--command", FAKE]
    assert run_all.main([*arguments, "--root", f"ptbxl={own}"]) == 0
    first = capsys.readouterr().out
    assert run_all.main([*arguments, "--report-only"]) == 0
    said = capsys.readouterr()
    assert said.out == first
    assert "| cmsc | 0." in first
    assert "cardiology is not on this machine" in said.err  # and nothing of it was run
    assert run_all.main([*arguments, "--report-only", "--out", str(place / "other")]) == 2
    assert "There is nothing to report" in capsys.readouterr().err


def test_a_list_says_what_each_table_needs_and_what_is_here(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """And where else the paper's other tables are."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "recording.mat").touch()
    assert run_all.main(["--list", "--data-root", str(tmp_path), "--root", f"cardiology={tmp_path / 'own'}"]) == 0
    said = capsys.readouterr().out
    assert "linear-main  (Table 1, section 6.2)" in said
    assert "70 pre-trainings, 70 cells with 5 seeds" in said
    assert "data: chapman (not found), cardiology (folder found)" in said
    assert "Tables 3, 4" in said


def test_a_list_that_nobody_reads_to_its_end_is_no_error(tmp_path: Path) -> None:
    """As in `run_all.py --list | head`."""
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, run_all.__file__, "--list", "--data-root", str(tmp_path)]
    with open(write, "w") as closed:
        done = subprocess.run(words, stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Nothing was asked for: name a table"),
        (("linear-mian",), "Did you mean 'linear-main'"),
        (("--datasets", "demmo"), "demo"),
        (("--datasets", "demo", "--methods", "cmsk"), "Did you mean 'cmsc'"),
        (("--datasets", "demo", "--embedding-dims", "32,x"), "--embedding-dims takes numbers"),
        (("--datasets", "demo", "--protocols", "zero-shot"), "No protocol 'zero-shot'"),
        (("--datasets", "demo", "--root", "ptbxl"), "--root takes NAME=PATH"),
        (("--datasets", "demo", "--embedding-dims", "0"), "E is a number from 1, got 0"),
        (("--datasets", "demo", "--label-fractions", "0.5,2"), "at most 1, got 2"),
        (("--datasets", "demo", "--label-fractions", "nan"), "at most 1, got nan"),
        (("effect-of-labels", "--datasets", "cardiology"), "Nothing is left of effect-of-labels on cardiology"),
        (("--datasets", "demo", "--metric", "aurok"), "Did you mean 'auroc'"),
        (("--smoke", "--metric", "aurok"), "Did you mean 'auroc'"),
        (("--datasets", "demo", "--pretrain-option", "epochs"), "--pretrain-option takes NAME=VALUE"),
        (("--datasets", "demo", "--command", "'python"), "--command takes words"),
        (("linear-main",), "chapman, physionet2020 are not on this machine"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    """Before anything is run: a grid of failures is expensive."""
    out = tmp_path / "out"
    assert run_all.main([*arguments, "--data-root", str(tmp_path / "none"), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("Error: ")
    assert said.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize("count", ["0", "-1", "some"])
def test_intervals_cannot_be_left_out(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A table without intervals over patients claims more than it knows; -1 came out after the grid had run."""
    with pytest.raises(SystemExit, match="2"):
        run_all.main(["--datasets", "demo", "--resamples", count])
    assert "argument --resamples" in capsys.readouterr().err


def test_what_lacks_its_data_is_left_out_and_said(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half of a table is better than none."""
    arguments = ["linear-main", "--datasets", "chapman=demo", "--seeds", "1", "--command", FAKE]
    assert run_all.main([*arguments, "--data-root", str(place / "none"), "--out", str(place / "out")]) == 0
    said = capsys.readouterr()
    assert "Warning: physionet2020 is not on this machine" in said.err
    assert "demo (for chapman)" in said.out
    assert "0.896 ± 0.005" in said.out
    assert "physionet2020" not in said.out


def test_the_list_needs_no_torch() -> None:
    """Looking what there is should take no seconds of imports."""
    heavy = "any(name in sys.modules for name in ('torch', 'matplotlib'))"
    code = f"import sys, run_all; run_all.main(['--list']); sys.exit({heavy})"
    folder = HERE.parents[1] / "benchmarks"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
