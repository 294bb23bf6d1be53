"""`clocs embed`: write the embeddings of the frames of a data set, or of files, to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clocs_core.cli.completing import complete_runs
from clocs_core.cli.flags import AnyOption
from clocs_core.cli.output import echo
from clocs_core.cli.reading import ask_dataset, ask_files, data_options, file_options, refuse_unwritable
from clocs_core.cli.session import pass_session
from clocs_core.errors import SettingsError
from clocs_core.plugins.session import Session

if TYPE_CHECKING:
    import torch

    from clocs_core.artifacts.embeddings import NamedRows
    from clocs_core.artifacts.encoder import LoadedEncoder
    from clocs_core.progress import Display


@click.command("embed", cls=AnyOption)
@click.argument("run", metavar="RUN", shell_complete=complete_runs)
@data_options
@file_options
@click.option("--out", metavar="FILE", required=True, help="File to write, .npz or .csv.")
@pass_session
@click.pass_context
def embed_command(
    context: click.Context, session: Session, /, run: str, inputs: tuple[str, ...], out: str, device: str, **asked: Any
) -> None:
    """Write the embeddings of frames to a file.

    RUN is a run folder, or its encoder file. The frames come from a data set or from your own files. The file has
    `embedding` (n, E) and, for each row, `patient`, `record`, `channel`, `start`, `part` and `label`. As .csv it
    has a column for each number of the embedding.
    """
    from clocs_core.artifacts.embeddings import save_rows
    from clocs_core.artifacts.encoder import load_encoder
    from clocs_core.cli.display import console_display
    from clocs_core.inference.embed import embed_files
    from clocs_core.report.embeddings import save_table
    from clocs_core.train.build import choose_device

    refuse_unwritable(Path(out), (".npz", ".csv"))
    unsaid = ask_files(context) if inputs else None
    if not inputs and asked["trained_at"] is not None:
        raise SettingsError("--trained-at is about --input; a data set is framed by its own options. Leave it out.")
    where = choose_device(device)
    loaded = load_encoder(Path(run), session.catalogue, where)
    card = loaded.card
    with console_display() as show:
        if unsaid is not None:
            rows = embed_files(loaded, [Path(one) for one in inputs], unsaid, where, show)
            about: dict[str, object] = {"dataset": None, "normalise": card.normalise}
        else:
            rows, about = _embed_dataset(context, session, loaded, where, show)
        fixed = {"method": card.method, "trained_on": card.dataset}
        if Path(out).suffix.lower() == ".csv":
            save_table(rows, Path(out))
        else:
            save_rows(rows, {**fixed, **about, "frame_samples": card.frame_samples}, Path(out))
    many, patients = len(set(rows.record.tolist())), len(set(rows.patient.tolist()))
    whose = f"recording{'' if many == 1 else 's'}" if inputs else f"recordings of {patients:,} patients"
    echo(f"{len(rows.embedding):,} embeddings of {rows.embedding.shape[1]} numbers, of {many:,} {whose}: {out}")


def _embed_dataset(
    context: click.Context, session: Session, loaded: LoadedEncoder, device: torch.device, show: Display
) -> tuple[NamedRows, dict[str, object]]:
    from clocs_core.inference.embed import choose_recordings, embed_recordings, get_recordings, name_rows

    name = context.params["dataset"] or loaded.card.dataset
    target = choose_recordings(loaded.card, session.catalogue, name, {}, ask_dataset(context))
    cohort = get_recordings(loaded.card, target, context.params["workers"], show)
    found = embed_recordings(loaded, target, cohort, context.params["part"] or "all", device, show)
    return name_rows(found), {
        "dataset": target.recordings.name,
        "task": cohort.task.name,
        "channels": list(cohort.channels),
        "normalise": target.recordings.data.normalise,
        "split_hash": cohort.split.hash,
    }
