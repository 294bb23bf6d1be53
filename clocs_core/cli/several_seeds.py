"""`clocs run --seeds N`: several seeds, in a folder each, and their summary."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from clocs_core.artifacts.run_folder import SEEDS
from clocs_core.cli.output import echo
from clocs_core.errors import SettingsError
from clocs_core.plugins.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clocs_core.artifacts.several_seeds import SeedsReport
    from clocs_core.plan.pretraining import Plan
    from clocs_core.settings.toml_file import Tables


def refuse_for_seeds(shares: bool, profile: bool) -> None:
    """Raise SettingsError for flags that go with one run only. shares: whether processes share the training."""
    if shares:
        raise SettingsError(
            "--seeds trains in one process, and --gpus or --processes shares one run among several; use one of them."
        )
    if profile:
        raise SettingsError("--profile measures the steps of one run; leave out --seeds.")


def has_seeds(path: Path) -> bool:
    """Return whether a folder is that of several seeds."""
    return (path / SEEDS).is_file()


def run_seeds(session: Session, workers: int, plan: Plan, path: Path, count: int) -> int | None:
    """Run `count` seeds in a new folder."""
    began = time.monotonic()  # before torch is imported, which takes seconds
    from clocs_core.artifacts.several_seeds import list_seeds

    return _run(session, workers, plan, list_seeds(plan.run.seed, count), path, None, began)


def resume_seeds(session: Session, workers: int, path: Path) -> int | None:
    """Go on with the seeds of a folder that are not finished."""
    began = time.monotonic()
    from clocs_core.artifacts.several_seeds import all_tables, is_finished, open_seeds_folder
    from clocs_core.plan.pretraining import resolve

    folder, tables, seeds = open_seeds_folder(path)
    if is_finished(folder, seeds):
        echo(f"{path} is finished: see {folder.page}")
        return 0
    plan = resolve(session.catalogue, tables)
    return _run(session, workers, plan, seeds, path, all_tables(tables, seeds), began)


def _run(
    session: Session, workers: int, plan: Plan, seeds: Sequence[int], path: Path, begun: Tables | None, began: float
) -> int | None:
    """Run the seeds and print their summary. begun: what seeds.toml has of runs to go on with. began: when, in s."""
    from clocs_core.artifacts.several_seeds import SeedsFolderKeeper
    from clocs_core.cli.display import console_display
    from clocs_core.workflows.several_seeds import pretrain_seeds
    from clocs_core.workflows.surroundings import Surroundings

    keeper = SeedsFolderKeeper(path, begun)
    again = f"clocs run --resume {path}"
    try:
        with console_display() as show:
            around = Surroundings(session.host, show, workers, began=began)
            done = pretrain_seeds(plan, seeds, keeper, around)
    except KeyboardInterrupt as stop:
        saved = f"training so far is saved. Resume it: {again}"
        stop.add_note(f"Stopped; {saved if keeper.folder.settings.exists() else 'nothing was trained yet.'}")
        raise
    if done.report is not None:
        _print(done.report)
        echo(f"Summary: {keeper.folder.page}")
    if done.failed:
        failed = ", ".join(map(str, done.failed))
        echo(f"Seed {failed} of {len(seeds)} seeds ended with an error; the others are done. Resume: {again}", err=True)
        raise next(iter(done.failed.values()))
    return None


def _print(report: SeedsReport) -> None:
    from clocs_core.report.several_seeds import over_what, wide_seeds_rows
    from clocs_core.report.tables import comparison_sentence
    from clocs_core.report.terminal import Terminal

    terminal = Terminal(120)
    if report.scores:
        terminal.print_table(*wide_seeds_rows(report))
        terminal.print(over_what(report))
    for compared in report.comparisons:
        if compared.metric == report.scores[0].metric:
            terminal.print(comparison_sentence(compared))
    for note in report.notes:
        terminal.print(note)
