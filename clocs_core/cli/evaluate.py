"""`clocs evaluate`: evaluate an encoder on labelled recordings, frozen or fine-tuned, beside its controls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clocs_core.cli.completing import complete_runs
from clocs_core.cli.flags import AnyOption, read_assignments, with_options, with_settings, with_workers
from clocs_core.cli.output import echo
from clocs_core.cli.session import pass_session
from clocs_core.cli.summary import print_summary
from clocs_core.errors import SettingsError
from clocs_core.plugins.session import Session
from clocs_core.settings.sections import DataSettings, EvaluationSettings, FinetuneSettings, ScoringSettings

if TYPE_CHECKING:
    from clocs_core.plan.evaluation import EvaluationPlan

SECTIONS = {
    "evaluation": EvaluationSettings,
    "evaluate": ScoringSettings,
    "data": DataSettings,
    "finetune": FinetuneSettings,
}


@click.command("evaluate", cls=AnyOption)
@click.argument("run", metavar="[RUN]", required=False, shell_complete=complete_runs)
@click.option("--random", is_flag=True, help="Instead of RUN: evaluate an untrained encoder, see --encoder.")
@with_settings(
    SECTIONS,
    task="Task of the data set; default: the run's on its own data set, else the first.",
    split_seed="Seed of the split of patients; default: the run's on its own data set, else 0.",
    root="Folder or file of this data set; default: the run's on its own data set.",
)
@click.option("--out", metavar="FOLDER", help="Folder of the evaluation. Default: one in RUN, or under runs/.")
@click.option(
    "--controls",
    metavar="FOLDER",
    help="Folder that evaluations share: copy `random` and the class prior from it, or add them to it.",
)
@with_options
@with_workers
@pass_session
@click.pass_context
def evaluate_command(
    context: click.Context,
    session: Session,
    /,
    run: str | None,
    random: bool,
    out: str | None,
    controls: str | None,
    assignments: tuple[str, ...],
    workers: int,
    **_flags: str | None,
) -> int | None:
    """Evaluate the encoder of a run on its own or another data set.

    RUN is the folder of a `clocs run`, or its encoder.safetensors. The same encoder untrained and the class prior are
    always scored beside it. An interrupted evaluation is resumed when the same command is given again; a finished one
    prints its table.
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
    plan = resolve_evaluation(session.catalogue, opened, {}, read_assignments(context, SECTIONS, assignments))
    folder = Path(out) if out else _own_folder(run, plan)
    return _evaluate(session, plan, folder, workers, Path(controls) if controls else None)


def _own_folder(run: str | None, plan: EvaluationPlan) -> Path:
    """Return RUN/evaluations/NAME, or a folder under runs/ where there is no run."""
    if run is None:
        return Path("runs") / "evaluations" / f"random-{plan.name}"
    path = Path(run)
    return (path if path.is_dir() else path.parent) / "evaluations" / plan.name


def _evaluate(session: Session, plan: EvaluationPlan, path: Path, workers: int, controls: Path | None) -> int | None:
    from clocs_core.artifacts.evaluation_folder import EvaluationFolder
    from clocs_core.cli.display import console_display
    from clocs_core.workflows.evaluate import evaluate_encoder
    from clocs_core.workflows.surroundings import Surroundings

    try:
        with console_display() as show:
            report = evaluate_encoder(plan, path, Surroundings(session.host, show, workers), controls).report
    except KeyboardInterrupt as stop:
        kept = "finished classifiers are kept; repeat the same command to resume."
        stop.add_note(f"Stopped; {kept if path.exists() else 'nothing was trained yet.'}")
        raise
    print_summary(report.scores, report.comparisons, report.notes)
    folder = EvaluationFolder(path)  # evaluations of earlier versions have no page
    echo(f"Report: {folder.page if folder.page.exists() else folder.report}")
    return None
