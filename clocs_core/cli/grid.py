"""`clocs grid`: run grids of experiments, and show, page or export what they found."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from clocs_core.cli.display import LOUDNESS
from clocs_core.cli.engines import choose_engine, with_engine
from clocs_core.cli.flags import DATA_ROOT_HELP
from clocs_core.cli.output import echo
from clocs_core.cli.session import pass_session
from clocs_core.contracts.result_offers import IDENTIFICATION, RECALL_AT_1, RECALL_AT_5
from clocs_core.errors import RunFolderError, SettingsError
from clocs_core.files import write_atomically
from clocs_core.plugins.session import Session
from clocs_core.progress import COMMAND

if TYPE_CHECKING:
    from clocs_core.grids.definition import Grid
    from clocs_core.grids.display import ConsoleGrid
    from clocs_core.grids.invocations import Call
    from clocs_core.grids.jobs import Place
    from clocs_core.grids.page import Page


@click.group("grid")
def grid_group() -> None:
    """Run a grid of experiments; show, page or export it."""


_AXIS = click.option(
    "--axis",
    multiple=True,
    metavar="NAME=A,B",
    help="Set an axis: method, dataset, downstream, protocol, leads, embedding_dim, label_fraction, part, exposure, "
    "seed, split_seed, or an option of the pre-training. A + within a value is a comma. Repeatable.",
)
_ASKED = click.option(
    "--asked",
    multiple=True,
    metavar="FILE_OR_NAME",
    help="The tables: a TOML file or names, as `clocs grid run` takes them. Default: those that were run last.",
)


@grid_group.command("list")
@click.argument("what", metavar="[FILE_OR_NAME…]", nargs=-1)
@_AXIS
@click.option("--out", metavar="FOLDER", help="Folder of a grid: count what is made there.")
@click.option("--data-root", metavar="FOLDER", help=DATA_ROOT_HELP)
@pass_session
def list_command(
    session: Session, what: tuple[str, ...], axis: tuple[str, ...], out: str | None, data_root: str | None
) -> None:
    """List the grids that plugins offer, or the tables of a file, with their size and the data that each needs."""
    from clocs_core.grids.available_data import open_shelf
    from clocs_core.grids.axes import Repeats
    from clocs_core.grids.definition import Grid
    from clocs_core.grids.listing import list_presets
    from clocs_core.grids.presets import Preset
    from clocs_core.grids.results import Results

    shelf = open_shelf(session.catalogue, data_root, {})
    offered = tuple(item.offer.name for item in session.catalogue.grids)
    if what or axis:
        grid = _settle(session, what or offered, axis)
    else:
        grid = Grid(presets=tuple(Preset.of(item.offer) for item in session.catalogue.grids), repeats=Repeats())
    echo(list_presets(grid.presets, shelf, grid.repeats, Results(Path(out)) if out else None))


@grid_group.command("run")
@click.argument("what", metavar="FILE_OR_NAME…", nargs=-1, required=True)
@click.option("--out", metavar="FOLDER", help="Folder of the grid. Default: runs/grids/NAME.")
@_AXIS
@click.option("--only", metavar="A,B", default="", help="Run these tables alone, of all that were named.")
@click.option("--dry-run", is_flag=True, help="List the cells and say how long they will take.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Jobs at a time.")
@click.option(
    "--runs-per-job",
    type=click.IntRange(1, 64),
    help="Pre-trainings of a data set that a job makes together, on a GPU at the same time, on one copy of the frames; "
    "and evaluations that it makes one after the other. Default: 5 on a GPU, 1 on a CPU.",
)
@click.option("--threads", type=click.IntRange(1), help="Threads of a job. Default: cores divided by jobs.")
@with_engine
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="Device of the jobs.")
@click.option("--workers", type=click.IntRange(1), default=1, help="Processes of a job that read recordings.")
@click.option(
    "--pictures", is_flag=True, help="Draw the pictures of every run and evaluation, which takes seconds for each."
)
@click.option("--data-root", metavar="FOLDER", help=DATA_ROOT_HELP)
@click.option("--root", multiple=True, metavar="NAME=PATH", help="A data set's own folder. Repeatable.")
@click.option("--encoder", default="", help="Encoder of the method `random`.")
@click.option(
    "--metric", help="Metric that is shown. Default: auroc; recall_at_1 where all rows are of patient-identification."
)
@click.option(
    "--level",
    type=click.Choice(["frame", "record"]),
    help="Scores of frames or recordings. Default: frame; record where all protocols score recordings alone.",
)
@click.option("--resamples", type=click.IntRange(1), default=1000, help="Bootstrap samples of patients.")
@pass_session
@click.pass_context
def run_command(context: click.Context, session: Session, /, what: tuple[str, ...], **given: Any) -> int:
    """Run what is missing of a grid, and make its page.

    FILE_OR_NAME is a TOML file with the axes of a grid, or the name of a grid that a plugin offers; several names make
    one page. What is done is read from the folders of the runs: the same command goes on after an interruption, and
    tries again what failed.
    """
    from clocs_core.grids.available_data import open_shelf
    from clocs_core.grids.carry_out import find_work, keep_possible, make_page, run_grid, say_work
    from clocs_core.grids.listing import list_cells
    from clocs_core.grids.presets import wanted_cells
    from clocs_core.grids.results import Results

    flags = _Flags(**given)
    engine = choose_engine(session, flags.engine, flags.address, flags.engine_option)
    grid = _asked(session, what, flags)
    out = Path(flags.out or Path("runs", "grids", "-".join(preset.name for preset in grid.presets))).absolute()
    shelf = open_shelf(session.catalogue, flags.data_root, _roots(flags.root))
    grid = keep_possible(grid, shelf, out, lambda text: echo(f"Warning: {text}", err=True))
    work = find_work(grid, out)
    echo(say_work(grid, work, out, flags.jobs, {}), err=True)
    if flags.dry_run:
        echo(list_cells(wanted_cells(grid.presets, grid.repeats), Results(out)))
        return 0
    signal.signal(signal.SIGINT, signal.default_int_handler)  # `nohup … &` ignores it; it asks jobs to save themselves
    call = _call()
    show = _display(context, grid, out, call)
    with show:
        threads = flags.threads or max(1, (os.cpu_count() or 1) // flags.jobs)
        executor = engine.open(flags.jobs, threads, show.say)
        place = attrs.evolve(_place(flags, out), presets=shelf.presets())
        run_grid(grid, work, place, executor, call, show, {})
        page = make_page(grid, out, session.catalogue, call, flags.jobs, show.tick)
    return _tell(page, out)


@grid_group.command("status")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--all", "every", is_flag=True, help="List the cells that are done, too.")
def status_command(out: Path, every: bool) -> int:
    """Count the cells of a grid, and say which are missing and why.

    OUT is the folder of a grid; the grid may be running. Ends with 1 where something failed.
    """
    from clocs_core.grids.definition import load_grid
    from clocs_core.grids.results import Results
    from clocs_core.grids.status import HEADINGS, count_states, states_of
    from clocs_core.report.terminal import Terminal

    states = states_of(load_grid(out), Results(out))
    echo(count_states(states))
    rows = [(one.state, *one.words, one.why) for one in states if every or one.state != "done"]
    if rows:
        Terminal(200).print_table(("state", *HEADINGS, "why"), rows)
    return 1 if any(one.state == "failed" for one in states) else 0


@grid_group.command("page")
@click.argument("out", metavar="OUT…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Threads that draw samples.")
@click.option(
    "--pages", type=click.Path(path_type=Path), help="Folder to write a page for each table to, from exports."
)
@_ASKED
@pass_session
@click.pass_context
def page_command(
    context: click.Context,
    session: Session,
    out: tuple[Path, ...],
    jobs: int,
    pages: Path | None,
    asked: tuple[str, ...],
) -> int:
    """Make the page of a grid from its folders as they stand, without running anything.

    OUT is the folder of a grid, here or copied from another machine; the grid may be running. With --pages, OUT are
    folders that `clocs grid export --folder` wrote: their files alone are read.
    """
    from clocs_core.grids.carry_out import make_page, make_pages
    from clocs_core.grids.definition import load_grid

    if pages is not None:
        if not asked:
            raise SettingsError("Say which tables to make pages of: --asked FILE_OR_NAME.")
        make_pages(_settle(session, asked, ()), out, session.catalogue, pages, echo)
        return 0
    if len(out) > 1 or asked:
        raise SettingsError("Without --pages, name the folder of one grid alone.")
    grid, call = load_grid(out[0]), _call()
    show = _display(context, grid, out[0], call)
    with show:
        page = make_page(grid, out[0], session.catalogue, call, jobs, show.tick)
    return _tell(page, out[0])


@grid_group.command("export")
@click.argument("out", metavar="OUT…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--csv", "file", type=click.Path(path_type=Path), help="The .csv file to write, with every score.")
@click.option(
    "--folder", type=click.Path(path_type=Path), help="Folder for the small files that pages can be made from."
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Threads that draw samples.")
@_ASKED
@pass_session
def export_command(
    session: Session, out: tuple[Path, ...], file: Path | None, folder: Path | None, jobs: int, asked: tuple[str, ...]
) -> None:
    """Write every score of one or more grids as a line of a .csv file, or all that pages need."""
    from clocs_core.grids.definition import load_grid
    from clocs_core.grids.export import as_csv, score_rows, write_export
    from clocs_core.grids.measure import Inputs
    from clocs_core.grids.results import Results

    for one in out:
        if Results(one).is_empty:
            raise RunFolderError(f"{one} holds no job of a grid. `clocs grid run` makes one.")
    if (file is None) == (folder is None) or (folder is not None and len(out) > 1):
        raise SettingsError("Give --csv FILE, or --folder FOLDER with one OUT.")
    if file is not None:
        rows = score_rows(out)
        write_atomically(file, as_csv(rows).encode())
        echo(f"{len(rows):,} scores: {file}")
    elif folder is not None:
        grid = _settle(session, asked, ()) if asked else load_grid(out[0])
        inputs = Inputs(repeats=grid.repeats, results=Results(out[0]), measure=grid.measure, at_once=jobs)
        echo(f"{write_export(grid, inputs, folder):,} scores: {folder}")


@attrs.frozen(kw_only=True)
class _Flags:
    """The flags of `clocs grid run`."""

    out: str | None
    axis: tuple[str, ...]
    only: str
    dry_run: bool
    jobs: int
    runs_per_job: int | None
    threads: int | None
    engine: str
    address: str | None
    engine_option: tuple[str, ...]
    device: str
    workers: int
    pictures: bool
    data_root: str | None
    root: tuple[str, ...]
    encoder: str
    metric: str | None
    level: str | None
    resamples: int


def _asked(session: Session, what: tuple[str, ...], flags: _Flags) -> Grid:
    from clocs_core.grids.measure import Measure
    from clocs_core.plan.protocols import find_protocol

    grid = _settle(session, what, flags.axis, flags.encoder, tuple(filter(None, flags.only.split(","))))
    protocols = {one.protocol for preset in grid.presets for one in preset.conditions}
    rows = {find_protocol(session.catalogue, name).offer.rows for name in protocols}
    metric = flags.metric or (RECALL_AT_1 if protocols == {IDENTIFICATION} else "auroc")
    if metric not in (RECALL_AT_1, RECALL_AT_5):
        session.catalogue.metrics.get(metric)
    level = flags.level or ("record" if rows == {"record"} else "frame")
    return attrs.evolve(grid, measure=Measure(metric, level, flags.resamples))


def _settle(
    session: Session, what: tuple[str, ...], axis: tuple[str, ...], encoder: str = "", only: Sequence[str] = ()
) -> Grid:
    """Read the grid of a file, or of names of offered grids."""
    from clocs_core.grids.grid_file import Asked, read_axes, read_grid_file, settle_grid

    files = [name for name in what if name.endswith(".toml") or os.sep in name]
    if files and len(what) > 1:
        raise SettingsError(f"Give one file, or names of grids, got {', '.join(what)}.")
    asked = read_grid_file(Path(files[0])) if files else Asked(name="-".join(what), grids=what)
    asked = attrs.evolve(asked, axes={**asked.axes, **read_axes(axis)}, encoder=encoder or asked.encoder)
    return settle_grid(asked, session.catalogue, only)


def _roots(given: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    for name, equals, path in pairs:
        if not (name and equals and path):
            raise SettingsError(f"--root takes NAME=PATH, such as mine=/data/mine, got {name + equals + path!r}.")
    return {name: str(Path(path).expanduser().absolute()) for name, _, path in pairs}


def _place(flags: _Flags, out: Path) -> Place:
    from clocs_core.grids.jobs import Place
    from clocs_core.grids.machine import runs_per_job

    above = str(Path(flags.data_root).absolute()) if flags.data_root else None
    return Place(
        out=out,
        device=flags.device,
        workers=flags.workers,
        data_root=above,
        roots=_roots(flags.root),
        runs_per_job=flags.runs_per_job or runs_per_job(flags.device),
        pictures=flags.pictures,
    )


def _call() -> Call:
    from clocs_core.grids.invocations import Call

    return Call(COMMAND.get(), lambda: datetime.now(UTC))


def _display(context: click.Context, grid: Grid, out: Path, call: Call) -> ConsoleGrid:
    """Show the progress of a grid here, and on its page now and then."""
    from clocs_core.grids.carry_out import write_progress
    from clocs_core.grids.display import ConsoleGrid

    quiet = context.meta.get(LOUDNESS) == "quiet"
    return ConsoleGrid(quiet=quiet, keep=lambda: write_progress(grid, out, call))


def _tell(page: Page, out: Path) -> int:
    echo(page.markdown_tables(), nl=False)
    echo(f"Page: {out / 'grid.html'}", err=True)
    for name, why in page.failures:
        echo(f"Error: {name} failed: {why.rstrip('.')}. The same command tries it again.", err=True)
    return 1 if page.failures else 0
