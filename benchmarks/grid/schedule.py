"""Runs what is missing: a pre-training, then the evaluations of its encoder; a line in the ledger for each that ended.

Nothing is kept in memory that is not in the ledger or in a folder, so that a grid can be killed at any moment and
started again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from types import MappingProxyType
from typing import Protocol

import attrs

from grid.cells import Cell, Pretraining, group_by_evaluation
from grid.executor import Executor, Job, Outcome
from grid.jobs import Place, evaluation_job, pretraining_job
from grid.ledger import Entry, Ledger, Results
from grid.outcomes import Stamp, evaluation_entry, pretraining_entry, skipped_entry
from grid.pace import Pace

__all__ = ["GridDisplay", "Work", "missing_work", "run_work"]

Group = tuple[Cell, ...]
Piece = Pretraining | Group
Known = Mapping[tuple[str, ...], float]


@attrs.frozen
class Work:
    """What is to be done: pre-trainings, each with the evaluations that wait for its encoder."""

    runs: dict[Pretraining, tuple[Group, ...]]

    def __len__(self) -> int:
        return len(self.pieces())

    def pieces(self) -> tuple[Piece, ...]:
        """Every job: pre-trainings, except those that train nothing, and evaluations."""
        return (*filter(_trains, self.runs), *(group for groups in self.runs.values() for group in groups))

    def first(self) -> tuple[Piece, ...]:
        """The jobs that wait for no other."""
        return tuple(piece for run, groups in self.runs.items() for piece in ((run,) if run.trains else groups))

    def seconds(self, results: Results, at_once: int, known: Known) -> float | None:
        """How long it will take by the pace of the ledger and by what is known of elsewhere, or None."""
        trained = [run for run in self.runs if run.trains and not _is_trained(run, results)]
        groups = [group for groups in self.runs.values() for group in groups]
        return Pace.of(results, known).remaining(trained, groups, at_once)


class GridDisplay(Protocol):
    """Where a grid tells how it is getting on."""

    def advance(self, done: int, total: int, seconds_left: float | None, entry: Entry | None) -> None:
        """So many jobs of `total` have ended; `entry` is the line of the last."""


def missing_work(cells: Iterable[Cell], runs: Iterable[Pretraining], results: Results) -> Work:
    """What the ledger lacks. `runs`: pre-trainings that are wanted for themselves. What failed is tried again."""
    work: dict[Pretraining, list[Group]] = {run: [] for run in runs if not _is_trained(run, results)}
    missing = (cell for cell in cells if not results.is_done(cell))
    for group in group_by_evaluation(missing).values():
        work.setdefault(group[0].pretraining, []).append(group)
    return Work({run: tuple(groups) for run, groups in work.items()})


def run_work(
    work: Work,
    place: Place,
    executor: Executor,
    ledger: Ledger,
    stamp: Stamp,
    show: GridDisplay,
    known: Known = MappingProxyType({}),
) -> Results:
    """Do the work, each piece once what it needs is there. A job that fails costs itself and what needs it.

    known: what jobs took elsewhere, by kind, to say how long this will take.
    """
    results = ledger.read()
    left: set[Piece] = set(work.pieces())
    ready: deque[Piece] = deque(work.first())
    waiting: dict[Future[Outcome], Piece] = {}
    show.advance(0, len(work), _seconds_left(left, results, executor.at_once, known), None)
    while ready or waiting:
        while ready and len(waiting) < executor.at_once:
            piece = ready.popleft()
            waiting[executor.submit(_job(piece, place))] = piece
        for future in wait(waiting, return_when=FIRST_COMPLETED).done:
            piece, outcome = waiting.pop(future), future.result()
            for ended, entry in _lines(piece, outcome, work, place, stamp):
                if not _is_known(ended, entry, outcome, results):
                    ledger.append(entry)
                    results = Results((*results.entries, entry))
                left.discard(ended)
                remaining = _seconds_left(left, results, executor.at_once, known)
                show.advance(len(work) - len(left), len(work), remaining, entry)
                if isinstance(ended, Pretraining) and entry.status == "done":
                    ready.extendleft(reversed(work.runs[ended]))  # scores first: tables fill from the beginning
    return results


def _job(piece: Piece, place: Place) -> Job:
    return pretraining_job(piece, place) if isinstance(piece, Pretraining) else evaluation_job(piece, place)


def _lines(piece: Piece, outcome: Outcome, work: Work, place: Place, stamp: Stamp) -> list[tuple[Piece, Entry]]:
    """The line of a job, and those of the jobs that cannot be tried any more because of it."""
    job = _job(piece, place)
    if not isinstance(piece, Pretraining):
        return [(piece, evaluation_entry(piece, job, outcome, stamp))]
    entry = pretraining_entry(piece, job, outcome, stamp)
    lines: list[tuple[Piece, Entry]] = [(piece, entry)]
    for group in work.runs[piece] if entry.status == "failed" else ():
        lines.append((group, skipped_entry(group, _job(group, place), entry.error, stamp)))
    return lines


def _is_known(piece: Piece, entry: Entry, outcome: Outcome, results: Results) -> bool:
    """Whether the ledger has this line already: an encoder that is there was asked for again, and nothing was run."""
    if not isinstance(piece, Pretraining) or entry.status == "failed":
        return False
    return outcome.seconds == 0 and _is_trained(piece, results)


def _trains(run: Pretraining) -> bool:
    return run.trains


def _is_trained(run: Pretraining, results: Results) -> bool:
    found = results.pretraining(run)
    return found is not None and found.status == "done"


def _seconds_left(left: Iterable[Piece], results: Results, at_once: int, known: Known) -> float | None:
    runs = [one for one in left if isinstance(one, Pretraining) and not _is_trained(one, results)]
    groups: Sequence[Group] = [one for one in left if not isinstance(one, Pretraining)]
    return Pace.of(results, known).remaining(runs, groups, at_once)
