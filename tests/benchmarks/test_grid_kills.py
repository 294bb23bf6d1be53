"""A grid that is killed again and again ends as one that nobody touched."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from clocs_core.grids.invocations import read_invocations
from clocs_core.grids.notes import read_notes

HERE = Path(__file__).parent
KILLS = 10


def grid_arguments(out: Path) -> list[str]:
    axes = ("--methods", "cmsc,simclr,byol", "--datasets", "demo", "--downstream", "demo", "--seeds", "8")
    more = ("--protocols", "linear,finetune", "--label-fractions", "0.5,1", "--jobs", "2")
    fake = f"{sys.executable} -S -E {HERE / 'fake_grid_command.py'}"
    return [*axes, *more, "--out", str(out), "--command", fake]


def run(out: Path, kills: int, log: Path) -> None:
    environment = {**os.environ, "FAKE_LOG": str(log), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / "grid_killer.py"), str(kills), "3", *grid_arguments(out)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def without_times(page: Path) -> str:
    """The page less the one section that says by which commands, when, and in what time it was made."""
    text = page.read_text(encoding="utf-8")
    section = r'<section id="making">.*?</section>' if page.suffix == ".html" else r"## How this was made\n.*?(?=## )"
    less, found = re.subn(section, "", text, flags=re.DOTALL)
    assert found == 1
    return less


@pytest.mark.slow
def test_a_grid_killed_ten_times_gives_the_same_table_and_repeats_no_finished_cell(tmp_path: Path) -> None:
    """Grids take days; machines are taken away, run out of memory and lose power."""
    run(tmp_path / "whole", 0, tmp_path / "whole.log")
    run(tmp_path / "killed", KILLS, tmp_path / "killed.log")
    for name in ("grid.md", "grid.html"):
        assert without_times(tmp_path / "killed" / name) == without_times(tmp_path / "whole" / name)
    drawn = Path("figures") / "grid.svg"
    assert (tmp_path / "killed" / drawn).read_bytes() == (tmp_path / "whole" / drawn).read_bytes()
    told = [line.split(" ", 1) for line in (tmp_path / "killed.log").read_text().splitlines()]
    ended: set[str] = set()
    for what, folder in told:
        assert folder not in ended, f"{folder} was touched again after it was finished"
        ended |= {folder} if what == "end" else set()
    jobs = 3 * 8 * (1 + 2)
    assert len(ended) == jobs
    folders = [folder for folder, note in read_notes(tmp_path / "killed") if not note.error]
    assert len(folders) == jobs
    assert all((folder / "report.json").exists() for folder in folders)
    (last,) = read_invocations(tmp_path / "killed")  # nothing is written after SIGKILL
    assert 0 < last.done < jobs
    assert f"no line (killed, still running, or of before lines were kept): {jobs - last.done}." in (
        tmp_path / "killed" / "grid.md"
    ).read_text(encoding="utf-8")
