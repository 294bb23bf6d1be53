"""`clocs compare`: compare runs and evaluations, with paired differences."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clocs_core.cli.completing import complete_runs
from clocs_core.cli.output import echo
from clocs_core.cli.session import pass_session
from clocs_core.errors import SettingsError
from clocs_core.files import write_atomically
from clocs_core.plugins.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clocs_core.report.compared import Compared
    from clocs_core.report.terminal import Terminal


@click.command("compare")
@click.argument("runs", metavar="RUN…", nargs=-1, required=True, shell_complete=complete_runs)
@click.option(
    "--metric", "metrics", metavar="NAME", multiple=True, help="Metric; default: the first of the reports. Repeatable."
)
@click.option(
    "--level", type=click.Choice(["frame", "record"]), help="Scores of frames or of recordings. Default: both."
)
@click.option("--label-fraction", metavar="F", help="Label fractions to compare, comma separated. Default: all.")
@click.option("--html", metavar="FILE", help="Write the comparison as an HTML page that opens offline.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@pass_session
def compare_command(
    session: Session,
    runs: tuple[str, ...],
    metrics: tuple[str, ...],
    level: str | None,
    label_fraction: str | None,
    html: str | None,
    as_json: bool,
) -> None:
    """Compare runs or evaluations with the first one.

    RUN is a folder of `clocs run` or of `clocs evaluate`; that of several seeds stands for all its runs. Prints the
    settings that differ, the scores, and the differences of scores with bootstrap intervals over the test patients that
    they share. Runs that differ by their seed only are summarised as one: mean ± sd.
    """
    from clocs_core.artifacts.documents import print_record
    from clocs_core.cli.display import console_display
    from clocs_core.report.terminal import Terminal
    from clocs_core.workflows.compare import compare_folders
    from clocs_core.workflows.differences import Wanted

    if html is not None and Path(html).suffix.lower() not in (".html", ".htm"):
        raise SettingsError(f"--html {html}: the page is HTML; give a name that ends in .html.")
    if len(runs) < 2:
        raise SettingsError(f"A comparison needs two folders or more, got one: {runs[0]}.")
    wanted = Wanted(metrics, (level,) if level else (), _fractions(label_fraction))
    with console_display() as show:
        found = compare_folders([Path(run) for run in runs], wanted, session.catalogue, show)
    if html is not None:
        from clocs_core.report.compared_page import render_compared

        write_atomically(Path(html), render_compared(found))
    if as_json:
        echo(print_record(found), nl=False)
        return
    _show(found, Terminal(200))
    if html is not None:
        echo(f"Page: {html}")


def _fractions(text: str | None) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in (text or "").split(",") if part.strip())
    except ValueError:
        raise SettingsError(f"--label-fraction: expected numbers, comma separated, got {text!r}.") from None


def _show(found: Compared, terminal: Terminal) -> None:
    from clocs_core.report.compared import compares_rows, score_table, setting_rows
    from clocs_core.report.tables import comparison_sentence

    letters = [one.letter for one in found.compared]
    heads = ("", "weights", "protocol", "data set", "task", "part", "seeds", "folders")
    _table(terminal, heads, compares_rows(found.compared))
    if found.settings:
        _table(terminal, ("setting", *letters), setting_rows(found.settings))
    else:
        terminal.print("Their settings are all the same.\n")
    if found.scores:
        _table(terminal, *score_table(found))
    for one in found.differences:
        terminal.print(comparison_sentence(one))
    for refusal in found.refused:
        level = f" at the {refusal.level} level" if refusal.level else ""
        said = f"{refusal.a} and {refusal.b} are not paired{level}: {refusal.reason}."
        terminal.print(said)
    for note in found.notes:
        terminal.print(note)


def _table(terminal: Terminal, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    terminal.print_table(headings, rows)
    terminal.print()
