"""`clocs embed`: the representations of every frame of a data set, as a file for whatever comes next."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clocs_core.cli.session import Session, pass_session
from clocs_core.errors import SettingsError

if TYPE_CHECKING:
    from clocs_core.representations import Target
    from clocs_core.train.encoderfile import EncoderCard

__all__ = ["ask_target", "embed_command", "refuse_unwritable", "target_options"]

F = TypeVar("F", bound=Callable[..., Any])


def target_options(command: F) -> F:
    """The options by which a command says what the encoder of a run is to read."""
    for add in (
        click.option(
            "--workers",
            type=click.IntRange(min=1),
            default=os.cpu_count() or 1,
            show_default="one per core",
            help="Processes that read recordings.",
        ),
        click.option(
            "--device",
            type=click.Choice(["auto", "cpu", "cuda"]),
            default="auto",
            show_default=True,
            help="Where to compute.",
        ),
        click.option(
            "-o",
            "--option",
            "assignments",
            metavar="NAME=VALUE",
            multiple=True,
            help="Of the data set, its settings or its framing, such as `-o normalise=none`. May be repeated.",
        ),
        click.option("--split-seed", metavar="N", help="Which patients are in which part; the run's on its data set."),
        click.option("--task", metavar="NAME", help="Which question the labels answer; the data set's first."),
        click.option("--channels", metavar="NAMES", help="The same as --leads, for signals without leads."),
        click.option("--leads", metavar="NAMES", help="Leads by name, comma separated, or a preset of the data set."),
        click.option("--root", metavar="PATH", help="This data set's own folder or file."),
        click.option("--data-root", metavar="FOLDER", help="Holds one folder per data set. Default: the run's."),
        click.option(
            "--part",
            type=click.Choice(["train", "validation", "test", "all"]),
            default="all",
            show_default=True,
            help="Whose recordings: those of one part of the patients, or all.",
        ),
        click.option("--dataset", metavar="NAME", help="The data set, the run's own by default; it may be another."),
        click.argument("run", metavar="RUN"),
    ):
        command = add(command)
    return command


def ask_target(
    session: Session, card: EncoderCard, dataset: str | None, assignments: tuple[str, ...], **flags: str | None
) -> Target:
    """What the options of `target_options` name. The text of a flag is read as the type of its setting."""
    from clocs_core.options import field_types, from_text
    from clocs_core.representations import choose_recordings
    from clocs_core.settings import DataSettings

    given = {name: text for name, text in flags.items() if text is not None}
    if "leads" in given and "channels" in given:
        raise SettingsError("--leads and --channels are two names for one setting; give one of them.")
    if "leads" in given:
        given["channels"] = given.pop("leads")
    kinds = field_types(DataSettings)
    data = {name: from_text(kinds[name], text) for name, text in given.items()}
    return choose_recordings(card, session.catalogue, dataset or card.dataset, data, assignments)


def refuse_unwritable(path: Path) -> None:
    """Raise SettingsError for a file that could not be written, before an hour is spent on what goes into it."""
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise SettingsError(f"Cannot write {path}: {folder if not path.is_dir() else path} is not a place for a file.")


@click.command("embed")
@target_options
@click.option("--out", metavar="FILE", required=True, help="The .npz file to write.")
@pass_session
def embed_command(
    session: Session, /, run: str, dataset: str | None, part: Any, device: str, workers: int, out: str, **asked: Any
) -> None:
    """Write the representations of a data set's frames, by the encoder of RUN (a run folder, or its encoder file).

    The file has `embedding` (n, E) and, for each row, `patient`, `record`, `channel`, `start`, `part` and `label`.
    """
    from rich.console import Console

    from clocs_core.cli.display import ConsoleDisplay
    from clocs_core.representations import embed_recordings, get_recordings, save_representations
    from clocs_core.train.assemble import choose_device
    from clocs_core.train.encoderfile import load_encoder

    refuse_unwritable(Path(out))
    where = choose_device(device)
    loaded = load_encoder(Path(run), session.catalogue, where)
    target = ask_target(session, loaded.about, dataset, **asked)
    normalise = target.recordings.data.normalise
    with ConsoleDisplay(Console(stderr=True)) as show:
        material = get_recordings(loaded.about, target, workers, show)
        found = embed_recordings(loaded, material, part, normalise == "min-max", where, show)
        about = {
            "method": loaded.about.method,
            "trained_on": loaded.about.dataset,
            "dataset": target.recordings.name,
            "task": material.task.name,
            "channels": list(material.channels),
            "normalise": normalise,
            "frame_samples": loaded.about.frame_samples,
            "split_hash": material.split.hash,
        }
        save_representations(found, about, Path(out))
    rows = found.features
    click.echo(
        f"{len(rows):,} representations of {rows.embedding.shape[1]} numbers, of {len(set(rows.record.tolist())):,} "
        f"recordings of {len(set(rows.patient.tolist())):,} patients: {out}"
    )
