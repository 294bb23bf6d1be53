"""`clocs similar`: the recordings of other patients that are most like one, listed and drawn."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clocs_core.cli.embed import ask_target, target_options
from clocs_core.cli.ownfiles import refuse_unwritable
from clocs_core.cli.session import Session, pass_session
from clocs_core.errors import SettingsError

if TYPE_CHECKING:
    from clocs_core.inference.similar import Similar


@click.command("similar")
@target_options
@click.option("--record", metavar="ID", required=True, help="The recording to start from.")
@click.option(
    "--neighbours", "count", type=click.IntRange(1, 50), default=5, show_default=True, help="How many to find."
)
@click.option(
    "--level",
    type=click.Choice(["recording", "frame"]),
    default="recording",
    show_default=True,
    help="Compare recordings, each the mean of its frames' representations, or single frames.",
)
@click.option(
    "--nearness",
    type=click.Choice(["euclidean", "cosine"]),
    default="euclidean",
    show_default=True,
    help="The distance of two representations.",
)
@click.option(
    "--frame",
    type=click.IntRange(min=0),
    help="Of --level frame: which frame asks, from 0. Default: the first that can be used.",
)
@click.option("--lead", metavar="NAME", help="Of --level frame: which lead or channel of it. Default: as for --frame.")
@click.option("--out", metavar="FILE", help="Draw the traces into a .html page or a .png picture.")
@pass_session
def similar_command(
    session: Session,
    /,
    run: str,
    dataset: str | None,
    part: Any,
    device: str,
    workers: int,
    record: str,
    count: int,
    level: Any,
    nearness: Any,
    frame: int | None,
    lead: str | None,
    out: str | None,
    **asked: Any,
) -> None:
    """Find the recordings of other patients that are nearest to one, by the encoder of RUN, and draw them.

    RUN is a run folder, or its encoder file. --part says among whose recordings to look; the one that asks may be of
    any part.
    """
    from clocs_core.artifacts.encoder import load_encoder
    from clocs_core.cli.display import console_display
    from clocs_core.inference.embed import embed_recordings, get_recordings
    from clocs_core.inference.similar import find_patient, find_similar
    from clocs_core.report.neighbours import draw_similar
    from clocs_core.train.build import choose_device

    _refuse(level, frame, lead, out)
    where = choose_device(device)
    loaded = load_encoder(Path(run), session.catalogue, where)
    target = ask_target(session, loaded.card, dataset, **asked)
    with console_display() as show:
        cohort = get_recordings(loaded.card, target, workers, show)
        patient = find_patient(cohort, record, target.recordings.name)
        normalise = target.recordings.data.normalise == "min-max"
        found = embed_recordings(loaded, cohort, part or "all", normalise, where, show, frozenset({patient}))
    similar = find_similar(found, record, level, nearness, count, frame, lead)
    _print(similar)
    if out is not None:
        _write(similar, draw_similar(found, similar), Path(out))
        click.echo(f"Traces: {out}")


def _refuse(level: str, frame: int | None, lead: str | None, out: str | None) -> None:
    if level == "recording" and (frame is not None or lead is not None):
        named = "--frame" if frame is not None else "--lead"
        raise SettingsError(f"{named} chooses a single frame; add `--level frame`, or leave it out.")
    if out is None:
        return
    if Path(out).suffix.lower() not in (".html", ".png"):
        raise SettingsError(f"--out {out}: expected a name that ends in .html or .png.")
    refuse_unwritable(Path(out))


def _print(similar: Similar) -> None:
    from rich.console import Console
    from rich.table import Table

    headings, rows = _table(similar)
    table = Table(*headings, box=None)
    for row in rows:
        table.add_row(*row)
    console = Console(width=None if os.isatty(1) else 140, markup=False, highlight=False)
    console.print(similar.sentence(), soft_wrap=True)
    console.print(table)


def _table(similar: Similar) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and rows: rank, distance, whose, diagnosis and part; of frames, where they begin too."""
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
