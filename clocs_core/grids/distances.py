"""Summarise distances of embeddings within and between patients, from the reports of pre-trainings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import attrs

from clocs_core.artifacts.reports import PatientSeparation, Report
from clocs_core.contracts.grids import Condition
from clocs_core.contracts.scores import RANDOM
from clocs_core.grids.axes import Repeats
from clocs_core.grids.cells import Pretraining
from clocs_core.grids.rows import Sheet, say_spread
from clocs_core.grids.summary import Spread, spread


@attrs.frozen
class DistanceLine:
    """Mean distances over repetitions, and the probability that two of one patient are nearer than two of different.

    name: of the encoder: a method as a row of a table has it, or `random`. found: what each repetition found, with its
    histogram where one was kept. epochs: how many each repetition trained for, with its best; none of `random`.
    """

    condition: Condition
    name: str
    intra: Spread
    inter: Spread
    separation: Spread
    found: tuple[PatientSeparation, ...] = ()
    epochs: tuple[tuple[int, int], ...] = ()


class FindsRuns(Protocol):
    """Looks up a pre-training, in the folders of a grid or in its files."""

    def trained(self, run: Pretraining) -> Report | TrainedRun | None:
        """Find what a pre-training found; None where it is not done."""


@attrs.frozen
class TrainedRun:
    """A part of the report of a pre-training: its epochs, and the separation of patients by each of its encoders."""

    best_epoch: int
    epochs_run: int
    patients: tuple[PatientSeparation, ...]


def summarise_distances(
    conditions: Iterable[Condition], repeats: Repeats, results: FindsRuns
) -> tuple[DistanceLine, ...]:
    """Summarise every method beside the untrained encoder of its dimension, as far as they are done."""
    lines: dict[tuple[object, ...], DistanceLine] = {}
    for one in conditions:
        for name, init in ((RANDOM, RANDOM), (one.line, one.method)):
            line = _line(one, name, init, repeats, results)
            if line is None:
                continue
            place = (one.pretraining, one.leads, one.embedding_dim)
            there = lines.setdefault((*place, name), line)
            if init == RANDOM and _is_other(there, line):
                lines[*place, f"{name}, of {one.line}"] = attrs.evolve(line, name=f"{name}, of {one.line}")
    return tuple(lines.values())


def _is_other(there: DistanceLine, line: DistanceLine) -> bool:
    """Tell whether these untrained encoders differ, in architecture or input. Methods may lack some repetitions."""
    lengths = ([len(row) for row in one.separation.values] for one in (there, line))
    return len({tuple(one) for one in lengths}) == 1 and there.separation.values != line.separation.values


def say_encoders(lines: Sequence[DistanceLine]) -> list[str]:
    """Name each encoder for a figure, with its data set and leads where the lines differ in them."""
    places = {(line.condition.pretraining, line.condition.leads) for line in lines}
    sets, leads = (len({place[which] for place in places}) > 1 for which in (0, 1))
    return [
        f"{line.condition.pretraining}, " * sets
        + f"{line.condition.leads or 'own'} leads, " * leads
        + f"{line.name}, E = {line.condition.embedding_dim}"
        for line in lines
    ]


def distance_sheet(lines: Sequence[DistanceLine]) -> Sheet:
    """Write the distances as a table."""
    headings = (
        "pre-training",
        "leads",
        "E",
        "encoder",
        "best epoch / all",
        "within patients",
        "between patients",
        "separation",
    )
    rows = tuple(
        (
            *(line.condition.pretraining, line.condition.leads or "own", str(line.condition.embedding_dim), line.name),
            ", ".join(f"{best} / {run}" for best, run in line.epochs),
            *(say_spread(found) for found in (line.intra, line.inter, line.separation)),
        )
        for line in lines
    )
    begins = tuple(place > 0 and rows[place][:3] != rows[place - 1][:3] for place in range(len(rows)))
    return Sheet("", headings, rows, begins)


def _line(one: Condition, name: str, init: str, repeats: Repeats, results: FindsRuns) -> DistanceLine | None:
    splits: dict[int, list[PatientSeparation]] = {}
    epochs: list[tuple[int, int]] = []
    for run in repeats.runs(one):
        report = results.trained(run)
        for found in report.patients if report else ():
            if report and found.init == init:
                splits.setdefault(run.split_seed, []).append(found)
                epochs += [(report.best_epoch, report.epochs_run)] if init != RANDOM else []
    each = tuple(found for rows in splits.values() for found in rows)
    intra = spread([found.intra_mean for found in rows] for rows in splits.values())
    inter = spread([found.inter_mean for found in rows] for rows in splits.values())
    separation = spread([found.separation for found in rows] for rows in splits.values())
    if intra is None or inter is None or separation is None:
        return None
    return DistanceLine(one, name, intra, inter, separation, each, tuple(epochs))
