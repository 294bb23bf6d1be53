"""`clocs run`: pre-train, evaluate and report, or resume a run that was interrupted."""

from __future__ import annotations

import time
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from clocs_core.artifacts.run_folder import MOST_SEEDS, RunFolder, open_run_folder, refuse_taken
from clocs_core.cli.completing import complete_runs
from clocs_core.cli.evaluate import EVALUATE
from clocs_core.cli.flags import (
    AnyOption,
    given_flags,
    read_assignments,
    with_options,
    with_processes,
    with_settings,
    with_workers,
)
from clocs_core.cli.output import echo
from clocs_core.cli.processes import (
    Place,
    count_processes,
    joined,
    met_others,
    own_place,
    start_processes,
    words_of_one,
)
from clocs_core.cli.session import pass_session
from clocs_core.cli.several_seeds import has_seeds, refuse_for_seeds, resume_seeds, run_seeds
from clocs_core.cli.summary import print_summary
from clocs_core.cli.together import Verb, run_together
from clocs_core.cli.wording import as_flags, flags_of
from clocs_core.errors import RunFolderError, SettingsError
from clocs_core.plugins.session import Session
from clocs_core.settings.sections import DataSettings, RunSettings, ScoringSettings, TrainSettings
from clocs_core.settings.toml_file import Tables, read_tables

if TYPE_CHECKING:
    from clocs_core.plan.pretraining import Plan
    from clocs_core.train.ranks import Group

SECTIONS = {"run": RunSettings, "data": DataSettings, "train": TrainSettings, "evaluate": ScoringSettings}


@click.command("run", cls=AnyOption)
@with_settings(SECTIONS)
@click.option("--out", metavar="FOLDER", help="Run folder. Default: a new one under runs/.")
@click.option("--config", metavar="FILE", help="Settings as TOML, such as the settings.toml of another run.")
@click.option(
    "--resume", metavar="RUN", help="Resume an interrupted run, with its own settings.", shell_complete=complete_runs
)
@with_options
@with_workers
@click.option(
    "--dry-run", is_flag=True, help="Say what would be read, trained and written, and about how long; write nothing."
)
@with_processes("training")
@click.option(
    "--seeds",
    type=click.IntRange(1, MOST_SEEDS),
    metavar="N",
    help="Run N seeds, from --seed on, in a folder each, and summarise their scores. On a GPU they train together.",
)
@click.option("--together", metavar="JSON", hidden=True, help="Make several runs: the words of each, from a grid.")
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
    gpus: int | None,
    processes: int | None,
    seeds: int | None,
    together: str | None,
    **_flags: str | None,
) -> int | None:
    """Pre-train an encoder, evaluate it, and write a report.

    Options of the method, the data set, the encoder and the loss are flags too: --temperature 0.05. `clocs plugins
    --json` lists them. Later settings win: defaults, presets of the method, the data set and the encoder, --config,
    flags, -o. The effective settings are written into the run folder.
    """
    if together is not None:
        return run_together(session, Verb(context.command, SECTIONS), EVALUATE, together, workers)
    began = time.monotonic()
    count = count_processes(gpus, processes)
    if seeds is not None:
        refuse_for_seeds(own_place() is not None or count > 1, profile)
    with met_others() as met:
        how = _Start(session, workers, profile, began, count, met)
        from clocs_core.plan.pretraining import resolve

        if resume is not None:
            unused = [*given_flags(context, SECTIONS), *(["--config"] if config else []), *(["--out"] if out else [])]
            unused += [*(["-o"] if assignments else []), *(["--dry-run"] if dry_run else [])]
            unused += [*(["--seeds"] if seeds else [])]
            if unused:
                raise SettingsError(f"--resume uses the run's own settings; leave out {', '.join(unused)}.")
            if has_seeds(Path(resume)):
                refuse_for_seeds(met is not None or count > 1, profile)
                return resume_seeds(session, workers, Path(resume))
            return _resume(how, Path(resume))
        tables = read_tables(Path(config)) if config else {}
        plan = resolve(session.catalogue, tables, read_assignments(context, SECTIONS, assignments))
        path = Path(out) if out else _new_folder(plan, datetime.now(), seeds)
        if met is not None and met[0].restarts and RunFolder(path).settings.exists():
            return _resume(how, path)
        refuse_taken(path)
        if dry_run:
            _preview(plan, path, workers, flags_of(context.command), seeds)
            return None
        if seeds is not None:
            return run_seeds(session, workers, plan, path, seeds)
        return _run(how, plan, path, None)


@attrs.frozen(eq=False)
class _Start:
    """How a run was started. began: when. processes: those to start.

    met: the place among processes that were started, and the store that they share.
    """

    session: Session
    workers: int
    profile: bool
    began: float
    processes: int
    met: tuple[Place, Any] | None = None


def _words_of_one(path: Path) -> list[str]:
    """Return the words of this command for each process, with the run folder: a new one is named after the time."""
    words = words_of_one()
    named = any(word.partition("=")[0] in ("--out", "--resume") for word in words)
    return words if named else [*words, "--out", str(path)]


def _preview(plan: Plan, path: Path, workers: int, flags: Collection[str], seeds: int | None) -> None:
    from clocs_core.report.console import ConsoleDisplay
    from clocs_core.workflows.preview import preview_run

    with ConsoleDisplay() as show:
        found = preview_run(plan, path, workers, time.monotonic, seeds, show.stage)
    for line in found.lines():
        echo(as_flags(line, flags))


def _resume(how: _Start, path: Path) -> int | None:
    from clocs_core.plan.pretraining import resolve

    try:
        folder, tables = open_run_folder(path)
    except RunFolderError as problem:
        if how.met is None or how.met[0].rank == 0:
            raise
        others = "All processes of a training must see the same run folder."
        raise RunFolderError(f"Process {how.met[0].rank}: {problem} {others}") from None
    if folder.is_finished:
        echo(f"{path} is finished: see {folder.page}")
        return 0
    return _run(how, resolve(how.session.catalogue, tables), path, tables)


def _new_folder(plan: Plan, now: datetime, seeds: int | None = None) -> Path:
    """Return runs/<method>-<dataset>-s<seed>-<time>, with a number appended where that folder exists.

    seeds: how many, where it is for several; then the name has the first and the last.
    """
    first = plan.run.seed
    shown = f"s{first}" if seeds is None else f"s{first}-{first + seeds - 1}"
    base = f"{plan.method.name}-{plan.dataset.offer.name}-{shown}-{now:%Y%m%d-%H%M%S}"
    path, number = Path("runs") / base, 1
    while path.exists():
        number += 1
        path = Path("runs") / f"{base}-{number}"
    return path


def _run(how: _Start, plan: Plan, path: Path, begun: Tables | None) -> int | None:
    """Run a plan in a folder, in this process or together with others. begun: the settings of the run to resume."""
    if how.met is None:
        if how.processes > 1:
            goes_on = f"Training is saved after every epoch: `clocs run --resume {path}` goes on, with any number"
            return start_processes(how.processes, _words_of_one(path), f"{goes_on} of processes.")
        return _run_and_report(how, plan, path, begun, None)
    from clocs_core.artifacts.run_keeper import FollowingKeeper
    from clocs_core.train.agreement import refuse_differences, settings_facts
    from clocs_core.train.build import choose_device
    from clocs_core.workflows.environment import versions
    from clocs_core.workflows.pretrain import follow_run
    from clocs_core.workflows.surroundings import Surroundings

    device = choose_device(plan.run.device)
    with joined(*how.met, device) as group:
        facts = versions(how.session.host) | settings_facts(plan.tables())
        refuse_differences(facts, group, device)
        path = Path(group.texts(str(path), device)[0])  # a new folder is named after the time
        if group.rank == 0:
            return _run_and_report(how, plan, path, begun, group)
        around = Surroundings(how.session.host, workers=how.workers, announces=False, group=group)
        follow_run(plan, FollowingKeeper(path), around)
    return None


def _run_and_report(how: _Start, plan: Plan, path: Path, begun: Tables | None, group: Group | None) -> int | None:
    from clocs_core.artifacts.run_keeper import FolderKeeper
    from clocs_core.cli.display import console_display
    from clocs_core.workflows.pretrain import pretrain_run
    from clocs_core.workflows.surroundings import Surroundings

    keeper = FolderKeeper(path, begun)
    try:
        with console_display() as show:
            around = Surroundings(how.session.host, show, how.workers, began=how.began, group=group)
            report = pretrain_run(plan, keeper, around, how.profile).report
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
