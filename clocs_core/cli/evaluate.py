"""`clocs evaluate`: evaluate an encoder on labelled recordings, frozen or fine-tuned, beside its controls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from clocs_core.cli.completing import complete_runs
from clocs_core.cli.flags import (
    AnyOption,
    read_assignments,
    with_options,
    with_processes,
    with_settings,
    with_workers,
)
from clocs_core.cli.output import echo
from clocs_core.cli.processes import Place, count_processes, joined, met_others, start_processes, words_of_one
from clocs_core.cli.session import pass_session
from clocs_core.cli.summary import print_summary
from clocs_core.cli.together import Verb, evaluate_together
from clocs_core.errors import SettingsError
from clocs_core.plugins.session import Session
from clocs_core.settings.sections import DataSettings, EvaluationSettings, FinetuneSettings, ScoringSettings

if TYPE_CHECKING:
    from clocs_core.plan.evaluation import EvaluationPlan
    from clocs_core.train.ranks import Group

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
@click.option(
    "--together", metavar="JSON", hidden=True, help="Make several evaluations: the words of each, from a grid."
)
@with_options
@with_workers
@with_processes("work of encoders")
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
    together: str | None,
    assignments: tuple[str, ...],
    workers: int,
    gpus: int | None,
    processes: int | None,
    **_flags: str | None,
) -> int | None:
    """Evaluate the encoder of a run on its own or another data set.

    RUN is the folder of a `clocs run`, or its encoder.safetensors. The same encoder untrained and the class prior are
    always scored beside it. An interrupted evaluation is resumed when the same command is given again; a finished one
    prints its table.
    """
    from clocs_core.plan.evaluation import resolve_evaluation
    from clocs_core.plan.pretrained import open_encoder

    if together is not None:
        return evaluate_together(session, EVALUATE, together, workers)
    if random == (run is not None):
        raise SettingsError(
            "Give one of the two: RUN, the folder of a `clocs run`, or --random with --encoder NAME."
            if not random
            else f"--random evaluates no run; leave out {run}, or --random."
        )
    count = count_processes(gpus, processes)
    with met_others() as met:
        opened = None if run is None else open_encoder(Path(run), session.catalogue)
        plan = resolve_evaluation(session.catalogue, opened, {}, read_assignments(context, SECTIONS, assignments))
        how = _Start(
            session, workers, Path(out) if out else _own_folder(run, plan), Path(controls) if controls else None
        )
        if met is not None:
            return _evaluate_together(how, plan, met)
        if count > 1:
            return start_processes(count, words_of_one(), "Finished classifiers are kept: the same command goes on.")
        return _evaluate(how, plan)


EVALUATE = Verb(evaluate_command, SECTIONS)


@attrs.frozen
class _Start:
    """How an evaluation was started: its folder, and that of shared controls."""

    session: Session
    workers: int
    path: Path
    controls: Path | None


def _own_folder(run: str | None, plan: EvaluationPlan) -> Path:
    """Return RUN/evaluations/NAME, or a folder under runs/ where there is no run."""
    if run is None:
        return Path("runs") / "evaluations" / f"random-{plan.name}"
    path = Path(run)
    return (path if path.is_dir() else path.parent) / "evaluations" / plan.name


def _evaluate_together(how: _Start, plan: EvaluationPlan, met: tuple[Place, Any]) -> int | None:
    """Evaluate as one of several processes: the first leads and writes, the others share its work."""
    from clocs_core.train.agreement import refuse_differences, settings_facts
    from clocs_core.train.build import choose_device
    from clocs_core.workflows.environment import versions
    from clocs_core.workflows.evaluate import follow_evaluation
    from clocs_core.workflows.surroundings import Surroundings

    device, host = choose_device(plan.settings.device), how.session.host
    with joined(*met, device) as group:
        refuse_differences({**versions(host), **settings_facts(plan.tables()), "folder": str(how.path)}, group, device)
        if group.rank == 0:
            return _evaluate(how, plan, group)
        follow_evaluation(plan, Surroundings(host, workers=how.workers, announces=False, group=group))
    return None


def _evaluate(how: _Start, plan: EvaluationPlan, group: Group | None = None) -> int | None:
    from clocs_core.artifacts.evaluation_folder import EvaluationFolder
    from clocs_core.cli.display import console_display
    from clocs_core.workflows.evaluate import evaluate_encoder
    from clocs_core.workflows.surroundings import Surroundings

    try:
        with console_display() as show:
            around = Surroundings(how.session.host, show, how.workers, group=group)
            report = evaluate_encoder(plan, how.path, around, how.controls).report
    except KeyboardInterrupt as stop:
        kept = "finished classifiers are kept; repeat the same command to resume."
        stop.add_note(f"Stopped; {kept if how.path.exists() else 'nothing was trained yet.'}")
        raise
    print_summary(report.scores, report.comparisons, report.notes)
    folder = EvaluationFolder(how.path)  # evaluations of earlier versions have no page
    echo(f"Report: {folder.page if folder.page.exists() else folder.report}")
    return None
