"""Run what is missing: a pre-training, then the evaluations of its encoder.

Everything that must survive lies in the folders and the notes beside them, so that a grid can be killed at any moment
and started again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from types import MappingProxyType
from typing import Protocol

import attrs

from clocs_core.contracts.jobs import Executor, Job, Outcome
from clocs_core.grids.cells import GridCell, Pretraining, group_by_evaluation
from clocs_core.grids.draws_ahead import Scored
from clocs_core.grids.jobs import Place, evaluation_job, pretraining_job
from clocs_core.grids.notes import Note, Stamp, begin_note, end_note, read_notes
from clocs_core.grids.pace import Pace
from clocs_core.grids.results import Results
from clocs_core.grids.together import SeveralRuns, as_one_job, following, take_alike

_OFTEN = 60.0  # seconds without the end of a job, after which the display is told that there was none

Group = tuple[GridCell, ...]
Piece = Pretraining | Group
Begun = list[tuple[Piece, Job, Note]]
"""The pieces of one job, each with its own job and the note of its beginning."""
Known = Mapping[tuple[str, ...], float]


@attrs.frozen
class Work:
    """The work that is left: pre-trainings that are missing, and the evaluations of each encoder."""

    untrained: tuple[Pretraining, ...]
    evaluations: dict[Pretraining, tuple[Group, ...]]

    def __len__(self) -> int:
        return len(self.pieces())

    def pieces(self) -> tuple[Piece, ...]:
        """List every job."""
        return (*self.untrained, *(group for groups in self.evaluations.values() for group in groups))

    def first(self) -> tuple[Piece, ...]:
        """List the jobs that wait for no other, in the order of the tables."""
        runs = dict.fromkeys((*self.evaluations, *self.untrained))
        return tuple(one for run in runs for one in ((run,) if run in self.untrained else self.evaluations[run]))


class GridDisplay(Protocol):
    """Shows how far a grid is."""

    def advance(self, done: int, total: int, seconds_left: float | None, note: Note | None) -> None:
        """Show that so many jobs of `total` have ended; `note` is about the last, None where none ended just now."""


def missing_work(cells: Iterable[GridCell], runs: Iterable[Pretraining], results: Results) -> Work:
    """Find jobs without a report; failed ones are tried again. `runs`: pre-trainings wanted for their own sake."""
    missing = [cell for cell in cells if not results.is_done(cell)]
    evaluations: dict[Pretraining, list[Group]] = {}
    for group in group_by_evaluation(missing).values():
        evaluations.setdefault(group[0].pretraining, []).append(group)
    wanted = dict.fromkeys((*runs, *evaluations))
    untrained = tuple(run for run in wanted if run.trains and not results.is_trained(run))
    return Work(untrained, {run: tuple(groups) for run, groups in evaluations.items()})


def run_work(
    work: Work,
    place: Place,
    executor: Executor,
    stamp: Stamp,
    show: GridDisplay,
    known: Known = MappingProxyType({}),
    scored: Scored = lambda cells: None,
) -> None:
    """Do the work, each piece once what it needs is there. A job that fails costs itself and what needs it.

    known: what jobs took elsewhere, by kind, to say how long this will take. scored: is told of each evaluation's
    cells.
    """
    notes = [note for _, note in read_notes(place.out)]
    left: set[Piece] = set(work.pieces())
    ready: deque[Piece] = deque(work.first())
    waiting: dict[Future[Outcome], tuple[Job, Begun]] = {}
    show.advance(0, len(work), seconds_left(left, notes, executor.at_once, known), None)
    while ready or waiting:
        while ready and len(waiting) < executor.at_once:
            pieces = take_alike(ready, place.runs_per_job)
            pieces += following(pieces, work.evaluations)
            begun = [(piece, *_begin(piece, place, stamp)) for piece in pieces]
            whole = as_one_job([job for _, job, _ in begun])
            waiting[executor.submit(whole)] = whole, begun
        done = wait(waiting, _OFTEN, FIRST_COMPLETED).done
        if not done:  # long jobs: the page is to say which of them run
            show.advance(len(work) - len(left), len(work), seconds_left(left, notes, executor.at_once, known), None)
        for future in done:
            whole, begun = waiting.pop(future)
            freed: list[Piece] = []
            for piece, note in _end(begun, _outcomes(whole, future.result()), stamp):
                others = _others(piece, work, begun)
                lost = [(group, _skip(group, note.error, place, stamp)) for group in others if note.error]
                freed += () if note.error else others
                if not (note.error or isinstance(piece, Pretraining)):
                    scored(piece)
                for one, its_note in [(piece, note), *lost]:
                    left.discard(one)
                    notes.append(its_note)
                    remaining = seconds_left(left, notes, executor.at_once, known)
                    show.advance(len(work) - len(left), len(work), remaining, its_note)
            ready.extendleft(reversed(freed))  # scores first: tables fill from the beginning


def _end(begun: Begun, outcomes: Iterable[Outcome], stamp: Stamp) -> Iterator[tuple[Piece, Note]]:
    """Write how each piece of a job ended. Pre-trainings come before the evaluations of their encoders."""
    failed: dict[Pretraining, str] = {}
    for (piece, job, note), outcome in zip(begun, outcomes, strict=True):
        if isinstance(piece, Pretraining):
            failed |= {piece: outcome.error} if outcome.error else {}
        elif piece[0].pretraining in failed:
            outcome = _not_tried(failed[piece[0].pretraining])
        yield piece, end_note(job, note, outcome, stamp)


def _others(piece: Piece, work: Work, begun: Begun) -> list[Group]:
    """List the evaluations of a pre-training that were not made in its job."""
    together = [one for one, _, _ in begun]
    groups = work.evaluations.get(piece, ()) if isinstance(piece, Pretraining) else ()
    return [group for group in groups if group not in together]


def _outcomes(job: Job, whole: Outcome) -> tuple[Outcome, ...]:
    """Tell how each part of a job ended."""
    return job.outcomes(whole) if isinstance(job, SeveralRuns) else (whole,)


def seconds_left(pieces: Collection[Piece], notes: Iterable[Note], at_once: int, known: Known) -> float | None:
    """Estimate how long these jobs will take, from the times of others; None where nothing like them is known."""
    runs = [one for one in pieces if isinstance(one, Pretraining)]
    groups = [one for one in pieces if not isinstance(one, Pretraining)]
    return Pace.of(notes, known).remaining(runs, groups, at_once)


def _begin(piece: Piece, place: Place, stamp: Stamp) -> tuple[Job, Note]:
    if isinstance(piece, Pretraining):
        job = pretraining_job(piece, place)
        return job, begin_note(job, piece, (), stamp)
    job = evaluation_job(piece, place)
    return job, begin_note(job, piece[0].pretraining, piece, stamp)


def _skip(group: Group, why: str, place: Place, stamp: Stamp) -> Note:
    """Note that an evaluation could not be tried, since its pre-training failed."""
    job, begun = _begin(group, place, stamp)
    return end_note(job, begun, _not_tried(why), stamp)


def _not_tried(why: str) -> Outcome:
    return Outcome(error=f"Not tried: its pre-training failed: {why}")
