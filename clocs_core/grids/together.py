"""Several pre-trainings, or evaluations, as one job of one process. Each keeps its own folder, lock and note.

A pre-training goes together with the evaluations of its encoder that read the same recordings: to load the libraries of
a GPU and the frames again would take longer than a linear evaluation.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from clocs_core.contracts.jobs import Job, Outcome
from clocs_core.grids.cells import GridCell, Pretraining


@attrs.frozen(kw_only=True)
class SeveralRuns(Job):
    """Pre-trainings, then evaluations, that one process makes. The log is that of the first."""

    parts: tuple[Job, ...]

    @property
    def locks(self) -> tuple[Path, ...]:
        """The locks of all parts, in an order that all grids have: two that share parts do not wait for each other."""
        return tuple(sorted(part.lock for part in self.parts))

    def command(self) -> tuple[str, ...] | None:
        """Choose the command for what remains to be run; None where all reports are there."""
        left = [words for part in self.parts if (words := part.command()) is not None]
        if len(left) < 2:
            return left[0] if left else None
        return (left[0][0], "--together", json.dumps(left))  # "run", where evaluations may follow, or "evaluate"

    def outcomes(self, whole: Outcome) -> tuple[Outcome, ...]:
        """Tell how each part ended, from how the process did: a part with a report is done, whatever befell others."""
        each = whole.seconds / len(self.parts)
        return tuple(
            Outcome(seconds=each) if part.command() is None else Outcome(self._error(part, whole), each)
            for part in self.parts
        )

    def _error(self, part: Job, whole: Outcome) -> str:
        """Find what the process said of a part, in its last words about it; else how the process ended."""
        begin = error_line(part.folder, "")
        said = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        mine = [line.strip() for line in said if line.strip().startswith(begin)]
        why = f"Error: {mine[-1].removeprefix(begin)} ({self.log.name})" if mine else whole.error
        return why or "It ended without a report."


def error_line(folder: Path, text: str) -> str:
    """Return the line in which a process that makes several runs says why one of them failed."""
    return f"Error: {folder.name}: {text}"


def as_one_job(parts: Sequence[Job]) -> Job:
    """Make one job of several pre-trainings or evaluations, or return the only one as it is."""
    first, *others = parts
    if not others:
        return first
    name = f"{first.name} and {len(others)} more"
    return SeveralRuns(name=name, folder=first.folder, fresh=(), resume=(), group=first.group, parts=tuple(parts))


def take_alike(ready: deque[Pretraining | tuple[GridCell, ...]], most: int) -> list[Pretraining | tuple[GridCell, ...]]:
    """Take the next piece of work and others of its kind that read the same recordings, `most` in all.

    They share frames where their leads, framing and split are the same too; others of the data set cost no more than
    alone. Where the pieces of the same leads need several jobs, each job takes one of every few, so that the runs of a
    method that takes long are not all in one.
    """
    first = ready[0]
    if most == 1:
        return [ready.popleft()]
    alike = [one for one in ready if _reads(one) == _reads(first)]
    close = [one for one in alike if _leads(one) == _leads(first)]
    others = [one for one in alike if _leads(one) != _leads(first)]
    jobs = -(-len(close) // most)
    found = sorted(close, key=_method)[::jobs] if jobs > 1 else [*close, *others][:most]
    for one in found:
        ready.remove(one)
    return found


def following(
    pieces: Iterable[Pretraining | tuple[GridCell, ...]],
    evaluations: Mapping[Pretraining, Sequence[tuple[GridCell, ...]]],
) -> list[tuple[GridCell, ...]]:
    """List the evaluations of these pre-trainings that read the recordings of the pre-training."""
    runs = [one for one in pieces if isinstance(one, Pretraining)]
    return [group for run in runs for group in evaluations.get(run, ()) if group[0].downstream == run.dataset]


def _reads(piece: Pretraining | tuple[GridCell, ...]) -> tuple[str, ...]:
    """Return the kind of a piece of work, and the data set that it reads."""
    if isinstance(piece, Pretraining):
        return "pretrain", piece.dataset
    return "evaluate", piece[0].downstream, piece[0].protocol


def _method(piece: Pretraining | tuple[GridCell, ...]) -> str:
    return piece.method if isinstance(piece, Pretraining) else piece[0].pretraining.method


def _leads(piece: Pretraining | tuple[GridCell, ...]) -> str:
    return piece.leads if isinstance(piece, Pretraining) else piece[0].pretraining.leads
