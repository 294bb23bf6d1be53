"""Read the files of exports, and make tables from them alone: no folder of a run is needed.

A mean and its spread over seeds are those of scores.csv. Its interval follows from these and from the spread over
patients in patients.csv. Where the two files are of different repetitions, there is no interval.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

import attrs
import numpy as np

from clocs_core.artifacts.reports import PatientSeparation
from clocs_core.contracts.grids import RANDOM, Condition
from clocs_core.errors import RunFolderError
from clocs_core.evaluation.over_seeds import interval_from_spreads
from clocs_core.grids.axes import Repeats
from clocs_core.grids.cells import GridCell, Pretraining
from clocs_core.grids.distances import TrainedRun
from clocs_core.grids.export import CALLS, COLUMNS, PATIENTS, PLACE, RUNS, SEEN, place_of, say_method
from clocs_core.grids.invocations import Invocation
from clocs_core.grids.measure import Lookup, Measure
from clocs_core.grids.summary import Difference, Judged, Line, Seen, mean_seen, spread

Repetition = tuple[int, int]  # split, seed
Place = tuple[str, ...]


@attrs.frozen
class KeptScore:
    """A score, and what the pre-training saw."""

    value: float
    seen: Seen | None


@attrs.frozen
class OverPatients:
    """The spread over patients of a mean over so many repetitions. low, high: its interval where there is one."""

    repetitions: int
    sd: float
    overlap: float
    low: float | None
    high: float | None


@attrs.frozen(eq=False)
class Kept:
    """The content of exports, by (method, place) and (a, b, place)."""

    measure: Measure
    scores: dict[tuple[str, Place], dict[Repetition, KeptScore]]
    patients: dict[tuple[str, str, Place], OverPatients]
    runs: dict[tuple[str, ...], TrainedRun]
    calls: tuple[Invocation, ...]
    commits: tuple[str, ...]

    def trained(self, run: Pretraining) -> TrainedRun | None:
        """Find a pre-training."""
        return self.runs.get(_run_key(run))

    def has(self, cell: GridCell) -> bool:
        """Tell whether a cell was scored."""
        return _repetition(cell) in self.scores.get(_key(cell, False), {})


def read_kept(folders: Sequence[Path], measure: Measure) -> Kept:
    """Read the files of one or more exports together. Raises RunFolderError where one is missing or is no such file."""
    scores: dict[tuple[str, Place], dict[Repetition, KeptScore]] = {}
    patients: dict[tuple[str, str, Place], OverPatients] = {}
    commits: dict[str, None] = {}
    for row in _read(folders, "scores.csv", COLUMNS):
        if (row["metric"], row["level"]) == measure.of:
            key, repetition = (row["method"], _place(row)), (int(row["split"]), int(row["seed"]))
            scores.setdefault(key, {})[repetition] = KeptScore(float(row["score"]), _seen(row))
            commits |= {row["commit"]: None} if row["commit"] else {}
    for row in _read(folders, "patients.csv", PATIENTS):
        if (row["metric"], row["level"]) == measure.of:
            found = OverPatients(
                *(int(row["repetitions"]), float(row["sd"]), float(row["overlap"])),
                *(float(row[end]) if row[end] else None for end in ("low", "high")),
            )
            names = row["a"], row["b"], _place(row)
            if names not in patients or patients[names].repetitions < found.repetitions:
                patients[names] = found
    calls = {row["began"]: _call(row) for row in _read(folders, "calls.csv", CALLS)}
    return Kept(measure, scores, patients, _read_runs(folders), tuple(calls.values()), tuple(commits))


@attrs.frozen
class KeptLines:
    """Makes the lines of tables from the files of exports, as `summarise` does from folders."""

    kept: Kept
    repeats: Repeats
    published: Lookup

    def line(self, condition: Condition) -> Line:
        """Summarise one condition."""
        cells = self.repeats.cells(condition)
        own, random = self._scores(cells, False), self._scores(cells, True)
        gains = {at: score.value - random[at].value for at, score in own.items() if at in random}
        name, place = _key(cells[0], False)
        return Line(
            condition=condition,
            spread=spread(_by_split({at: score.value for at, score in own.items()})),
            interval=self._judge(name, "", place, {at: score.value for at, score in own.items()}),
            gain=self._judge(name, RANDOM, place, gains) if len(gains) == len(own) else None,
            gain_value=float(np.mean(list(gains.values()))) if own and len(gains) == len(own) else None,
            printed=self.published(condition),
            done=len(own),
            wanted=len(cells),
            seen=mean_seen([score.seen for score in own.values()]),
        )

    def random_line(self, context: Condition, rows: Sequence[Condition]) -> Line:
        """Summarise the untrained encoder beside these conditions."""
        condition = attrs.evolve(context, method=RANDOM)
        cells = self.repeats.cells(rows[0])
        found = {at: score.value for at, score in self._scores(cells, True).items()}
        _, place = _key(self.repeats.cells(condition)[0], True)
        return Line(
            condition=condition,
            spread=spread(_by_split(found)),
            interval=self._judge(RANDOM, "", place, found),
            gain=None,
            gain_value=None,
            printed=self.published(condition),
            done=len(found),
            wanted=len(cells),
        )

    def differences(self, context: Condition, rows: Sequence[Condition]) -> Iterator[Difference]:
        """Compare the methods of these conditions over the repetitions that both have."""
        cells = {one.row: self.repeats.cells(one) for one in rows}
        for a, b in combinations(cells, 2):
            ours, theirs = (self._scores(cells[one], False) for one in (a, b))
            apart = {at: ours[at].value - theirs[at].value for at in ours if at in theirs}
            (name, place), (other, _) = (_key(cells[one][0], False) for one in (a, b))
            found = self._judge(name, other, place, apart)
            if found is not None:
                yield Difference(context=context, a=a, b=b, interval=found, repetitions=len(apart))

    def _scores(self, cells: Iterable[GridCell], random: bool) -> dict[Repetition, KeptScore]:
        found = ((_repetition(cell), self.kept.scores.get(_key(cell, random), {})) for cell in cells)
        return {at: by[at] for at, by in found if at in by}

    def _judge(self, a: str, b: str, place: Place, values: dict[Repetition, float]) -> Judged | None:
        found = self.kept.patients.get((a, b, place))
        if found is None or found.repetitions != len(values):
            return None
        rows = list(_by_split(values))
        each = [float(np.mean(row)) for row in rows] if len(rows) > 1 else list(rows[0])
        mean = float(np.mean(each))
        if len(each) > 1:
            low, high = interval_from_spreads(each, found.sd, found.overlap)
        elif found.low is not None and found.high is not None:
            low, high = found.low, found.high
        else:
            return None
        return Judged(mean, low, high, found.sd, found.overlap)


def _key(cell: GridCell, random: bool) -> tuple[str, Place]:
    if random or not cell.pretraining.trains:
        return RANDOM, ("", *place_of(cell)[1:])
    return say_method(cell.pretraining), place_of(cell)


def _repetition(cell: GridCell) -> Repetition:
    return cell.pretraining.split_seed, cell.pretraining.seed


def _by_split(values: dict[Repetition, float]) -> Iterator[tuple[float, ...]]:
    for split in dict.fromkeys(split for split, _ in values):
        yield tuple(value for (at, _), value in values.items() if at == split)


def _run_key(run: Pretraining) -> tuple[str, ...]:
    about = (say_method(run), run.dataset, run.leads, str(run.embedding_dim))
    return (*about, str(run.split_seed), str(run.seed))


def _read_runs(folders: Sequence[Path]) -> dict[tuple[str, ...], TrainedRun]:
    found: dict[tuple[str, ...], TrainedRun] = {}
    for row in _read(folders, "runs.csv", RUNS):
        key = tuple(row[name] for name in RUNS[:6])
        within, between, apart = (float(row[name]) for name in ("within", "between", "separation"))
        one = PatientSeparation(init=row["init"], intra_mean=within, inter_mean=between, separation=apart)
        before = found.get(key, TrainedRun(int(row["best_epoch"]), int(row["epochs"]), ()))
        if one not in before.patients:
            found[key] = attrs.evolve(before, patients=(*before.patients, one))
    return found


def _read(folders: Sequence[Path], name: str, columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    for folder in folders:
        path = folder / name
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as problem:
            raise RunFolderError(f"Cannot read {path}, which `clocs grid export` writes: {problem}.") from None
        rows = csv.DictReader(text.splitlines())
        if tuple(rows.fieldnames or ()) != columns:
            raise RunFolderError(f"{path} has other columns than `clocs grid export` writes: export the grid again.")
        yield from rows


def _place(row: dict[str, str]) -> Place:
    return tuple(row[name] for name in PLACE)


def _seen(row: dict[str, str]) -> Seen | None:
    return Seen(*(float(row[name]) for name in SEEN)) if row["steps"] else None


def _call(row: dict[str, str]) -> Invocation:
    return Invocation(
        command=row["command"],
        began=row["began"],
        seconds=float(row["seconds"]),
        at_once=int(row["at_once"]),
        done=int(row["done"]),
        failed=int(row["failed"]),
        machine=row["machine"],
        ended=row["ended"],
    )
