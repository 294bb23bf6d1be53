"""Say of every cell of a grid whether it is done, read from the folders of the jobs."""

from __future__ import annotations

import fcntl
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import attrs

from clocs_core.artifacts.run_folder import RunFolder
from clocs_core.contracts.grids import Condition
from clocs_core.contracts.jobs import Job
from clocs_core.grids.cells import GridCell, Pretraining
from clocs_core.grids.definition import Grid
from clocs_core.grids.jobs import evaluation_folder, pretraining_folder
from clocs_core.grids.presets import Preset
from clocs_core.grids.results import CellResult, Results, RunResult

State = Literal["done", "failed", "running", "missing"]


@attrs.frozen(kw_only=True)
class CellState:
    """One repetition of a condition. folder: where its result is, or will be. why: it is not done."""

    table: str
    condition: Condition
    run: Pretraining
    state: State
    folder: Path
    why: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """The cell in words: its table, its name, and where it stands."""
        one, run = self.condition, self.run
        sets = (
            one.downstream if one.downstream == run.dataset or not run.trains else f"{run.dataset} → {one.downstream}"
        )
        return (
            *(self.table, one.line, sets, one.protocol, one.leads or "own", str(one.embedding_dim)),
            *(f"{one.label_fraction:g}", one.part, str(run.seed), str(run.split_seed)),
        )


HEADINGS = ("table", "cell", "data", "protocol", "leads", "E", "F", "patients", "seed", "split")


def states_of(grid: Grid, results: Results) -> tuple[CellState, ...]:
    """Say how every cell of a grid stands, in the order of its tables."""
    return tuple(_states(grid, results))


def count_states(states: Iterable[CellState]) -> str:
    """Count cells by their state: "12 cells: 9 done, 1 failed, 2 missing"."""
    count = Counter(one.state for one in states)
    order: tuple[State, ...] = ("done", "failed", "running", "missing")
    told = ", ".join(f"{count[state]:,} {state}" for state in order if count[state])
    return f"{count.total():,} cells: {told or 'none'}"


def _states(grid: Grid, results: Results) -> Iterator[CellState]:
    for preset in grid.presets:
        for one in preset.conditions:
            if preset.needs_scores:
                for cell in grid.repeats.cells(one):
                    yield _state_of_cell(preset, one, cell, results)
            else:
                for run in grid.repeats.runs(one):
                    folder = pretraining_folder(run, results.out)
                    yield _state(preset, one, run, folder, results.pretraining(run))


def _state_of_cell(preset: Preset, one: Condition, cell: GridCell, results: Results) -> CellState:
    found = results.cell(cell)
    folder = found.folder if found else evaluation_folder(cell, f"{cell.label_fraction:g}", results.out)
    state = _state(preset, one, cell.pretraining, folder, found)
    if state.state != "missing" or not cell.pretraining.trains:
        return state
    trained = pretraining_folder(cell.pretraining, results.out)
    before = _state(preset, one, cell.pretraining, trained, results.pretraining(cell.pretraining))
    if before.state == "done":
        begun = RunFolder(folder).settings.exists()
        return state if begun else attrs.evolve(state, why="its encoder is trained; it was not evaluated yet")
    return attrs.evolve(before, folder=folder)


def _state(
    preset: Preset, one: Condition, run: Pretraining, folder: Path, found: RunResult | CellResult | None
) -> CellState:
    def state(word: State, why: str = "") -> CellState:
        return CellState(table=preset.name, condition=one, run=run, state=word, folder=folder, why=why)

    if found is not None and found.report is not None:
        return state("done")
    if _is_locked(folder):
        return state("running", "a process works on it")
    if found is not None:
        return state("failed", found.note.error)
    begun = RunFolder(folder).settings.exists()
    return state("missing", "it was stopped; the same command goes on from there" if begun else "it was not begun yet")


def _is_locked(folder: Path) -> bool:
    """Tell whether a process holds the lock of the job that fills this folder."""
    path = Job(name="", folder=folder, fresh=(), resume=()).lock
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
