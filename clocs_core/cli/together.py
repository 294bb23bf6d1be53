"""`clocs run --together` and `clocs evaluate --together`: several runs, or evaluations, in one process.

Each is given by the words of its own command. A grid starts them.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import attrs
import click

from clocs_core.cli.flags import Sections, read_assignments
from clocs_core.cli.output import echo
from clocs_core.cli.wording import as_flags, flags_of
from clocs_core.errors import ClocsError, SettingsError
from clocs_core.plugins.session import Session

if TYPE_CHECKING:
    from clocs_core.workflows.several import PlannedRun
    from clocs_core.workflows.several_evaluations import PlannedEvaluation
    from clocs_core.workflows.surroundings import Surroundings

Planned = TypeVar("Planned")


@attrs.frozen(eq=False)
class Verb:
    """A command whose words are given, and the settings that its flags stand for."""

    command: click.Command
    sections: Sections


def run_together(session: Session, run: Verb, evaluate: Verb, text: str, workers: int) -> int:
    """Make several runs, then evaluations of them, and print a line for each that fails. Returns the exit code.

    text: the words of each as lists in JSON, from "run" or "evaluate" on. One that cannot be planned does not keep
    others back. Evaluations share the frames of the runs.
    """
    from clocs_core.cli.display import console_display
    from clocs_core.data.store import keeping_frames
    from clocs_core.workflows.several import pretrain_several
    from clocs_core.workflows.surroundings import Surroundings

    asked = _read(text, "run", "evaluate")
    runs = [words for words in asked if words[0] == "run"]
    planned, failed = _plan_all(runs, lambda words: _plan(session, run, words))
    with console_display() as show, keeping_frames():
        around = Surroundings(session.host, show, workers)
        outcomes = pretrain_several(planned, around)
        ended = zip(planned, outcomes, strict=True)
        failed += [(begun.keeper.path, one.problem) for begun, one in ended if one.problem is not None]
        lost = {folder for folder, _ in failed}
        wanted = [words for words in asked if words[0] == "evaluate"]
        tried = [words for words in wanted if Path(words[1]) not in lost]
        unscored = _evaluate_all(session, evaluate, tried, around)
    skipped = SettingsError("Not tried: its pre-training failed.")
    unscored += [(_folder(words), skipped) for words in wanted if words not in tried]
    return _say_failures(failed, session, run) | _say_failures(unscored, session, evaluate)


def evaluate_together(session: Session, evaluate: Verb, text: str, workers: int) -> int:
    """Make several evaluations, as `run_together` makes runs. text: the words of each, from "evaluate" on."""
    from clocs_core.cli.display import console_display
    from clocs_core.workflows.surroundings import Surroundings

    asked = _read(text, "evaluate")
    with console_display() as show:
        failed = _evaluate_all(session, evaluate, asked, Surroundings(session.host, show, workers))
    return _say_failures(failed, session, evaluate)


def _evaluate_all(
    session: Session, evaluate: Verb, asked: list[list[str]], around: Surroundings
) -> list[tuple[Path, Exception]]:
    """Make evaluations; return the folder of each that failed, with the reason."""
    from clocs_core.workflows.several_evaluations import evaluate_several

    planned, failed = _plan_all(asked, lambda words: _plan_evaluation(session, evaluate, words))
    problems = evaluate_several(planned, around)
    return failed + [(one.path, why) for one, why in zip(planned, problems, strict=True) if why is not None]


def _plan_all(
    asked: list[list[str]], plan: Callable[[list[str]], Planned]
) -> tuple[list[Planned], list[tuple[Path, Exception]]]:
    """Plan each command; return the plans, and the folder of each that cannot be planned with the reason."""
    planned, failed = list[Planned](), list[tuple[Path, Exception]]()
    for words in asked:
        try:
            planned.append(plan(words))
        except (ClocsError, click.ClickException) as problem:
            failed.append((_folder(words), problem))
    return planned, failed


def _say_failures(failed: Sequence[tuple[Path, Exception]], session: Session, verb: Verb) -> int:
    """Print a line for each that failed; return the exit code."""
    from clocs_core.cli.unforeseen_errors import describe_io, describe_unforeseen
    from clocs_core.grids.together import error_line

    flags = flags_of(verb.command)
    for folder, why in failed:
        said = str(why)
        if isinstance(why, OSError) and not isinstance(why, ClocsError):
            said = describe_io(why)
        elif not isinstance(why, (ClocsError, click.ClickException)):
            said = describe_unforeseen(why, session.host.plugins)
        echo(error_line(folder, as_flags(said, flags)), err=True)
    return 2 if failed else 0


def _read(text: str, *verbs: str) -> list[list[str]]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(one, list) and one and one[0] in verbs for one in found):
        what = " and ".join({"run": "runs", "evaluate": "evaluations"}[verb] for verb in verbs)
        raise SettingsError(f"--together takes the words of several {what} as JSON: `clocs grid run` gives them.")
    return [[str(word) for word in one] for one in found]


def _plan(session: Session, run: Verb, words: list[str]) -> PlannedRun:
    """Plan one run from the words of its command: a new one, or one that is resumed."""
    from clocs_core.artifacts.run_folder import open_run_folder, refuse_taken
    from clocs_core.artifacts.run_keeper import FolderKeeper
    from clocs_core.plan.pretraining import resolve
    from clocs_core.workflows.several import PlannedRun

    asked = run.command.make_context("run", words[1:])
    name = shlex.join(["clocs", *words])
    if asked.params["resume"] is not None:
        path = Path(asked.params["resume"])
        _, tables = open_run_folder(path)
        return PlannedRun(path.name, resolve(session.catalogue, tables), FolderKeeper(path, tables), name)
    path = _folder(words)
    plan = resolve(session.catalogue, {}, read_assignments(asked, run.sections, asked.params["assignments"]))
    refuse_taken(path)
    return PlannedRun(path.name, plan, FolderKeeper(path), name)


def _plan_evaluation(session: Session, evaluate: Verb, words: list[str]) -> PlannedEvaluation:
    """Plan one evaluation from the words of its command."""
    from clocs_core.plan.evaluation import resolve_evaluation
    from clocs_core.plan.pretrained import open_encoder
    from clocs_core.workflows.several_evaluations import PlannedEvaluation

    asked = evaluate.command.make_context("evaluate", words[1:])
    run, controls = asked.params["run"], asked.params["controls"]
    opened = None if run is None else open_encoder(Path(run), session.catalogue)
    given = read_assignments(asked, evaluate.sections, asked.params["assignments"])
    plan = resolve_evaluation(session.catalogue, opened, {}, given)
    name = shlex.join(["clocs", *words])
    return PlannedEvaluation(plan, _folder(words), Path(controls) if controls else None, name)


def _folder(words: list[str]) -> Path:
    """Return the folder of a run or an evaluation from the words of its command."""
    for flag in ("--out", "--resume"):
        if flag in words[:-1]:
            return Path(words[words.index(flag) + 1])
    raise SettingsError(f"Each command of --together needs a folder, got {shlex.join(words)}.")
