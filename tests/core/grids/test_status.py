"""How the cells of a grid stand, from their folders alone."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest
from grid_folders import write_evaluation, write_run

from clocs_core.contracts.grids import Condition
from clocs_core.errors import RunFolderError
from clocs_core.grids.axes import Repeats
from clocs_core.grids.definition import Grid, is_grid, load_grid, save_grid
from clocs_core.grids.jobs import Place, evaluation_folder, evaluation_job
from clocs_core.grids.presets import Preset
from clocs_core.grids.results import Results
from clocs_core.grids.status import count_states, states_of

ONE = Condition(method="cmsc", pretraining="demo", downstream="demo", protocol="linear", name="mine")
SEEDS = Repeats(seeds=(0, 1, 2, 3, 4))
GRID = Grid(presets=(Preset(name="small", title="Small", conditions=(ONE,), claim=("a", "b")),), repeats=SEEDS)


def test_a_cell_is_done_failed_running_or_missing_as_its_folder_says(tmp_path: Path) -> None:
    """No list beside the folders could be left behind by a kill."""
    cells = SEEDS.cells(ONE)
    write_evaluation(tmp_path, [cells[0]])
    write_evaluation(tmp_path, [cells[1]], error="Error: broke")
    write_run(tmp_path, cells[2].pretraining)
    write_run(tmp_path, cells[3].pretraining, error="Error: no memory")
    states = states_of(GRID, Results(tmp_path))
    assert [(one.state, one.why) for one in states] == [
        ("done", ""),
        ("failed", "Error: broke"),
        ("missing", "its encoder is trained; it was not evaluated yet"),
        ("failed", "Error: no memory"),
        ("missing", "it was not begun yet"),
    ]
    assert count_states(states) == "5 cells: 1 done, 2 failed, 2 missing"
    assert states[0].words == ("small", "mine", "demo", "linear", "4", "128", "0.5", "test", "0", "0")
    job = evaluation_job([cells[2]], Place(out=tmp_path))
    job.folder.parent.mkdir(parents=True, exist_ok=True)
    with open(job.lock, "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert states_of(GRID, Results(tmp_path))[2].state == "running"
    folder = evaluation_folder(cells[2], "0.5", tmp_path)
    folder.mkdir(parents=True)
    (folder / "settings.toml").touch()
    assert states_of(GRID, Results(tmp_path))[2].why == "it was stopped; the same command goes on from there"


def test_pre_trainings_that_are_looked_at_for_themselves_are_cells_too(tmp_path: Path) -> None:
    """Of a table of distances, which scores nothing."""
    grid = Grid(presets=(Preset(name="far", title="Far", conditions=(ONE,), needs_scores=False),), repeats=SEEDS)
    write_run(tmp_path, SEEDS.runs(ONE)[1])
    assert [one.state for one in states_of(grid, Results(tmp_path))].index("done") == 1


def test_what_was_asked_for_is_read_back_as_it_was(tmp_path: Path) -> None:
    """A folder alone is enough for a page, on another machine too."""
    assert not is_grid(tmp_path)
    save_grid(GRID, tmp_path)
    assert load_grid(tmp_path) == GRID
    (tmp_path / "grid.json").write_text("{")
    with pytest.raises(RunFolderError, match=r"grid\.json is not JSON"):
        load_grid(tmp_path)
    with pytest.raises(RunFolderError, match="is not the folder of a grid"):
        load_grid(tmp_path / "none")
