"""`clocs plugins test`: run the checks that every plugin must pass on the plugin in a folder."""

from __future__ import annotations

import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs
import click

from clocs_core.cli.output import echo
from clocs_core.cli.session import pass_session
from clocs_core.errors import SettingsError, neighbours
from clocs_core.plugins.session import Session
from clocs_core.report.visible import visible

if TYPE_CHECKING:
    from clocs_core.testing.checks import Check
    from clocs_core.testing.project import Project


@attrs.frozen
class _Verdict:
    """The outcome of a check, and its message: the fault and what to change, or why the check was skipped."""

    check: Check
    outcome: Literal["passed", "failed", "skipped"]
    message: str = ""


@click.command("test")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@click.option("--check", "only", metavar="NAME", multiple=True, help="Run only checks of this name. May be repeated.")
@click.option("--list", "as_list", is_flag=True, help="List the checks with their rules, and run none.")
@click.option(
    "--data-root",
    "root",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with one folder of recordings per data set. Without it, data sets with files are not read.",
)
@pass_session
def test_command(session: Session, folder: Path, only: tuple[str, ...], as_list: bool, root: Path | None) -> int:
    """Check the plugins of a project, installed or not.

    The entry points in the pyproject.toml of FOLDER name the plugins; their modules are looked for in src/ and beside
    it. The exit code is 1 if a check fails.
    """
    from clocs_core.testing.project import open_project

    project = open_project(folder, session.host.names())
    checks = _chosen(project.checks(_roots(project, root)), only)
    for conflict in [problem for shelf in project.catalogue.shelves() for problem in shelf.conflicts()]:
        echo(f"Warning: {conflict}", err=True)
    if as_list:
        for check in checks:
            echo(f"{check}  {check.rule}")
        return 0
    verdicts = _make(checks)
    _tell(verdicts)
    return 1 if any(one.outcome == "failed" for one in verdicts) else 0


def _roots(project: Project, root: Path | None) -> dict[str, Path]:
    if root is None:
        return {}
    return {one.name: root / one.name for one in project.offers() if (root / one.name).is_dir()}


def _chosen(checks: list[Check], only: Sequence[str]) -> list[Check]:
    known = {check.name for check in checks}
    for name in only:
        if name not in known:
            raise SettingsError(f"There is no check {name!r} of this plugin.{neighbours(name, known)}")
    return [check for check in checks if not only or check.name in only]


def _make(checks: list[Check]) -> list[_Verdict]:
    """Run the checks one after the other, with a progress bar on stderr."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from clocs_core.report.terminal import Terminal

    console = Terminal(stderr=True)
    columns = (BarColumn(bar_width=30), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    verdicts = []
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("", total=len(checks))
        for check in checks:
            progress.update(task, description=visible(str(check)))
            verdicts.append(_judge(check))
            progress.advance(task)
    return verdicts


def _judge(check: Check) -> _Verdict:
    from clocs_core.testing.checks import ConformanceError

    try:
        check.run()
    except ConformanceError as problem:
        return _Verdict(check, "failed", str(problem))
    except unittest.SkipTest as reason:
        return _Verdict(check, "skipped", str(reason))
    return _Verdict(check, "passed")


def _tell(verdicts: list[_Verdict]) -> None:
    """Print a line for each offer with the outcomes of its checks, then the messages of failed and skipped ones."""
    from rich.table import Table

    from clocs_core.report.terminal import Terminal

    table = Table("offer", "passed", "failed", "skipped", box=None)
    for offer in dict.fromkeys(one.check.offer for one in verdicts):
        mine = [one.outcome for one in verdicts if one.check.offer == offer]
        counts = [str(mine.count(outcome) or "") for outcome in ("passed", "failed", "skipped")]
        table.add_row(offer, *counts, style="red" if "failed" in mine else None)
    Terminal(140).print(table)
    for outcome in ("failed", "skipped"):
        for one in verdicts:
            if one.outcome == outcome:
                echo(f"{outcome.upper()} {one.message}")
    outcomes = [one.outcome for one in verdicts]
    echo(", ".join(f"{outcomes.count(one)} {one}" for one in ("passed", "failed", "skipped")) + ".")
