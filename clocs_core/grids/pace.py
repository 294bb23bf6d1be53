"""Estimate how long jobs will take, from how long others of their kind took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median

import attrs

from clocs_core.grids.cells import GridCell, Pretraining
from clocs_core.grids.notes import Note

Kind = tuple[str, ...]


@attrs.frozen
class Pace:
    """The median seconds of jobs, by kind: as closely as earlier ones were alike, else by protocol alone."""

    seconds: dict[Kind, float]

    @classmethod
    def of(cls, notes: Iterable[Note], known: Mapping[Kind, float] | None = None) -> Pace:
        """Take the times of these jobs; those that failed, or have no time, say nothing.

        known: what jobs took elsewhere, for kinds that were not seen here; slower or quicker by as much as those that
        were.
        """
        times: dict[Kind, list[float]] = defaultdict(list)
        for note in notes:
            if not note.error and note.seconds > 0:
                for kind in _kinds(*_about(note)):
                    times[kind].append(note.seconds / max(1, len(note.cells)))
        here = {kind: median(some) for kind, some in times.items()}
        there = dict(known or {})
        ratio = median([here[kind] / there[kind] for kind in there if kind in here] or [1.0])
        return cls({kind: seconds * ratio for kind, seconds in there.items()} | here)

    def of_run(self, run: Pretraining) -> float | None:
        """Estimate the seconds of a pre-training; None where nothing like it is known."""
        return self._find("pretrain", run.method, run.dataset, str(run.embedding_dim))

    def of_evaluation(self, cells: Sequence[GridCell]) -> float | None:
        """Estimate the seconds of one evaluation of these F; None where nothing like it is known."""
        first = cells[0]
        dim = str(first.pretraining.embedding_dim)
        each = self._find(first.protocol, first.pretraining.method, first.downstream, dim)
        return None if each is None else each * len(cells)

    def remaining(
        self, runs: Sequence[Pretraining], groups: Sequence[Sequence[GridCell]], at_once: int
    ) -> float | None:
        """Estimate the seconds for all of these, `at_once` together. Unknown kinds count as the mean of the others."""
        found = [*map(self.of_run, runs), *map(self.of_evaluation, groups)]
        known = [one for one in found if one is not None]
        if not known:
            return 0.0 if not found else None
        guess = fmean(known)
        return sum(guess if one is None else one for one in found) / max(1, min(at_once, len(found)))

    def _find(self, *about: str) -> float | None:
        return next((self.seconds[kind] for kind in _kinds(*about) if kind in self.seconds), None)


def say_duration(seconds: float | None) -> str:
    """Write seconds as a person says them; "unknown" for None."""
    if seconds is None:
        return "unknown"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def _kinds(protocol: str, method: str, dataset: str, dim: str) -> tuple[Kind, ...]:
    """List the descriptions of a job, the closest first."""
    return ((protocol, method, dataset, dim), (protocol, method, dataset), (protocol, dataset), (protocol,))


def _about(note: Note) -> tuple[str, str, str, str]:
    run, cells = note.run, note.cells
    protocol, dataset = (cells[0].protocol, cells[0].downstream) if cells else ("pretrain", run.dataset)
    return protocol, run.method, dataset, str(run.embedding_dim)
