"""Keep a note beside the folder of every job: what the folder itself cannot say of the process that filled it.

A folder with a report.json is done, and the report holds what was found; a note repeats none of it. It has what only
the grid knows: the settings that the folder's name gives as a hash, the state of the source, the call that ran the job,
how long the process took, and why it failed. A note is one file, replaced as a whole: a kill leaves the old or the new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import attrs

from clocs_core.artifacts.documents import dump_record, read_object, structure_sealed
from clocs_core.contracts.jobs import Job, Outcome
from clocs_core.files import sweep, write_atomically
from clocs_core.grids.cells import GridCell, Pretraining


@attrs.frozen(kw_only=True)
class Note:
    """Facts about a job that its report does not have.

    run: the pre-training, or the one whose encoder is evaluated. cells: the scores of an evaluation; empty for a
    pre-training. commit: the state of the source. invocation: the mark of the call that started the job last. finished:
    when it ended, in UTC; "" until then. seconds: of the process; 0 where it ended after its grid was killed.
    """

    name: str
    run: Pretraining
    cells: tuple[GridCell, ...] = ()
    commit: str = ""
    invocation: str = ""
    finished: str = ""
    seconds: float = 0.0
    error: str = ""


@attrs.frozen
class Stamp:
    """The origin of a note. now: the time, in UTC. invocation: the mark of this call."""

    commit: str
    now: Callable[[], datetime]
    invocation: str = ""


def begin_note(job: Job, run: Pretraining, cells: tuple[GridCell, ...], stamp: Stamp) -> Note:
    """Write that a job is started, so that its commit is known even if it outlives its grid."""
    note = Note(name=job.name, run=run, cells=cells, commit=stamp.commit, invocation=stamp.invocation)
    return _write(job.folder, note)


def end_note(job: Job, begun: Note, outcome: Outcome, stamp: Stamp) -> Note:
    """Write how a job ended. Where another grid ran it meanwhile, the note of that grid stays."""
    now = stamp.now().isoformat(timespec="seconds")
    ended = attrs.evolve(begun, finished=now, seconds=round(outcome.seconds, 3), error=outcome.error)
    kept = read_note(job.folder)
    if not outcome.error and not outcome.seconds and kept is not None and kept.finished:
        return kept
    return _write(job.folder, ended)


def read_note(folder: Path) -> Note | None:
    """Read the note beside a folder; None where there is none. Raises RunFolderError for a damaged one."""
    path = note_path(folder)
    if not path.exists():
        return None
    what = f"{path} (a note about a job; without it only the job's time and commit are lost)"
    return structure_sealed(read_object(path.read_text(encoding="utf-8"), what), Note, what)


def read_notes(out: Path) -> Iterator[tuple[Path, Note]]:
    """Read every note of a grid, with the folder that it is about."""
    for path in sorted([*out.glob("pretrained/*.json"), *out.glob("evaluated/*/*.json")]):
        folder = path.with_name(path.name.removesuffix(".json"))
        note = read_note(folder)
        if note is not None:
            yield folder, note


def note_path(folder: Path) -> Path:
    """Return the path of the note about a folder."""
    return folder.with_name(f"{folder.name}.json")


def _write(folder: Path, note: Note) -> Note:
    folder.parent.mkdir(parents=True, exist_ok=True)
    sweep(folder.parent)
    write_atomically(note_path(folder), dump_record(note))
    return note
