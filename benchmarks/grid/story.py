"""Carry out a request from beginning to end: choose, find what is missing, run it, summarise, show."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import attrs
from paper_results import PaperResults, load_results
from rich.console import Console

from clocs_core.errors import RunFolderError, SettingsError
from clocs_core.files import sweep
from grid import smoke
from grid.axes import Condition, Repeats, read_method
from grid.cells import RANDOM
from grid.choose import choose_presets, wanted_cells, wanted_runs
from grid.commit import source_commit
from grid.display import ConsoleGrid
from grid.executor import Executor, LocalProcesses
from grid.flags import Mode, Request
from grid.invocations import Call, noted
from grid.jobs import Place
from grid.listing import list_cells, list_presets
from grid.machine import describe_machine
from grid.measure import Inputs
from grid.notes import Stamp, read_notes
from grid.pace import read_known, say_duration
from grid.presence import Shelf, leave_out_absent, open_shelf
from grid.reference import REFERENCE, check, read_reference, record, reference_preset, reference_repeats
from grid.results import Results
from grid.schedule import missing_work, run_work, seconds_left
from grid.tables import Preset, paper_presets

_DISTRIBUTION = "clocs"  # whose methods the gate watches


OpenExecutor = Callable[[Request, Callable[[str], None]], Executor]
"""Makes what runs the jobs of a request. The function is told what a person should know, a line each."""


def local_processes(request: Request, say: Callable[[str], None]) -> Executor:
    """Run jobs as processes of this machine."""
    return LocalProcesses(request.command, request.jobs, time.monotonic, request.threads, say)


def carry_out(request: Request, call: Call, open_executor: OpenExecutor = local_processes) -> int:
    """Do what was asked for. Returns 0, or 1 where cells failed or a score left its interval."""
    paper, shelf = load_results(), open_shelf(request.data_root, request.roots)
    if request.mode == "list":
        print(list_presets(paper_presets(paper), shelf, request.repeats))
        return 0
    asked, repeats = _asked(request, paper, shelf)
    results = Results(request.out)
    for folder in (request.out / "invocations", request.out / "pretrained", *request.out.glob("evaluated/*")):
        sweep(folder)  # what a killed grid was writing
    presets = _possible(asked, repeats, results, request, shelf)
    cells = wanted_cells(presets, repeats)
    work = missing_work(cells, wanted_runs(presets, repeats), results)
    known, notes = _known_pace(request), [note for _, note in read_notes(request.out)]
    took = say_duration(seconds_left(work.pieces(), notes, request.jobs, known))
    print(f"{len(cells):,} cells; {len(work):,} jobs to do, {request.jobs} at once: {took}", file=sys.stderr)
    if request.extent == "dry-run":
        print(list_cells(cells, results))
        return 0
    if request.mode == "smoke":
        request = attrs.evolve(request, measure=smoke.smoke_measure(request.measure))
    show = ConsoleGrid(Console(stderr=True))
    with show:
        if request.extent != "report-only":
            stamp = Stamp(source_commit(Path(__file__).parent), call.now, call.mark)
            executor = open_executor(request, show.say)
            with noted(call, request.out, executor.at_once, describe_machine()), executor as running:
                run_work(work, _place(request, shelf), running, stamp, show, known)
        inputs = Inputs(
            repeats=repeats,
            results=Results(request.out),
            paper=paper,
            measure=request.measure,
            at_once=request.jobs,
            tick=show.tick,
        )
        return _tell(presets, inputs, request.mode, call)


def _asked(request: Request, paper: PaperResults, shelf: Shelf) -> tuple[tuple[Preset, ...], Repeats]:
    """Choose the tables that were asked for, and how often each of their cells is repeated."""
    # A name that is misspelt costs a second, not a grid of failures or a page that cannot be made in the end.
    shelf.catalogue.metrics.get(request.measure.metric)
    if request.mode == "smoke":
        repeats = smoke.smoke_repeats()
        seeds = request.repeats.seeds if request.seeds_given else repeats.seeds
        return smoke.smoke_presets(paper), attrs.evolve(repeats, seeds=seeds, splits=request.repeats.splits)
    if request.mode in ("check", "record-reference"):
        built_in = [item.offer.name for item in shelf.catalogue.methods if item.plugin.distribution == _DISTRIBUTION]
        methods = read_reference(REFERENCE) if request.mode == "check" else sorted(built_in)
        return (reference_preset(list(methods)),), reference_repeats()
    for method in request.axes.methods:
        if method != RANDOM:
            shelf.catalogue.methods.get(read_method(method)[0])
    return choose_presets(request.tables, request.axes, paper), request.repeats


def _known_pace(request: Request) -> dict[tuple[str, ...], float]:
    """Read what jobs of full size took on a machine like this one. Asking torch for a GPU would take seconds."""
    if request.mode != "tables":
        return {}
    has_gpu = request.device == "auto" and shutil.which("nvidia-smi") is not None
    return read_known("cuda" if has_gpu or request.device == "cuda" else "cpu")


def _possible(
    asked: tuple[Preset, ...], repeats: Repeats, results: Results, request: Request, shelf: Shelf
) -> tuple[Preset, ...]:
    """Leave out what needs data that is not here. A report needs no data for what was run elsewhere."""
    only_told = request.extent == "report-only"
    if only_told and results.is_empty:
        raise RunFolderError(
            f"There is nothing to report: {request.out} holds no job of a grid. Run the grid first, or say "
            "where its folder is with `--out`."
        )

    def is_known(one: Condition, preset: Preset) -> bool:
        return only_told and _is_told(one, preset.needs_scores, repeats, results)

    presets, absent = leave_out_absent(asked, shelf, is_known)
    for name in absent:
        print(f"Warning: {name} is not on this machine; what needs it is left out.", file=sys.stderr)
    return presets


def _is_told(one: Condition, needs_scores: bool, repeats: Repeats, results: Results) -> bool:
    if needs_scores:
        return any(results.cell(cell) for cell in one.cells(repeats))
    return any(results.pretraining(run) for run in one.pretrainings(repeats))


def _place(request: Request, shelf: Shelf) -> Place:
    return Place(
        out=request.out,
        device=request.device,
        workers=request.workers,
        data_root=request.data_root,
        roots=request.roots,
        presets=shelf.presets(),
    )


def _tell(presets: tuple[Preset, ...], inputs: Inputs, mode: Mode, call: Call) -> int:
    """Write the page, print the tables, and say whether all is well."""
    from grid.page import build_page, write_page  # draws and computes: seconds of imports that a list does not need

    results = inputs.results
    page = build_page(presets, inputs, call)
    write_page(page, results.out)
    print(page.markdown_tables())
    print(f"Page: {results.out / 'grid.html'}", file=sys.stderr)
    for name, why in page.failures:
        print(f"Error: {name} failed: {why.rstrip('.')}. The same command tries it again.", file=sys.stderr)
    if mode == "record-reference":
        record(presets[0], results, REFERENCE)
    elif mode == "check":
        return _judge(presets[0], results)
    return 1 if page.failures else 0


def _judge(preset: Preset, results: Results) -> int:
    verdicts = check(preset, results, read_reference(REFERENCE))
    if not verdicts:
        raise SettingsError("The reference names no method; make one with --record-reference.")
    for one in verdicts:
        now = "no score" if one.now is None else f"{one.now:.3f}"
        state = "holds" if one.holds else "HAS LEFT ITS INTERVAL"
        print(f"{one.method}: {now}, recorded {one.recorded:.3f} [{one.low:.3f}, {one.high:.3f}]: {state}")
    return 0 if all(one.holds for one in verdicts) else 1
