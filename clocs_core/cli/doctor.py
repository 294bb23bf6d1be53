"""`clocs doctor`: look at this machine, and say what is missing and how to get it."""

from __future__ import annotations

import json

import attrs
import click

from clocs_core.cli.flags import DATA_ROOT_HELP
from clocs_core.cli.output import echo
from clocs_core.cli.session import pass_session
from clocs_core.plugins.session import Session

_MARKS = {"ok": "ok", "missing": "--", "broken": "!!"}


@click.command("doctor")
@click.option("--data-root", "root", metavar="FOLDER", help=DATA_ROOT_HELP)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_session
def doctor_command(session: Session, root: str | None, as_json: bool) -> int:
    """Say what this machine has for clocs, and what it lacks.

    Looks at versions, GPU, memory, disk, plugins, data sets and file formats.

    Lines that begin with -- name something optional that is missing, with !! something that must be repaired; then
    the exit code is 1.
    """
    from clocs_core.workflows.doctor import examine

    findings = examine(session, root)
    if as_json:
        echo(json.dumps([attrs.asdict(one) for one in findings], indent=2, ensure_ascii=False))
    else:
        topic = ""
        for one in findings:
            if one.topic != topic:
                topic = one.topic
                echo(topic, bold=True)
            advice = f" — {one.advice}" if one.advice else ""
            echo(f"  {_MARKS[one.state]}  {one.name}: {one.found}{advice}")
    return int(any(one.state == "broken" for one in findings))
