"""`clocs evaluate`: try an encoder on labelled recordings, frozen or fine-tuned, beside its controls."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clocs_core.cli.flags import Flags, read_flags, with_flags, with_workers
from clocs_core.cli.session import Session, pass_session
from clocs_core.cli.summary import print_summary
from clocs_core.errors import SettingsError
from clocs_core.settings.sections import Tables

if TYPE_CHECKING:
    from clocs_core.plan.evaluation import EvaluationPlan
    from clocs_core.plugins.catalogue import Catalogue

_FLAGS: Flags = {
    "--dataset": ("evaluation", "dataset", "NAME", "The data set to evaluate on. Default: the run's own."),
    "--protocol": ("evaluation", "protocol", "PROTOCOL", "linear: frozen encoder; finetune: all weights train."),
    "--label-fraction": ("evaluate", "label_fraction", "F", "Share of the labels, or several, comma separated."),
    "--fraction-of": ("evaluation", "fraction_of", "WHAT", "Whether F is a share of frames (default) or of patients."),
    "--part": ("evaluate", "part", "PART", "Whose patients are scored: test (default), or validation to choose by."),
    "--task": (
        "data",
        "task",
        "NAME",
        "Which question of the data set. Default: the run's on its own, else the first.",
    ),
    "--leads": ("data", "channels", "NAMES", "Leads by name, comma separated, or a preset such as 4 or 12."),
    "--channels": ("data", "channels", "NAMES", "The same as --leads, for signals without leads."),
    "--split-seed": (
        "data",
        "split_seed",
        "N",
        "Which patients train, validate and test. Default: the run's on its own.",
    ),
    "--split": ("data", "split", "RULE", "60/20/20 or 64/16/20: share of patients per part."),
    "--data-root": (
        "data",
        "data_root",
        "FOLDER",
        "Holds one folder per data set, and what is prepared from them; wins over the --root of the run. Default: the "
        "run's on its own data set, else CLOCS_DATA, or this platform's place for data.",
    ),
    "--root": ("data", "root", "PATH", "This data set's own folder or file. Default: the run's on its own data set."),
    "--patients": ("dataset", "patients", "FILE", "Whose each recording is, for data sets that ask for it."),
    "--labels": ("dataset", "labels", "FILE", "The class of each recording, for data sets that ask for it."),
    "--sampling-rate": ("dataset", "sampling_rate", "HZ", "Of the recordings, where the files do not say it."),
    "--unit": ("dataset", "unit", "UNIT", "Of the recordings, such as mV, where the files do not say it."),
    "--epochs": ("finetune", "epochs", "N", "At most so many epochs of fine-tuning."),
    "--batch-size": ("finetune", "batch_size", "K", "Frames per step of fine-tuning; the data set's own by default."),
    "--learning-rate": ("finetune", "learning_rate", "RATE", "Of Adam, in fine-tuning."),
    "--encoder": ("evaluation", "encoder", "NAME", "With --random: the architecture."),
    "--embedding-dim": ("evaluation", "embedding_dim", "E", "With --random: dimension of a representation."),
    "--seed": ("evaluation", "seed", "N", "Seeds head, order, dropout and untrained weights. Default: the run's own."),
    "--device": ("evaluation", "device", "DEVICE", "auto, cpu or cuda."),
    "--step": ("evaluation", "step", "STEP", "auto, plain or captured: captured steps are CUDA graphs."),
}


@click.command("evaluate")
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--random", is_flag=True, help="Instead of RUN: an encoder that nobody has trained, see --encoder.")
@with_flags(_FLAGS)
@click.option("--out", metavar="FOLDER", help="The evaluation's own folder. Default: one in RUN, or under runs/.")
@click.option(
    "--controls",
    metavar="FOLDER",
    help="Shared by evaluations: `random` and the class prior are taken from there, or made and kept there. Default: "
    "none.",
)
@click.option(
    "-o",
    "--option",
    "assignments",
    metavar="NAME=VALUE",
    multiple=True,
    help="Set any other option: `-o normalise=none`, or `-o data.normalise=none`. May be repeated.",
)
@with_workers
@pass_session
def evaluate_command(
    session: Session,
    /,
    run: str | None,
    random: bool,
    out: str | None,
    controls: str | None,
    assignments: tuple[str, ...],
    workers: int,
    **flags: str | None,
) -> int | None:
    """Evaluate the encoder of a run on a data set, which may be another one than it was trained on.

    RUN is the folder of a `clocs run`, or its encoder.safetensors. Beside its weights, the same encoder untrained and
    the class prior are always scored. An evaluation that was interrupted goes on when the same command is given again;
    one that is finished prints its table.
    """
    from clocs_core.plan.evaluation import resolve_evaluation
    from clocs_core.plan.pretrained import open_encoder

    if random == (run is not None):
        raise SettingsError(
            "Give one of the two: RUN, the folder of a `clocs run`, or --random with --encoder NAME."
            if not random
            else f"--random evaluates no run; leave out {run}, or --random."
        )
    opened = None if run is None else open_encoder(Path(run), session.catalogue)
    given = {name: value for name, value in flags.items() if value is not None}
    tables = _tables(session.catalogue, given, "" if opened is None else opened.dataset)
    asked = resolve_evaluation(session.catalogue, opened, tables, assignments)
    folder = Path(out) if out else _own_folder(run, asked)
    return _evaluate(session, asked, folder, workers, Path(controls) if controls else None)


def _tables(catalogue: Catalogue, given: dict[str, str], dataset: str) -> Tables:
    from clocs_core.settings.sections import DataSettings, EvaluationSettings, FinetuneSettings, ScoringSettings

    classes: dict[str, type[Any]] = {
        "evaluation": EvaluationSettings,
        "data": DataSettings,
        "finetune": FinetuneSettings,
        "evaluate": ScoringSettings,
    }
    return read_flags(catalogue, _FLAGS, given, {}, classes, given.get("dataset", dataset))


def _own_folder(run: str | None, asked: EvaluationPlan) -> Path:
    """RUN/evaluations/NAME, or under runs/ where there is no run."""
    if run is None:
        return Path("runs") / "evaluations" / f"random-{asked.name}"
    path = Path(run)
    return (path if path.is_dir() else path.parent) / "evaluations" / asked.name


def _evaluate(session: Session, asked: EvaluationPlan, path: Path, workers: int, controls: Path | None) -> int | None:
    from rich.console import Console

    from clocs_core.cli.display import ConsoleDisplay
    from clocs_core.workflows.evaluate import evaluate_encoder
    from clocs_core.workflows.surroundings import Surroundings

    try:
        with ConsoleDisplay(Console(stderr=True)) as display:
            around = Surroundings(session.host, display, workers, time.monotonic)
            report = evaluate_encoder(asked, path, around, controls)
    except KeyboardInterrupt:
        kept = "what is finished is kept; give the same command again to go on."
        click.echo(f"\nStopped; {kept if path.exists() else 'nothing was trained yet.'}", err=True)
        return 130
    print_summary(report.scores, report.comparisons, report.notes)
    click.echo(f"Report: {path / 'report.json'}")
    return None
