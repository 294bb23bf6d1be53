"""`clocs embed`: representations of a data set's frames, or of one's own files, as a file for whatever comes next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clocs_core.cli.flags import Flags, read_flags, with_flags, with_workers
from clocs_core.cli.ownfiles import ask_unsaid, input_options, refuse_data_set, refuse_unwritable, refuse_without_input
from clocs_core.cli.session import Session, pass_session

if TYPE_CHECKING:
    import torch

    from clocs_core.artifacts.card import EncoderCard
    from clocs_core.artifacts.embeddings import NamedRows
    from clocs_core.artifacts.encoder import LoadedEncoder
    from clocs_core.cli.display import ConsoleDisplay
    from clocs_core.plan.target import Target

F = TypeVar("F", bound=Callable[..., Any])

_FLAGS: Flags = {
    "--data-root": (
        "data",
        "data_root",
        "FOLDER",
        "Holds one folder per data set, and what is prepared from them; wins over the --root of the run. Default: the "
        "run's.",
    ),
    "--root": ("data", "root", "PATH", "This data set's own folder or file. Default: the run's on its own data set."),
    "--leads": ("data", "channels", "NAMES", "Leads by name, comma separated, or a preset of the data set."),
    "--channels": ("data", "channels", "NAMES", "The same as --leads, for signals without leads."),
    "--task": ("data", "task", "NAME", "Which question the labels answer. Default: as for --root, else its first."),
    "--split-seed": ("data", "split_seed", "N", "Which patients are in which part. Default: as for --root."),
    "--sampling-rate": ("dataset", "sampling_rate", "HZ", "Of the recordings, where the files do not say it."),
    "--unit": ("dataset", "unit", "UNIT", "Of the recordings, such as mV, where the files do not say it."),
}


def target_options(command: F) -> F:
    """The options by which a command says what the encoder of a run is to read."""
    for add in (
        with_workers,
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
        with_flags(_FLAGS),
        click.option(
            "--part",
            type=click.Choice(["train", "validation", "test", "all"]),
            help="Whose recordings: those of one part of the patients, or all. Default: all.",
        ),
        click.option("--dataset", metavar="NAME", help="The data set, the run's own by default; it may be another."),
        click.argument("run", metavar="RUN"),
    ):
        command = add(command)
    return command


def ask_target(
    session: Session, card: EncoderCard, dataset: str | None, assignments: tuple[str, ...], **flags: str | None
) -> Target:
    """What the options of `target_options` name."""
    from clocs_core.inference.embed import choose_recordings
    from clocs_core.settings.sections import DataSettings

    name = dataset or card.dataset
    given = {flag: text for flag, text in flags.items() if text is not None}
    session.catalogue.datasets.get(name)  # a misspelt name is answered before a flag of its own
    tables = read_flags(session.catalogue, _FLAGS, given, {}, {"data": DataSettings}, name)
    return choose_recordings(card, session.catalogue, name, tables, assignments)


@click.command("embed")
@target_options
@input_options
@click.option("--out", metavar="FILE", required=True, help="The .npz file to write.")
@pass_session
def embed_command(
    session: Session,
    /,
    run: str,
    inputs: tuple[str, ...],
    trained_at: str | None,
    unseen_channels: bool,
    device: str,
    out: str,
    **asked: Any,
) -> None:
    """Write the representations of frames, by the encoder of RUN (a run folder, or its encoder file).

    The frames are those of a data set, or of files of your own. What is written has `embedding` (n, E) and, for each
    row, `patient`, `record`, `channel`, `start`, `part` and `label`.
    """
    from clocs_core.artifacts.embeddings import save_rows
    from clocs_core.artifacts.encoder import load_encoder
    from clocs_core.cli.display import console_display
    from clocs_core.train.build import choose_device

    refuse_unwritable(Path(out))
    if not inputs:
        refuse_without_input(unseen_channels, trained_at)
    where = choose_device(device)
    loaded = load_encoder(Path(run), session.catalogue, where)
    with console_display() as show:
        if inputs:
            rows, about = _embed_files(loaded, inputs, trained_at, unseen_channels, where, show, **asked)
        else:
            rows, about = _embed_data_set(session, loaded, where, show, **asked)
        fixed = {"method": loaded.card.method, "trained_on": loaded.card.dataset}
        save_rows(rows, {**fixed, **about, "frame_samples": loaded.card.frame_samples}, Path(out))
    many, patients = len(set(rows.record.tolist())), len(set(rows.patient.tolist()))
    whose = f"recording{'' if many == 1 else 's'}" if inputs else f"recordings of {patients:,} patients"
    click.echo(
        f"{len(rows.embedding):,} representations of {rows.embedding.shape[1]} numbers, of {many:,} {whose}: {out}"
    )


def _embed_data_set(
    session: Session,
    loaded: LoadedEncoder,
    device: torch.device,
    show: ConsoleDisplay,
    *,
    dataset: str | None,
    part: Any,
    workers: int,
    **asked: Any,
) -> tuple[NamedRows, dict[str, object]]:
    from clocs_core.inference.embed import embed_recordings, get_recordings, name_rows

    target = ask_target(session, loaded.card, dataset, **asked)
    normalise = target.recordings.data.normalise
    cohort = get_recordings(loaded.card, target, workers, show)
    found = embed_recordings(loaded, cohort, part or "all", normalise == "min-max", device, show)
    return name_rows(found), {
        "dataset": target.recordings.name,
        "task": cohort.task.name,
        "channels": list(cohort.channels),
        "normalise": normalise,
        "split_hash": cohort.split.hash,
    }


def _embed_files(
    loaded: LoadedEncoder,
    inputs: tuple[str, ...],
    trained_at: str | None,
    unseen_channels: bool,
    device: torch.device,
    show: ConsoleDisplay,
    *,
    dataset: str | None,
    part: str | None,
    assignments: tuple[str, ...],
    workers: int,
    **flags: str | None,
) -> tuple[NamedRows, dict[str, object]]:
    from clocs_core.inference.embed import embed_files

    named = ("root", "data_root", "task", "split_seed")
    others = {f"--{name.replace('_', '-')}": flags[name] for name in named}
    refuse_data_set({"--dataset": dataset, "--part": part, **others, "-o": assignments})
    unsaid = ask_unsaid(flags, trained_at, unseen_channels)
    rows = embed_files(loaded, [Path(one) for one in inputs], unsaid, device, show)
    return rows, {"dataset": None, "normalise": loaded.card.normalise}
