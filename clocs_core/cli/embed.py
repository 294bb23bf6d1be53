"""`clocs embed`: write the embeddings of the frames of a data set, or of files, to a file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clocs_core.cli.completing import complete_runs
from clocs_core.cli.flags import AnyOption, with_processes
from clocs_core.cli.output import echo
from clocs_core.cli.processes import (
    count_processes,
    is_first,
    joined,
    met_others,
    own_place,
    start_processes,
    words_of_one,
)
from clocs_core.cli.reading import ask_dataset, ask_files, data_options, file_options, refuse_unwritable
from clocs_core.cli.session import pass_session
from clocs_core.errors import SettingsError
from clocs_core.plugins.session import Session

if TYPE_CHECKING:
    import torch

    from clocs_core.artifacts.card import EncoderCard
    from clocs_core.artifacts.embeddings import NamedRows
    from clocs_core.artifacts.encoder import LoadedEncoder
    from clocs_core.progress import Display
    from clocs_core.train.ranks import Group


@click.command("embed", cls=AnyOption)
@click.argument("run", metavar="RUN", shell_complete=complete_runs)
@data_options
@file_options
@click.option("--out", metavar="FILE", required=True, help="File to write, .npz or .csv.")
@with_processes("frames of a data set")
@pass_session
@click.pass_context
def embed_command(
    context: click.Context, session: Session, /, run: str, inputs: tuple[str, ...], out: str, device: str, **asked: Any
) -> int | None:
    """Write the embeddings of frames to a file.

    RUN is a run folder, or its encoder file. The frames come from a data set or from your own files. The file has
    `embedding` (n, E) and, for each row, `patient`, `record`, `channel`, `start`, `part` and `label`. As .csv it
    has a column for each number of the embedding.
    """
    from clocs_core.artifacts.encoder import load_encoder
    from clocs_core.cli.display import console_display
    from clocs_core.inference.embed import embed_files
    from clocs_core.progress import Display
    from clocs_core.train.build import choose_device

    refuse_unwritable(Path(out), (".npz", ".csv"), inputs)
    count = count_processes(asked["gpus"], asked["processes"])
    unsaid = ask_files(context) if inputs else None
    if inputs and (count > 1 or own_place() is not None):
        raise SettingsError("Several processes share the frames of a data set; one process reads --input.")
    if not inputs and asked["trained_at"] is not None:
        raise SettingsError("--trained-at is about --input; a data set is framed by its own options. Leave it out.")
    with met_others() as met:
        if met is None and count > 1:
            return start_processes(count, words_of_one(), "Nothing was written; repeat the same command.")
        where = choose_device(device)
        with (
            nullcontext() if met is None else joined(*met, where) as group,
            console_display() if is_first() else nullcontext(Display()) as show,
        ):
            loaded = load_encoder(Path(run), session.catalogue, where)  # after `joined`, which chooses the GPU
            if unsaid is not None:
                rows = embed_files(loaded, [Path(one) for one in inputs], unsaid, where, show)
                about: dict[str, object] = {"dataset": None, "normalise": loaded.card.normalise}
            else:
                rows, about = _embed_dataset(context, session, loaded, show, (where, group))
            if is_first():
                _save(rows, loaded.card, about, Path(out))
        if is_first():
            _say(rows, bool(inputs), out)
    return None


def _save(rows: NamedRows, card: EncoderCard, about: Mapping[str, object], out: Path) -> None:
    from clocs_core.artifacts.embeddings import save_rows
    from clocs_core.report.embeddings import save_table

    if out.suffix.lower() == ".csv":
        save_table(rows, out)
    else:
        fixed = {"method": card.method, "trained_on": card.dataset}
        save_rows(rows, {**fixed, **about, "frame_samples": card.frame_samples}, out)


def _say(rows: NamedRows, of_files: bool, out: str) -> None:
    many, patients = len(set(rows.record.tolist())), len(set(rows.patient.tolist()))
    whose = f"recording{'' if many == 1 else 's'}" if of_files else f"recordings of {patients:,} patients"
    echo(f"{len(rows.embedding):,} embeddings of {rows.embedding.shape[1]} numbers, of {many:,} {whose}: {out}")


def _embed_dataset(
    context: click.Context,
    session: Session,
    loaded: LoadedEncoder,
    show: Display,
    place: tuple[torch.device, Group | None],
) -> tuple[NamedRows, dict[str, object]]:
    """Embed a data set. place: the device, and the processes that share the frames; None for one."""
    from hashlib import sha256

    from clocs_core.artifacts.encoder import find_encoder
    from clocs_core.inference.embed import Wanted, choose_recordings, embed_recordings, get_recordings, name_rows
    from clocs_core.train.agreement import first_alone, refuse_differences, settings_facts
    from clocs_core.workflows.environment import versions

    device, group = place
    name = context.params["dataset"] or loaded.card.dataset
    target = choose_recordings(loaded.card, session.catalogue, name, {}, ask_dataset(context))
    if group is not None:
        whole = find_encoder(Path(context.params["run"])).read_bytes()
        asked = {"data set": name, "part": str(context.params["part"]), "encoder": sha256(whole).hexdigest()}
        refuse_differences({**versions(session.host), **asked, **settings_facts(target.tables())}, group, device)
    cohort = first_alone(group, device, lambda: get_recordings(loaded.card, target, context.params["workers"], show))
    if group is not None:
        frames = f"{len(cohort.evaluate.record):,} of {len(cohort.evaluate.records):,} recordings"
        refuse_differences({"split": cohort.split.hash, "frames": frames}, group, device)
    wanted = Wanted(context.params["part"] or "all")
    found = embed_recordings(loaded, target, cohort, wanted, device, show, group)
    return name_rows(found), {
        "dataset": target.recordings.name,
        "task": cohort.task.name,
        "channels": list(cohort.channels),
        "normalise": target.recordings.data.normalise,
        "split_hash": cohort.split.hash,
    }
