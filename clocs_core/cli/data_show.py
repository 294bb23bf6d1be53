"""`clocs data show`: draw a recording on ruled paper, with its label."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from clocs_core.cli.data_prepare import ask_recordings, recordings_options
from clocs_core.cli.flags import AnyOption, read_assignments
from clocs_core.cli.output import echo
from clocs_core.cli.reading import refuse_unwritable
from clocs_core.cli.session import pass_session
from clocs_core.contracts.kinds import kind_of
from clocs_core.errors import DataError, UnknownName, neighbours
from clocs_core.plugins.session import Session

if TYPE_CHECKING:
    from clocs_core.contracts.records import Entry, Label, Listing, Record, Task


@click.command("show", cls=AnyOption)
@recordings_options
@click.option("--record", metavar="ID", help="Name of the recording; default: the first.")
@click.option(
    "--seconds", type=click.FloatRange(min=0.1), default=10.0, show_default=True, help="Length to draw, in seconds."
)
@click.option(
    "--out",
    metavar="FILE",
    default="recording.png",
    show_default=True,
    help="Picture to write: .png, .svg or .pdf.",
)
@pass_session
def show_command(session: Session, /, name: str, record: str | None, seconds: float, out: str, **where: Any) -> None:
    """Draw a recording on ruled paper.

    The picture has every channel, or those of --channels, at 25 mm/s, and the patient and the label of the recording.
    Options of the data set are flags too: --sampling-rate 125.
    """
    from clocs_core.data.cohort import scan
    from clocs_core.files import write_atomically
    from clocs_core.report.paper import ENDINGS, draw_recording

    refuse_unwritable(Path(out), ENDINGS)
    asked = ask_recordings(session, name, **where)
    listing = scan(asked)
    entry = _entry(listing, record, name)
    try:
        loaded = asked.dataset.offer.load(entry, asked.dataset.options)
    except Exception as problem:  # a reader may raise anything on a damaged file
        raise DataError(f"Record {entry.record!r} of {name!r} cannot be read: {problem}") from None
    given = read_assignments(click.get_current_context(), {}, where["assignments"])
    if any(one.name == "channels" for one in given):
        loaded = _only(loaded, asked.data.channels)
    label = _words(entry.label, listing.task or asked.task)
    title = f"{name}  {entry.record}  patient {entry.patient}  {label}"
    write_atomically(Path(out), draw_recording(loaded, title, seconds, Path(out).suffix.lower()))
    channels, samples = loaded.samples.shape
    echo(
        f"{entry.record}: patient {entry.patient}, {label}; {channels} channels, {samples:,} samples at "
        f"{loaded.sampling_rate:g} Hz ({samples / loaded.sampling_rate:g} s), {loaded.unit or 'no unit'}"
    )
    echo(f"Picture: {out}")


def _entry(listing: Listing, record: str | None, name: str) -> Entry:
    if record is None:
        return listing.entries[0]
    for entry in listing.entries:
        if entry.record == record:
            return entry
    for drop in listing.drops:
        if drop.record == record:
            raise UnknownName(f"Record {record!r} of {name!r} was left out: {drop.reason}.")
    known = [entry.record for entry in listing.entries]
    hint = neighbours(record, known) if len(known) < 50 else neighbours(record, known).partition(" There is:")[0]
    raise UnknownName(f"Data set {name!r} has no record {record!r} here.{hint} The first is {known[0]!r}.")


def _only(loaded: Record, names: tuple[str, ...]) -> Record:
    """Return these channels, in this order. All of them where the names are new ones for channels that have none."""
    if not set(names) & set(loaded.channels):
        return loaded
    if missing := [name for name in names if name not in loaded.channels]:
        raise DataError(
            f"Record {loaded.record!r} has no channel {missing[0]!r}. There is: {', '.join(loaded.channels)}."
        )
    rows = [loaded.channels.index(name) for name in names]
    return attrs.evolve(loaded, channels=names, samples=loaded.samples[rows])


def _words(label: Label, task: Task) -> str:
    if label is None:
        return "no label"
    if not isinstance(label, tuple):
        return kind_of(task).words(label, task)
    return ", ".join(f"{_words(one.label, task)} from sample {one.onset:,}" for one in label)
