"""`clocs run`: pre-train, evaluate and report, or go on with a run that was interrupted."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clocs_core.artifacts.run_folder import RunFolder, open_run_folder, refuse_taken
from clocs_core.cli.flags import Flags, read_flags, with_flags, with_workers
from clocs_core.cli.session import Session, pass_session
from clocs_core.cli.summary import print_summary
from clocs_core.errors import SettingsError
from clocs_core.settings.sections import Tables, read_tables

if TYPE_CHECKING:
    from clocs_core.plan.pretraining import Plan
    from clocs_core.plugins.catalogue import Catalogue

_FLAGS: Flags = {
    "--plugin": ("run", "method", "METHOD", "The method to pre-train with."),
    "--dataset": ("run", "dataset", "NAME", "The data set to train and to evaluate on."),
    "--task": ("data", "task", "NAME", "Which question of the data set to evaluate; its first by default."),
    "--data-root": (
        "data",
        "data_root",
        "FOLDER",
        "Holds one folder per data set, and what is prepared from them; wins over a root of --config. "
        "Default: CLOCS_DATA, or this platform's place for data.",
    ),
    "--root": ("data", "root", "PATH", "This data set's own folder or file."),
    "--patients": ("dataset", "patients", "FILE", "Whose each recording is, for data sets that ask for it."),
    "--labels": ("dataset", "labels", "FILE", "The class of each recording, for data sets that ask for it."),
    "--sampling-rate": ("dataset", "sampling_rate", "HZ", "Of the recordings, where the files do not say it."),
    "--unit": ("dataset", "unit", "UNIT", "Of the recordings, such as mV, where the files do not say it."),
    "--leads": ("data", "channels", "NAMES", "Leads by name, comma separated, or a preset such as 4 or 12."),
    "--channels": ("data", "channels", "NAMES", "The same as --leads, for signals without leads."),
    "--encoder": ("run", "encoder", "NAME", "The encoder; the method's own by default."),
    "--embedding-dim": ("run", "embedding_dim", "E", "Dimension of a representation."),
    "--epochs": ("train", "epochs", "N", "At most so many epochs."),
    "--batch-size": ("train", "batch_size", "K", "Instances per step."),
    "--contrast-batch": ("train", "contrast_batch", "N", "Instances per step, if more than a batch is contrasted."),
    "--learning-rate": ("train", "learning_rate", "RATE", "Of Adam."),
    "--seed": ("run", "seed", "N", "Seeds weights, order, views and dropout."),
    "--split-seed": ("data", "split_seed", "N", "Which patients train, validate and test."),
    "--label-fraction": ("evaluate", "label_fraction", "F", "Share of the labels, or several, comma separated."),
    "--device": ("run", "device", "DEVICE", "auto, cpu or cuda."),
    "--step": ("run", "step", "STEP", "auto, plain or captured: captured steps are CUDA graphs, and much quicker."),
}


@click.command("run")
@with_flags(_FLAGS)
@click.option("--out", metavar="FOLDER", help="The run's own folder. Default: a new one under runs/.")
@click.option("--config", metavar="FILE", help="Settings as TOML, such as the settings.toml of another run.")
@click.option("--resume", metavar="RUN", help="Go on with a run that was interrupted; takes no other settings.")
@click.option(
    "-o",
    "--option",
    "assignments",
    metavar="NAME=VALUE",
    multiple=True,
    help="Set any option of any part: `-o temperature=0.05`, or `-o loss.temperature=0.05`. May be repeated.",
)
@with_workers
@click.option("--profile", is_flag=True, help="Show where the time of a training step goes, and keep a trace of it.")
@pass_session
def run_command(
    session: Session,
    /,
    out: str | None,
    config: str | None,
    resume: str | None,
    assignments: tuple[str, ...],
    workers: int,
    profile: bool,
    **flags: str | None,
) -> int | None:
    """Pre-train an encoder, evaluate it beside its controls, and write a report.

    Later settings win: defaults, the method's, the data set's own (epochs, batch size and learning rate among them),
    --config, flags and -o. `clocs plugins --json` lists every option of every part; the effective settings are written
    into the run folder.
    """
    from clocs_core.plan.pretraining import resolve

    given = {name: value for name, value in flags.items() if value is not None}
    if resume is not None:
        unused = [
            *(f"--{name.replace('_', '-')}" for name in given),
            *(["--config"] if config else []),
            *(["--out"] if out else []),
            *(["-o"] if assignments else []),
        ]
        if unused:
            raise SettingsError(f"--resume goes on with the run's own settings; leave out {', '.join(unused)}.")
        return _resume(session, Path(resume), workers, profile)
    tables = _tables(session.catalogue, read_tables(Path(config)) if config else {}, given)
    plan = resolve(session.catalogue, tables, assignments)
    path = Path(out) if out else _new_folder(plan, datetime.now())
    refuse_taken(path)
    return _run(session, plan, path, workers, profile)


def _resume(session: Session, path: Path, workers: int, profile: bool) -> int | None:
    from clocs_core.plan.pretraining import resolve

    folder, tables = open_run_folder(path)
    if folder.report.exists():
        click.echo(f"{path} is finished: see {folder.page}")
        return 0
    return _run(session, resolve(session.catalogue, tables), path, workers, profile)


def _tables(catalogue: Catalogue, tables: Tables, given: dict[str, str]) -> Tables:
    from clocs_core.settings.sections import DataSettings, RunSettings, ScoringSettings, TrainSettings

    classes = {"run": RunSettings, "data": DataSettings, "train": TrainSettings, "evaluate": ScoringSettings}
    dataset = given.get("dataset") or tables.get("run", {}).get("dataset")
    return read_flags(catalogue, _FLAGS, given, tables, classes, dataset)


def _new_folder(plan: Plan, now: datetime) -> Path:
    """runs/<method>-<dataset>-s<seed>-<time>, with a number behind it where that is taken."""
    base = f"{plan.method.name}-{plan.dataset.offer.name}-s{plan.run.seed}-{now:%Y%m%d-%H%M%S}"
    path, number = Path("runs") / base, 1
    while path.exists():
        number += 1
        path = Path("runs") / f"{base}-{number}"
    return path


def _run(session: Session, plan: Plan, path: Path, workers: int, profile: bool) -> int | None:
    from rich.console import Console

    from clocs_core.artifacts.run_keeper import FolderKeeper
    from clocs_core.cli.display import ConsoleDisplay
    from clocs_core.workflows.pretrain import pretrain_run
    from clocs_core.workflows.surroundings import Surroundings

    try:
        with ConsoleDisplay(Console(stderr=True)) as display:
            around = Surroundings(session.host, display, workers, time.monotonic)
            report = pretrain_run(plan, FolderKeeper(path), around, profile).report
    except KeyboardInterrupt:
        saved = f"what was learnt is saved. Go on with: clocs run --resume {path}"
        click.echo(f"\nStopped; {saved if path.exists() else 'nothing was learnt yet.'}", err=True)
        return 130
    print_summary(report.scores, report.comparisons, report.notes)
    click.echo(f"Report: {RunFolder(path).page}")
    return None
