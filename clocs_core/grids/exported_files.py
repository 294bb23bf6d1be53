"""Read the files of exports: scores, spreads over patients, pre-trainings and calls."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from math import isnan
from pathlib import Path
from typing import TypeVar

import attrs

from clocs_core.artifacts.reports import PatientSeparation
from clocs_core.contracts.scores import RANDOM
from clocs_core.errors import RunFolderError
from clocs_core.grids.cells import ENCODER, GridCell, Pretraining
from clocs_core.grids.distances import TrainedRun
from clocs_core.grids.export import (
    ACROSS,
    CALLS,
    COLUMNS,
    PATIENTS,
    PLACE,
    RUNS,
    SEEN,
    Row,
    say_method,
    say_repetitions,
    score_key,
)
from clocs_core.grids.invocations import Invocation
from clocs_core.grids.measure import Measure
from clocs_core.grids.summary import Repetition, Seen
from clocs_core.grids.untrained import say_untrained

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
    beside: scores by other measures, by their name. across: differences between places, by `across_key`.
    """

    measure: Measure
    scores: dict[Row, dict[Repetition, KeptScore]]
    untrained: dict[Row, dict[str, dict[Repetition, KeptScore]]]
    patients: dict[Row, OverPatients]
    runs: dict[Row, TrainedRun]
    calls: tuple[Invocation, ...]
    commits: tuple[str, ...]
    beside: dict[str, dict[Row, dict[Repetition, float]]] = attrs.field(factory=dict)
    across: dict[Row, OverPatients] = attrs.field(factory=dict)

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
        method, *place = row.about
        if method == RANDOM:
            by_repetition = untrained.setdefault(tuple(place), {}).setdefault(row.score.encoder, {})
        else:
            by_repetition = scores.setdefault(row.about, {})
        there = by_repetition.setdefault(row.repetition, row.score)
        if there.value != row.score.value and not (isnan(there.value) and isnan(row.score.value)):
            raise RunFolderError(
                f"{path} has the score {row.score.value} of {' '.join(filter(None, row.about))}, split and seed "
                f"{say_repetitions([row.repetition])}, and another export has {there.value}. Leave one of the two out."
            )
        commits |= {row.commit: None} if row.commit else {}
    spreads = [row for _, row in _read(folders, "patients.csv", PATIENTS, _spread_of) if row[0] == measure.of]
    calls = {call.began: call for _, call in _read(folders, "calls.csv", CALLS, _call)}
    patients = {about: found for _, about, found in spreads}
    runs, beside, across = _read_runs(folders), _read_beside(folders, measure.level), _read_across(folders, measure)
    return Kept(measure, scores, untrained, patients, runs, tuple(calls.values()), tuple(commits), beside, across)


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


def _read_across(folders: Sequence[Path], measure: Measure) -> dict[Row, OverPatients]:
    there = [folder for folder in folders if (folder / "across.csv").exists()]  # older exports have none
    rows = (row for _, row in _read(there, "across.csv", ACROSS, _across_of))
    return {about: found for of, about, found in rows if of == measure.of}


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


def _across_of(row: dict[str, str]) -> tuple[tuple[str, str], Row, OverPatients]:
    about = tuple(row[name] for name in ACROSS if name not in ("metric", "level", "sd", "overlap"))
    return (row["metric"], row["level"]), about, OverPatients(float(row["sd"]), float(row["overlap"]), None, None)


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
