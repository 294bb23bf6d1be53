"""Read the files of exports, and make tables from them alone: no folder of a run is needed.

A mean and its spread over seeds are those of scores.csv. Its interval follows from these and from the spread over
patients in patients.csv. There is no interval where patients.csv is of other repetitions than the mean.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import TypeVar

import attrs
import numpy as np

from clocs_core.artifacts.reports import PatientSeparation
from clocs_core.contracts.grids import RANDOM, Condition
from clocs_core.errors import RunFolderError
from clocs_core.evaluation.bootstrap import limits_of_difference
from clocs_core.evaluation.over_seeds import interval_from_spreads
from clocs_core.grids.axes import Repeats
from clocs_core.grids.cells import ENCODER, GridCell, Pretraining
from clocs_core.grids.distances import TrainedRun
from clocs_core.grids.draws import find_metric
from clocs_core.grids.export import (
    CALLS,
    COLUMNS,
    PATIENTS,
    PLACE,
    RUNS,
    SEEN,
    Repetition,
    Row,
    repetition_of,
    say_method,
    say_repetitions,
    score_key,
)
from clocs_core.grids.invocations import Invocation
from clocs_core.grids.measure import Lookup, Measure
from clocs_core.grids.summary import Difference, Judged, Line, Seen, mean_seen, spread, untrained_condition
from clocs_core.grids.untrained import is_of, say_untrained

Parsed = TypeVar("Parsed")


@attrs.frozen
class KeptScore:
    """A score, and what the pre-training saw. encoder: what was scored; "" where an older file does not say it."""

    value: float
    seen: Seen | None
    encoder: str = ""


@attrs.frozen
class OverPatients:
    """The spread over patients of a mean over repetitions. low, high: its interval where there is one repetition."""

    sd: float
    overlap: float
    low: float | None
    high: float | None


@attrs.frozen(eq=False)
class Kept:
    """The content of exports. scores: by (method, place) and repetition. patients: by (a, b, place, repetitions).

    untrained: scores of untrained encoders, by place, encoder and repetition; there, the place is without pre-training.
    beside: scores by other measures, by their name.
    """

    measure: Measure
    scores: dict[Row, dict[Repetition, KeptScore]]
    untrained: dict[Row, dict[str, dict[Repetition, KeptScore]]]
    patients: dict[Row, OverPatients]
    runs: dict[Row, TrainedRun]
    calls: tuple[Invocation, ...]
    commits: tuple[str, ...]
    beside: dict[str, dict[Row, dict[Repetition, float]]] = attrs.field(factory=dict)

    @property
    def count(self) -> int:
        """The number of scores."""
        untrained = (by for encoders in self.untrained.values() for by in encoders.values())
        return sum(map(len, [*self.scores.values(), *untrained]))

    def trained(self, run: Pretraining) -> TrainedRun | None:
        """Find a pre-training."""
        return self.runs.get(_run_key(run))

    def has(self, cell: GridCell) -> bool:
        """Tell whether a cell was scored."""
        about, repetition = score_key(cell)
        if cell.pretraining.trains:
            return repetition in self.scores.get(about, {})
        return any(repetition in found for found in self.untrained.get(about[1:], {}).values())


def read_kept(folders: Sequence[Path], measure: Measure) -> Kept:
    """Read the files of one or more exports together.

    Raises RunFolderError where one is missing, damaged or no such file, and where two have different scores of a cell.
    """
    scores: dict[Row, dict[Repetition, KeptScore]] = {}
    untrained: dict[Row, dict[str, dict[Repetition, KeptScore]]] = {}
    commits: dict[str, None] = {}
    for path, row in _read(folders, "scores.csv", COLUMNS, _score_of):
        if (row.metric, row.level) != measure.of:
            continue
        by_repetition = scores.setdefault(row.about, {})
        if row.about[0] == RANDOM:
            del scores[row.about]
            by_repetition = untrained.setdefault(row.about[1:], {}).setdefault(row.score.encoder, {})
        there = by_repetition.setdefault(row.repetition, row.score)
        if there.value != row.score.value:
            raise RunFolderError(
                f"{path} has the score {row.score.value} of {' '.join(filter(None, row.about))}, split and seed "
                f"{say_repetitions([row.repetition])}, and another export has {there.value}. Leave one of the two out."
            )
        commits |= {row.commit: None} if row.commit else {}
    spreads = [row for _, row in _read(folders, "patients.csv", PATIENTS, _spread_of) if row[0] == measure.of]
    calls = {call.began: call for _, call in _read(folders, "calls.csv", CALLS, _call)}
    patients = {about: found for _, about, found in spreads}
    runs, beside = _read_runs(folders), _read_beside(folders, measure.level)
    return Kept(measure, scores, untrained, patients, runs, tuple(calls.values()), tuple(commits), beside)


@attrs.frozen
class KeptLines:
    """Makes the lines of tables from the files of exports, as `summarise` does from folders."""

    kept: Kept
    repeats: Repeats
    published: Lookup

    def line(self, condition: Condition) -> Line:
        """Summarise one condition."""
        cells = self.repeats.cells(condition)
        own = self._scores(cells)
        random = self._untrained(cells, own)
        gains = {at: score.value - random[at].value for at, score in own.items() if at in random}
        name, *place = score_key(cells[0])[0]
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
            beside=self._beside(name, place, own),
        )

    def random_lines(self, context: Condition, rows: Sequence[Condition]) -> list[Line]:
        """Summarise each untrained encoder beside these conditions; one line at least."""
        cells = self.repeats.cells(rows[0])
        _, *place = score_key(cells[0], True)[0]
        wanted = [repetition_of(cell) for cell in cells]
        untrained = self.kept.untrained.get(tuple(place), {})
        named = dict.fromkeys(encoder for one in rows for encoder in self._encoders(one, untrained))
        found = {
            encoder: {at: by[at].value for at in wanted if at in by}
            for encoder in named or untrained
            if (by := untrained.get(encoder))
        }
        return [
            self._random_line(untrained_condition(context, encoder, len(found)), encoder, place, values, len(wanted))
            for encoder, values in (found or {"": {}}).items()
        ]

    def _encoders(self, condition: Condition, untrained: Iterable[str]) -> list[str]:
        """Name the encoders of a condition; of the method `random`, those of its architecture among the untrained."""
        if condition.trains:
            return [score.encoder for score in self._scores(self.repeats.cells(condition)).values()]
        return [encoder for encoder in untrained if is_of(encoder, self.repeats.encoder)]

    def _random_line(
        self, condition: Condition, encoder: str, place: Sequence[str], found: dict[Repetition, float], wanted: int
    ) -> Line:
        name = say_untrained(encoder)
        return Line(
            condition=condition,
            spread=spread(_by_split(found)),
            interval=self._judge(name, "", place, found),
            gain=None,
            gain_value=None,
            printed=self.published(condition),
            done=len(found),
            wanted=wanted,
            beside=self._beside(name, place, found),
            encoder=encoder,
        )

    def _beside(self, name: str, place: Sequence[str], made: Iterable[Repetition]) -> dict[str, float]:
        """Average the scores by other measures over the same repetitions; none where one of them is missing."""
        each = {measure: found.get((name, *place), {}) for measure, found in self.kept.beside.items()}
        wanted = list(made)
        return {
            measure: float(np.mean([by[at] for at in wanted]))
            for measure, by in each.items()
            if wanted and all(at in by for at in wanted)
        }

    def differences(self, context: Condition, rows: Sequence[Condition]) -> Iterator[Difference]:
        """Compare the methods of these conditions over the repetitions that both have."""
        cells = {one.row: self.repeats.cells(one) for one in rows}
        for a, b in combinations(cells, 2):
            ours, theirs = (self._scores(cells[one]) for one in (a, b))
            apart = {at: ours[at].value - theirs[at].value for at in ours if at in theirs}
            name, other = self._name(cells[a][0], ours), self._name(cells[b][0], theirs)
            _, *place = score_key(cells[a][0])[0]
            found = self._judge(name, other, place, apart)
            if found is not None:
                yield Difference(context=context, a=a, b=b, interval=found, repetitions=len(apart))

    def _scores(self, cells: Iterable[GridCell]) -> dict[Repetition, KeptScore]:
        found: dict[Repetition, KeptScore] = {}
        for cell in cells:
            about, at = score_key(cell)
            if cell.pretraining.trains:
                by_repetition = self.kept.scores.get(about, {})
            else:
                untrained, architecture = self.kept.untrained.get(about[1:], {}), cell.pretraining.untrained
                by_repetition = next((by for encoder, by in untrained.items() if is_of(encoder, architecture)), {})
            if at in by_repetition:
                found[at] = by_repetition[at]
        return found

    @staticmethod
    def _name(cell: GridCell, scores: dict[Repetition, KeptScore]) -> str:
        """Return what patients.csv calls the method of a cell, whose row has these scores."""
        if cell.pretraining.trains:
            return say_method(cell.pretraining)
        return say_untrained(next((score.encoder for score in scores.values()), ""))

    def _untrained(self, cells: Iterable[GridCell], own: dict[Repetition, KeptScore]) -> dict[Repetition, KeptScore]:
        """Return the scores of the encoders of these scores, untrained."""
        found = {}
        for cell in cells:
            (_, *place), at = score_key(cell, True)
            by_encoder = self.kept.untrained.get(tuple(place), {})
            if at in own and at in by_encoder.get(own[at].encoder, {}):
                found[at] = by_encoder[own[at].encoder][at]
        return found

    def _judge(self, a: str, b: str, place: Sequence[str], values: dict[Repetition, float]) -> Judged | None:
        found = self.kept.patients.get((a, b, *place, say_repetitions(values)))
        if found is None:
            return None
        rows = list(_by_split(values))
        each = [float(np.mean(row)) for row in rows] if len(rows) > 1 else list(rows[0])
        mean = float(np.mean(each))
        if len(each) > 1:
            limits = find_metric(self.kept.measure.metric).limits
            limits = limits_of_difference(limits, limits) if b else limits
            low, high = interval_from_spreads(each, found.sd, found.overlap, limits)
        elif found.low is not None and found.high is not None:
            low, high = found.low, found.high
        else:
            return None
        return Judged(mean, low, high, found.sd, found.overlap)


def _by_split(values: dict[Repetition, float]) -> Iterator[tuple[float, ...]]:
    for split in dict.fromkeys(split for split, _ in values):
        yield tuple(value for (at, _), value in values.items() if at == split)


def _run_key(run: Pretraining) -> Row:
    about = (say_method(run), run.dataset, run.leads, str(run.embedding_dim))
    return (*about, str(run.split_seed), str(run.seed))


def _read_runs(folders: Sequence[Path]) -> dict[Row, TrainedRun]:
    found: dict[Row, TrainedRun] = {}
    for _, (key, best, epochs, one) in _read(folders, "runs.csv", RUNS, _run_of):
        before = found.get(key, TrainedRun(best, epochs, ()))
        if one not in before.patients:
            found[key] = attrs.evolve(before, patients=(*before.patients, one))
    return found


def _read_beside(folders: Sequence[Path], level: str) -> dict[str, dict[Row, dict[Repetition, float]]]:
    found: dict[str, dict[Row, dict[Repetition, float]]] = {}
    there = [folder for folder in folders if (folder / "beside.csv").exists()]
    for _, row in _read(there, "beside.csv", COLUMNS, _score_of):
        if row.level == level:
            method, *place = row.about
            name = say_untrained(row.score.encoder) if method == RANDOM else method
            found.setdefault(row.metric, {}).setdefault((name, *place), {})[row.repetition] = row.score.value
    return found


def _read(
    folders: Sequence[Path], name: str, columns: Row, parse: Callable[[dict[str, str]], Parsed]
) -> Iterator[tuple[Path, Parsed]]:
    """Read a file of every export, line by line. A file without the end of its last line was cut off."""
    for folder in folders:
        path = folder / name
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise RunFolderError(
                f"{folder} is no export: it has no {name}. `clocs grid export GRID --folder {folder}` makes one."
            ) from None
        except (OSError, ValueError) as problem:
            raise RunFolderError(f"Cannot read {path}, which `clocs grid export` writes: {problem}.") from None
        lines = text.splitlines()
        cut_off = 0 if text.endswith("\n") else len(lines)  # the number of a line without its end
        rows = csv.DictReader(lines)
        older = tuple(name for name in columns if name != ENCODER)  # without what later versions added
        if tuple(rows.fieldnames or ()) not in (columns, older):
            raise RunFolderError(f"{path} has other columns than `clocs grid export` writes: export the grid again.")
        for row in rows:
            try:
                if None in row or None in row.values() or rows.line_num == cut_off:
                    raise ValueError
                yield path, parse(row)
            except ValueError:
                raise RunFolderError(
                    f"{path} is damaged or cut off, at line {rows.line_num}: export the grid again."
                ) from None


@attrs.frozen
class _ScoreLine:
    """A line of scores.csv."""

    metric: str
    level: str
    about: Row
    repetition: Repetition
    score: KeptScore
    commit: str


def _score_of(row: dict[str, str]) -> _ScoreLine:
    about = (row["method"], *(row[name] for name in PLACE))
    seen = Seen(*(float(row[name]) for name in SEEN)) if row["steps"] else None
    score = KeptScore(float(row["score"]), seen, row.get(ENCODER, ""))
    return _ScoreLine(row["metric"], row["level"], about, (int(row["split"]), int(row["seed"])), score, row["commit"])


def _spread_of(row: dict[str, str]) -> tuple[tuple[str, str], Row, OverPatients]:
    low, high = (float(row[end]) if row[end] else None for end in ("low", "high"))
    about = (row["a"], row["b"], *(row[name] for name in PLACE), row["repetitions"])
    return (row["metric"], row["level"]), about, OverPatients(float(row["sd"]), float(row["overlap"]), low, high)


def _run_of(row: dict[str, str]) -> tuple[Row, int, int, PatientSeparation]:
    within, between, apart = (float(row[name]) for name in ("within", "between", "separation"))
    one = PatientSeparation(init=row["init"], intra_mean=within, inter_mean=between, separation=apart)
    return tuple(row[name] for name in RUNS[:6]), int(row["best_epoch"]), int(row["epochs"]), one


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
