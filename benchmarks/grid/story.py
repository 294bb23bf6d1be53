"""Repeat tables of the paper from the flags of `run_all.py`: choose, run what is missing, show, and check the gates."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
from rich.console import Console

from clocs_core.contracts.jobs import Executor
from clocs_core.contracts.scores import RANDOM
from clocs_core.errors import SettingsError
from clocs_core.grids.available_data import Shelf, open_shelf
from clocs_core.grids.axes import read_method
from clocs_core.grids.carry_out import find_work, keep_possible, keep_told, make_page, run_grid, say_work
from clocs_core.grids.choose import choose_presets
from clocs_core.grids.definition import Grid
from clocs_core.grids.display import ConsoleGrid
from clocs_core.grids.executor import LocalProcesses
from clocs_core.grids.invocations import Call
from clocs_core.grids.jobs import Place
from clocs_core.grids.listing import list_cells, list_presets
from clocs_core.grids.presets import Preset, wanted_cells
from clocs_core.grids.results import Results
from clocs_core.grids.schedule import Known
from clocs_core.plan.protocols import find_protocol
from clocs_core.plugins.session import installed_session
from clocs_plugins.paper_tables.tables import CLAIM, paper_grids
from grid import smoke
from grid.flags import Request
from grid.reference import REFERENCE, check, read_reference, record, reference_preset, reference_repeats

if TYPE_CHECKING:
    from clocs_core.grids.page import Page

PACE = Path(__file__).with_name("pace.json")
"""How long jobs took on two machines, by kind, for a first guess where nothing was run yet."""

_DISTRIBUTION = "clocs"  # whose methods the gate watches
_ENCODER = "cnn"  # the paper's
_METHODS = ("mt-ssl", "byol", "simclr", "cmlc", "cmsmlc", "cmsc")  # what the paper pre-trains without labels

_ELSEWHERE = """
Others of the paper:
  Figures 1, 2: drawings of the methods: docs/methods.md
  Tables 3, 4: instances of each part: benchmarks/counts.py, docs/results.md
  Tables 5, 6: the network and the batch sizes: defaults of the encoder and of the data sets
  Figures 7, 8: perturbed frames: docs/perturbations.md

Any data set can stand in for another: --datasets chapman=ptbxl,physionet2020=ptbxl"""

OpenExecutor = Callable[[Request, Callable[[str], None]], Executor]
"""Makes what runs the jobs of a request. The function is told what a person should know, a line each."""


def local_processes(request: Request, say: Callable[[str], None]) -> Executor:
    """Run jobs as processes of this machine."""
    return LocalProcesses(request.command, request.jobs, time.monotonic, request.threads, say, many=True)


def carry_out(request: Request, call: Call, open_executor: OpenExecutor = local_processes) -> int:
    """Do what was asked for. Returns 0, or 1 where cells failed or a score left its interval."""
    if request.mode == "pages":
        from grid.pages import write_pages  # draws figures: the other modes do without its libraries

        write_pages(installed_session().catalogue, request.out)
        return 0
    shelf = open_shelf(installed_session().catalogue, request.data_root, request.roots)
    if request.mode == "list":
        print(list_presets([Preset.of(offer) for offer in paper_grids()], shelf, request.repeats) + "\n" + _ELSEWHERE)
        return 0
    keep = keep_told if request.extent == "report-only" else keep_possible
    grid = keep(_asked(request, shelf), shelf, request.out, lambda text: print(f"Warning: {text}", file=sys.stderr))
    work, known = find_work(grid, request.out), _known_pace(request)
    print(say_work(grid, work, request.out, request.jobs, known), file=sys.stderr)
    if request.extent == "dry-run":
        print(list_cells(wanted_cells(grid.presets, grid.repeats), Results(request.out)))
        return 0
    show = ConsoleGrid(Console(stderr=True))
    with show:
        if request.extent != "report-only":
            executor = open_executor(request, show.say)
            run_grid(grid, work, _place(request, shelf), executor, call, show, known)
        page = make_page(grid, request.out, shelf.catalogue, call, request.jobs, show.tick)
    return _tell(page, grid, request)  # after the bar: on a terminal, it takes all that is printed


def _asked(request: Request, shelf: Shelf) -> Grid:
    """Choose the tables that were asked for, and how often each of their cells is repeated."""
    # A name that is misspelt costs a second, not a grid of failures or a page that cannot be made in the end.
    shelf.catalogue.metrics.get(request.measure.metric)
    if request.mode == "smoke":
        repeats = smoke.smoke_repeats()
        seeds = request.repeats.seeds if request.seeds_given else repeats.seeds
        repeats = attrs.evolve(repeats, seeds=seeds, splits=request.repeats.splits, encoder=_ENCODER)
        return Grid(presets=smoke.smoke_presets(), repeats=repeats, measure=smoke.smoke_measure(request.measure))
    if request.mode in ("check", "record-reference"):
        built_in = [item.offer.name for item in shelf.catalogue.methods if item.plugin.distribution == _DISTRIBUTION]
        methods = read_reference(REFERENCE) if request.mode == "check" else sorted(built_in)
        return Grid(presets=(reference_preset(list(methods)),), repeats=reference_repeats(), measure=request.measure)
    for method in request.axes.methods:
        if method != RANDOM:
            shelf.catalogue.methods.get(read_method(method)[0])
    for protocol in request.axes.protocols:
        find_protocol(shelf.catalogue, protocol)
    repeats = attrs.evolve(request.repeats, encoder=_ENCODER)
    return Grid(presets=_tables(request, shelf), repeats=repeats, measure=request.measure)


def _tables(request: Request, shelf: Shelf) -> tuple[Preset, ...]:
    axes = request.axes
    if request.tables:
        return choose_presets(request.tables, axes, lambda name: shelf.catalogue.grids.get(name).offer)
    if not axes.datasets and not axes.only_random:
        raise SettingsError(
            "Nothing was asked for: name a table (`--list` shows them), or give a grid of your own with "
            "`--datasets` and, if you like, `--methods`, `--downstream`, `--embedding-dims`, `--label-fractions`."
        )
    (own,) = choose_presets((), attrs.evolve(axes, methods=axes.methods or _METHODS), lambda name: paper_grids()[0])
    return (attrs.evolve(own, claim=CLAIM, offer="linear-main"),)  # with the paper's numbers, where it has some


def _known_pace(request: Request) -> Known:
    """Read what jobs of full size took on a machine like this one. Asking torch for a GPU would take seconds."""
    if request.mode != "tables":
        return {}
    has_gpu = request.device == "auto" and shutil.which("nvidia-smi") is not None
    return read_known("cuda" if has_gpu or request.device == "cuda" else "cpu")


def read_known(device: str) -> dict[tuple[str, ...], float]:
    """Read what jobs took on "cpu" or "cuda", by kind: a protocol, a method where it matters, and a data set."""
    found: dict[str, float] = json.loads(PACE.read_text(encoding="utf-8"))[device]["seconds"]
    return {tuple(name.split("/")): seconds for name, seconds in found.items()}


def _place(request: Request, shelf: Shelf) -> Place:
    return Place(
        out=request.out,
        device=request.device,
        workers=request.workers,
        data_root=request.data_root,
        roots=request.roots,
        presets=shelf.presets(),
        runs_per_job=request.runs_per_job,
    )


def _tell(page: Page, grid: Grid, request: Request) -> int:
    """Print the tables, and say whether all is well."""
    print(page.markdown_tables())
    print(f"Page: {request.out / 'grid.html'}", file=sys.stderr)
    for name, why in page.failures:
        print(f"Error: {name} failed: {why.rstrip('.')}. The same command tries it again.", file=sys.stderr)
    results = Results(request.out)
    if request.mode == "record-reference":
        record(grid.presets[0], results, REFERENCE)
    elif request.mode == "check":
        return _judge(grid.presets[0], results)
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
