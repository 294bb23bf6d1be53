"""`clocs similar`: find the recordings of other patients that are most similar to one, and draw them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clocs_core.cli.completing import complete_runs
from clocs_core.cli.flags import AnyOption
from clocs_core.cli.output import echo
from clocs_core.cli.reading import ask_dataset, data_options, refuse_unwritable
from clocs_core.cli.session import pass_session
from clocs_core.errors import SettingsError
from clocs_core.plugins.session import Session

if TYPE_CHECKING:
    from clocs_core.inference.similar import Similar


@click.command("similar", cls=AnyOption)
@click.argument("run", metavar="RUN", shell_complete=complete_runs)
@data_options
@click.option("--record", metavar="ID", required=True, help="Recording to search with.")
@click.option(
    "--neighbours", "count", type=click.IntRange(1, 50), default=5, show_default=True, help="Number of neighbours."
)
@click.option(
    "--level",
    type=click.Choice(["recording", "frame"]),
    default="recording",
    show_default=True,
    help="Compare recordings, each the mean of its frames' embeddings, or single frames.",
)
@click.option(
    "--nearness",
    type=click.Choice(["euclidean", "cosine"]),
    default="euclidean",
    show_default=True,
    help="Distance between two embeddings.",
)
@click.option(
    "--frame",
    type=click.IntRange(min=0),
    help="With --level frame: number of the frame to search with, from 0. Default: the first usable one.",
)
@click.option("--lead", metavar="NAME", help="With --level frame: its lead or channel. Default: the first usable one.")
@click.option("--out", metavar="FILE", help="Draw the traces into a .html page or a .png picture.")
@pass_session
@click.pass_context
def similar_command(
    context: click.Context, session: Session, /, run: str, record: str, out: str | None, **asked: Any
) -> None:
    """Find the nearest recordings of other patients, and draw them.

    RUN is a run folder, or its encoder file, whose embeddings are compared. --part chooses the patients to search; the
    recording itself may be of any part.
    """
    from clocs_core.artifacts.encoder import load_encoder
    from clocs_core.cli.display import console_display
    from clocs_core.inference.embed import Wanted, choose_recordings, embed_recordings, get_recordings
    from clocs_core.inference.similar import find_patient, find_similar
    from clocs_core.report.neighbours import draw_similar
    from clocs_core.train.build import choose_device

    level, frame, lead = asked["level"], asked["frame"], asked["lead"]
    _refuse(level, frame, lead, out)
    where = choose_device(asked["device"])
    loaded = load_encoder(Path(run), session.catalogue, where)
    name = asked["dataset"] or loaded.card.dataset
    target = choose_recordings(loaded.card, session.catalogue, name, {}, ask_dataset(context))
    with console_display() as show:
        cohort = get_recordings(loaded.card, target, asked["workers"], show)
        patient = find_patient(cohort, record, target.recordings.name)
        wanted = Wanted(asked["part"] or "all", frozenset({patient}))
        found = embed_recordings(loaded, target, cohort, wanted, where, show)
    similar = find_similar(found, record, level, asked["nearness"], asked["count"], frame, lead)
    _print(similar)
    if out is not None:
        _write(similar, draw_similar(found, similar), Path(out))
        echo(f"Traces: {out}")


def _refuse(level: str, frame: int | None, lead: str | None, out: str | None) -> None:
    if level == "recording" and (frame is not None or lead is not None):
        named = "--frame" if frame is not None else "--lead"
        raise SettingsError(f"{named} chooses a single frame; add `--level frame`, or leave it out.")
    if out is not None:
        refuse_unwritable(Path(out), (".html", ".png"))


def _print(similar: Similar) -> None:
    from clocs_core.report.terminal import Terminal

    terminal = Terminal(140)
    terminal.print(similar.sentence(), soft_wrap=True)
    terminal.print_table(*_table(similar))


def _table(similar: Similar) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return headings and rows: rank, distance, record, patient, diagnosis, part; for frames, channel and start too."""
    single = similar.level == "frame"
    headings = ("rank", "distance", "record", *(("channel", "start") if single else ()), "patient", "diagnosis", "part")
    rows = []
    for one in similar.neighbours:
        place = one.place
        where = (place.channel, f"{place.start:,}") if single else ()
        who = (place.patient, place.label, place.part)
        rows.append((str(one.rank), f"{one.distance:.4g}", place.record, *where, *who))
    return headings, rows


def _write(similar: Similar, picture: Any, path: Path) -> None:
    from clocs_core.files import write_atomically
    from clocs_core.report.neighbours import render_neighbours

    if path.suffix.lower() == ".png":
        write_atomically(path, picture.png)
        return
    headings, rows = _table(similar)
    title = f"Nearest to {similar.query.record}"
    write_atomically(path, render_neighbours(title, similar.sentence(), headings, rows, picture))
