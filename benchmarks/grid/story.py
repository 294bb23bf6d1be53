"""The story of a grid on one page: choose, look what is missing, run it, summarise, show."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import attrs
from paper_results import PaperResults, load_results
from rich.console import Console

from clocs_core.errors import SettingsError
from grid import smoke
from grid.axes import Repeats
from grid.choose import choose_presets, wanted_cells, wanted_runs
from grid.display import ConsoleGrid
from grid.executor import LocalProcesses
from grid.flags import Request
from grid.jobs import Place
from grid.ledger import Ledger, Results
from grid.listing import list_cells, list_presets
from grid.outcomes import Stamp, source_commit
from grid.pace import say_duration
from grid.presence import Shelf, leave_out_absent, open_shelf
from grid.reference import REFERENCE, check, read_reference, record, reference_preset, reference_repeats
from grid.schedule import Work, missing_work, run_work
from grid.tables import Preset, paper_presets

__all__ = ["carry_out"]

_DISTRIBUTION = "clocs"  # whose methods the gate watches


def carry_out(request: Request) -> int:
    """Do what was asked for. Returns 0, or 1 where cells failed or a score left its interval."""
    paper, shelf = load_results(), open_shelf(request.data_root, request.roots)
    if request.mode == "list":
        print(list_presets(paper_presets(paper), shelf, request.repeats))
        return 0
    asked, repeats = _asked(request, paper, shelf)
    presets, absent = leave_out_absent(asked, shelf)
    for name in absent:
        print(f"Warning: {name} is not on this machine; what needs it is left out.", file=sys.stderr)
    cells, runs = wanted_cells(presets, repeats), wanted_runs(presets, repeats)
    ledger = Ledger(request.out / "ledger.jsonl")
    results = ledger.read()
    work = missing_work(cells, runs, results)
    took = say_duration(work.seconds(results, request.jobs))
    print(f"{len(cells):,} cells; {len(work):,} jobs to do, {request.jobs} at once: {took}", file=sys.stderr)
    if request.extent == "dry-run":
        print(list_cells(cells, results))
        return 0
    if request.mode == "smoke":
        request = attrs.evolve(request, measure=smoke.smoke_measure(request.measure))
    with ConsoleGrid(Console(stderr=True)) as show:
        if request.extent != "report-only":
            results = _run(work, request, shelf, ledger, show)
        return _tell(presets, repeats, results, request, paper, show)


def _asked(request: Request, paper: PaperResults, shelf: Shelf) -> tuple[tuple[Preset, ...], Repeats]:
    """The tables that were asked for, and how often each of their cells is repeated."""
    if request.mode == "smoke":
        repeats = smoke.smoke_repeats()
        seeds = request.repeats.seeds if request.seeds_given else repeats.seeds
        return smoke.smoke_presets(paper), attrs.evolve(repeats, seeds=seeds, splits=request.repeats.splits)
    if request.mode in ("check", "record-reference"):
        built_in = [item.offer.name for item in shelf.catalogue.methods if item.plugin.distribution == _DISTRIBUTION]
        methods = read_reference(REFERENCE) if request.mode == "check" else sorted(built_in)
        return (reference_preset(list(methods)),), reference_repeats()
    for method in request.axes.methods:
        shelf.catalogue.methods.get(method)  # a name that is misspelt costs a second, not a grid of failures
    return choose_presets(request.tables, request.axes, paper), request.repeats


def _run(work: Work, request: Request, shelf: Shelf, ledger: Ledger, show: ConsoleGrid) -> Results:
    place = Place(
        out=request.out,
        device=request.device,
        workers=request.workers,
        data_root=request.data_root,
        roots=request.roots,
        presets=shelf.presets(),
    )
    stamp = Stamp(request.out, source_commit(Path(__file__).parent), lambda: datetime.now(UTC))
    with LocalProcesses(request.command, request.jobs, time.monotonic, request.threads) as executor:
        return run_work(work, place, executor, ledger, stamp, show)


def _tell(
    presets: tuple[Preset, ...],
    repeats: Repeats,
    results: Results,
    request: Request,
    paper: PaperResults,
    show: ConsoleGrid,
) -> int:
    """Write the page, print the tables, and say whether all is well."""
    from grid.page import build_page, write_page  # draws and computes: seconds of imports that a list does not need

    page = build_page(presets, repeats, results, paper, request.measure, request.out, request.jobs, show.tick)
    write_page(page, request.out)
    print(page.markdown_tables())
    print(f"Page: {request.out / 'grid.html'}", file=sys.stderr)
    if request.mode == "record-reference":
        record(presets[0], results, REFERENCE)
    elif request.mode == "check":
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
