"""What a grid warns of before it runs. tests/benchmarks/test_grid_story.py has whole grids."""

from __future__ import annotations

from pathlib import Path

from begun_folders import begin_folder
from grid_folders import write_run

from clocs_core.contracts.grids import Condition
from clocs_core.grids.available_data import open_shelf
from clocs_core.grids.axes import Repeats
from clocs_core.grids.carry_out import keep_possible
from clocs_core.grids.definition import Grid
from clocs_core.grids.presets import Preset
from clocs_core.plugins.session import installed_session

ONE = Condition(method="cmsc", pretraining="ptbxl", downstream="ptbxl", protocol="linear")
GRID = Grid(presets=(Preset(name="small", title="Small", conditions=(ONE,)),), repeats=Repeats(seeds=(0, 1)))


def told(out: Path, root: Path) -> list[str]:
    """All warnings of a grid that reads ptbxl from a folder."""
    root.mkdir(exist_ok=True)
    (root / "one.dat").touch()
    said: list[str] = []
    shelf = open_shelf(installed_session().catalogue, None, {"ptbxl": str(root)})
    assert keep_possible(GRID, shelf, out, said.append) == GRID
    return said


def test_jobs_that_have_read_another_folder_are_told_of_once(tmp_path: Path) -> None:
    """They are done, and would stand in one table with those of other recordings."""
    out = tmp_path / "grid"
    assert told(out, tmp_path / "raw") == []
    for run in GRID.repeats.runs(ONE):
        begin_folder(write_run(out, run), {"data": {"root": str(tmp_path / "raw")}})
    assert told(out, tmp_path / "raw") == []
    (tmp_path / "link").symlink_to(tmp_path / "raw")
    assert told(out, tmp_path / "link") == []
    (said,) = told(out, tmp_path / "filtered")
    assert f"have read ptbxl from {tmp_path / 'raw'}" in said
    assert f"not made again from {tmp_path / 'filtered'}" in said


def test_jobs_that_have_failed_are_made_again_from_the_folder_that_is_named_now(tmp_path: Path) -> None:
    out = tmp_path / "grid"
    for run in GRID.repeats.runs(ONE):
        begin_folder(write_run(out, run, error="no room"), {"data": {"root": str(tmp_path / "raw")}})
    assert told(out, tmp_path / "filtered") == []
