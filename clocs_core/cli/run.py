"""`clocs run`: pre-train, evaluate and report, or resume a run that was interrupted."""

from __future__ import annotations

import time
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clocs_core.artifacts.run_folder import RunFolder, open_run_folder, refuse_taken
from clocs_core.cli.flags import AnyOption, given_flags, read_assignments, with_options, with_settings, with_workers
from clocs_core.cli.output import echo
from clocs_core.cli.session import pass_session
from clocs_core.cli.summary import print_summary
from clocs_core.cli.wording import as_flags, flags_of
from clocs_core.errors import SettingsError
from clocs_core.plugins.session import Session
from clocs_core.settings.sections import DataSettings, RunSettings, ScoringSettings, TrainSettings
from clocs_core.settings.toml_file import Tables, read_tables

if TYPE_CHECKING:
    from clocs_core.plan.pretraining import Plan

SECTIONS = {"run": RunSettings, "data": DataSettings, "train": TrainSettings, "evaluate": ScoringSettings}


@click.command("run", cls=AnyOption)
@with_settings(SECTIONS)
@click.option("--out", metavar="FOLDER", help="Run folder. Default: a new one under runs/.")
@click.option("--config", metavar="FILE", help="Settings as TOML, such as the settings.toml of another run.")
@click.option("--resume", metavar="RUN", help="Resume an interrupted run, with its own settings.")
@with_options
@with_workers
@click.option(
    "--dry-run", is_flag=True, help="Say what would be read, trained and written, and about how long; write nothing."
)
@click.option("--profile", is_flag=True, help="Measure where the time of a training step goes, and keep a trace.")
@pass_session
@click.pass_context
def run_command(
    context: click.Context,
    session: Session,
    /,
    out: str | None,
    config: str | None,
    resume: str | None,
    assignments: tuple[str, ...],
    workers: int,
    dry_run: bool,
    profile: bool,
    **_flags: str | None,
) -> int | None:
    """Pre-train an encoder, evaluate it, and write a report.

    Options of the method, the data set, the encoder and the loss are flags too: --temperature 0.05. `clocs plugins
    --json` lists them. Later settings win: defaults, the method's, the data set's, --config, flags, -o. The effective
    settings are written into the run folder.
    """
    began = time.monotonic()
    from clocs_core.plan.pretraining import resolve

    if resume is not None:
        unused = [*given_flags(context, SECTIONS), *(["--config"] if config else []), *(["--out"] if out else [])]
        unused += [*(["-o"] if assignments else []), *(["--dry-run"] if dry_run else [])]
        if unused:
            raise SettingsError(f"--resume uses the run's own settings; leave out {', '.join(unused)}.")
        return _resume(session, Path(resume), workers, profile, began)
    tables = read_tables(Path(config)) if config else {}
    plan = resolve(session.catalogue, tables, read_assignments(context, SECTIONS, assignments))
    path = Path(out) if out else _new_folder(plan, datetime.now())
    refuse_taken(path)
    if dry_run:
        _preview(plan, path, workers, flags_of(context.command))
        return None
    return _run(session, plan, path, None, workers, profile, began)


def _preview(plan: Plan, path: Path, workers: int, flags: Collection[str]) -> None:
    from clocs_core.workflows.preview import preview_run

    for line in preview_run(plan, path, workers, time.monotonic).lines():
        echo(as_flags(line, flags))


def _resume(session: Session, path: Path, workers: int, profile: bool, began: float) -> int | None:
    from clocs_core.plan.pretraining import resolve

    folder, tables = open_run_folder(path)
    if folder.is_finished:
        echo(f"{path} is finished: see {folder.page}")
        return 0
    return _run(session, resolve(session.catalogue, tables), path, tables, workers, profile, began)


def _new_folder(plan: Plan, now: datetime) -> Path:
    """Return runs/<method>-<dataset>-s<seed>-<time>, with a number appended where that folder exists."""
    base = f"{plan.method.name}-{plan.dataset.offer.name}-s{plan.run.seed}-{now:%Y%m%d-%H%M%S}"
    path, number = Path("runs") / base, 1
    while path.exists():
        number += 1
        path = Path("runs") / f"{base}-{number}"
    return path


def _run(
    session: Session, plan: Plan, path: Path, begun: Tables | None, workers: int, profile: bool, began: float
) -> int | None:
    """Run a plan in a folder. begun: the settings of the run to resume; None for a new one. began: when this began."""
    from clocs_core.artifacts.run_keeper import FolderKeeper
    from clocs_core.cli.display import console_display
    from clocs_core.workflows.pretrain import pretrain_run
    from clocs_core.workflows.surroundings import Surroundings

    keeper = FolderKeeper(path, begun)
    try:
        with console_display() as show:
            around = Surroundings(session.host, show, workers, began=began)
            report = pretrain_run(plan, keeper, around, profile).report
    except KeyboardInterrupt as stop:
        saved = f"training so far is saved. Resume it: clocs run --resume {path}"
        stop.add_note(f"Stopped; {saved if keeper.folder.settings.exists() else 'nothing was trained yet.'}")
        raise
    print_summary(report.scores, report.comparisons, report.notes)
    for other in report.other_encoders:
        echo(f"\nEncoder {other.name}: {other.encoder} on {', '.join(other.channels)}")
        print_summary(other.scores, other.comparisons, other.notes)
    echo(f"Report: {RunFolder(path).page}")
    return None
