"""Carry out a grid: leave out what lacks its data, find what is missing, run it, and make the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from clocs_core.artifacts.run_folder import RunFolder
from clocs_core.contracts.grids import Condition
from clocs_core.contracts.jobs import Executor
from clocs_core.errors import RunFolderError
from clocs_core.files import sweep
from clocs_core.grids.available_data import Shelf, leave_out_absent
from clocs_core.grids.commit import source_commit
from clocs_core.grids.definition import Grid, save_grid
from clocs_core.grids.draws_ahead import drawing_ahead
from clocs_core.grids.invocations import Call, noted
from clocs_core.grids.jobs import Place
from clocs_core.grids.machine import describe_machine
from clocs_core.grids.measure import Inputs
from clocs_core.grids.notes import Stamp, read_notes
from clocs_core.grids.pace import say_duration
from clocs_core.grids.presets import Preset, wanted_cells, wanted_runs
from clocs_core.grids.results import Results
from clocs_core.grids.schedule import GridDisplay, Known, Work, missing_work, run_work, seconds_left
from clocs_core.settings.toml_file import read_tables

if TYPE_CHECKING:
    from clocs_core.grids.exported_pages import Count
    from clocs_core.grids.page import Page
    from clocs_core.plugins.catalogue import Catalogue


def keep_possible(grid: Grid, shelf: Shelf, out: Path, warn: Callable[[str], None]) -> Grid:
    """Leave out conditions that need data which is not here, with a warning. Raises DataNotFound if none is left.

    Warns too where jobs in `out` have read a data set from another folder: they are done, and not made again.
    """
    for name, folder in _read_elsewhere(shelf, out):
        warn(
            f"finished jobs in {out} have read {name} from {folder}, and are not made again from {shelf.roots[name]}. "
            "Should these be other recordings, choose another folder for the grid."
        )
    return _keep(grid, shelf, warn, lambda one, preset: False)


def keep_told(grid: Grid, shelf: Shelf, out: Path, warn: Callable[[str], None]) -> Grid:
    """Keep what was run, here or elsewhere, for a page: it needs no data. Raises RunFolderError without any results."""
    results = Results(out)
    if results.is_empty:
        raise RunFolderError(
            f"There is nothing to report: {out} holds no job of a grid. Run the grid first, or say where its folder is."
        )

    def is_told(one: Condition, preset: Preset) -> bool:
        if preset.needs_scores:
            return any(results.cell(cell) for cell in grid.repeats.cells(one))
        return any(results.pretraining(run) for run in grid.repeats.runs(one))

    return _keep(grid, shelf, warn, is_told)


def find_work(grid: Grid, out: Path) -> Work:
    """Find the jobs that are left, and sweep away files that a killed grid was writing."""
    for folder in (out / "invocations", out / "pretrained", *out.glob("evaluated/*")):
        sweep(folder)
    cells, runs = wanted_cells(grid.presets, grid.repeats), wanted_runs(grid.presets, grid.repeats)
    return missing_work(cells, runs, Results(out))


def say_work(grid: Grid, work: Work, out: Path, at_once: int, known: Known) -> str:
    """Say how many cells and jobs there are, and how long the jobs will take."""
    notes = [note for _, note in read_notes(out)]
    took = say_duration(seconds_left(work.pieces(), notes, at_once, known))
    cells = len(wanted_cells(grid.presets, grid.repeats))
    return f"{cells:,} cells; {len(work):,} jobs to do, {at_once} at once: {took}"


def run_grid(
    grid: Grid, work: Work, place: Place, executor: Executor, call: Call, show: GridDisplay, known: Known
) -> None:
    """Do the work of a grid, and keep what was asked for and how the call ended."""
    save_grid(grid, place.out)
    stamp = Stamp(source_commit(Path(__file__).parent), call.now, call.mark)
    at_once = executor.at_once
    with (
        noted(call, place.out, at_once, describe_machine()),
        drawing_ahead(grid.measure, place.out, at_once) as scored,
        executor as running,
    ):
        run_work(work, place, running, stamp, show, known, scored)


def make_page(
    grid: Grid, out: Path, catalogue: Catalogue, call: Call, at_once: int, tick: Callable[[int, int], None]
) -> Page:
    """Summarise what is done, and write grid.html, grid.md and the figures. at_once: threads that draw samples."""
    from clocs_core.grids.page import build_page, write_page  # draws and computes: seconds of imports

    inputs = Inputs(
        repeats=grid.repeats,
        results=Results(out),
        measure=grid.measure,
        published={item.offer.name: item.offer.published for item in catalogue.grids},
        at_once=at_once,
        tick=tick,
    )
    page = build_page(grid, inputs, call)
    write_page(page, out)
    return page


def make_pages(
    grid: Grid, exports: Sequence[Path], catalogue: Catalogue, folder: Path, said: Callable[[str], None]
) -> dict[str, Count]:
    """Write a page for each table from the files of exports, and return how much of each is made.

    said: is told of each table when it is written, in a line.
    """
    from clocs_core.grids.exported_files import read_kept
    from clocs_core.grids.exported_pages import write_kept_pages

    published = {item.offer.name: item.offer.published for item in catalogue.grids}
    return write_kept_pages(grid, read_kept(exports, grid.measure), published, folder, said)


def write_progress(grid: Grid, out: Path, call: Call) -> None:
    """Write the page of a grid that runs: how every cell stands, without tables and figures."""
    from clocs_core.grids.page import build_progress, write_page

    write_page(build_progress(grid, out, call), out)


def _read_elsewhere(shelf: Shelf, out: Path) -> Iterator[tuple[str, str]]:
    """Find data sets that a finished job has read from another folder than asked for. One job of each is looked at."""
    left = set(shelf.roots)
    for folder, note in read_notes(out) if left else ():
        if not left:
            return
        name = note.cells[0].downstream if note.cells else note.run.dataset
        job = RunFolder(folder)
        if name in left and job.report.is_file() and job.settings.is_file():
            left.remove(name)
            was = read_tables(job.settings).get("data", {}).get("root")
            if was and Path(str(was)).resolve() != Path(shelf.roots[name]).resolve():
                yield name, str(was)


def _keep(grid: Grid, shelf: Shelf, warn: Callable[[str], None], is_known: Callable[[Condition, Preset], bool]) -> Grid:
    presets, absent = leave_out_absent(grid.presets, shelf, is_known)
    for name in absent:
        warn(f"{name} is not on this machine; what needs it is left out.")
    return attrs.evolve(grid, presets=presets)
