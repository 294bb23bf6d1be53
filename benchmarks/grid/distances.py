"""Distances of embeddings within and between patients, by method and dimension, from the pre-trainings themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from clocs_core.report.tables import show_number
from grid.axes import Condition, Repeats
from grid.ledger import Distances, Results
from grid.rows import Sheet
from grid.summary import Spread, spread

__all__ = ["DistanceLine", "distance_sheet", "summarise_distances"]


@attrs.frozen
class DistanceLine:
    """Mean distances over repetitions, and the probability that two of one patient are nearer than two of different.

    found: what each repetition found, with its histogram where one was kept.
    """

    condition: Condition
    init: str
    intra: Spread
    inter: Spread
    separation: Spread
    found: tuple[Distances, ...] = ()


def summarise_distances(
    conditions: Iterable[Condition], repeats: Repeats, results: Results
) -> tuple[DistanceLine, ...]:
    """Every method beside the untrained encoder of its dimension, as far as the ledger goes."""
    lines: dict[tuple[str, int, str], DistanceLine] = {}
    for one in conditions:
        for init in ("random", one.method):
            line = _line(one, init, repeats, results)
            if line is not None:
                lines.setdefault((one.pretraining, one.embedding_dim, init), line)
    return tuple(lines.values())


def distance_sheet(lines: Sequence[DistanceLine]) -> Sheet:
    """The distances as a table."""
    headings = ("pre-training", "E", "encoder", "within patients", "between patients", "separation")
    rows = tuple(
        (
            *(line.condition.pretraining, str(line.condition.embedding_dim), line.init),
            *(_say(found) for found in (line.intra, line.inter, line.separation)),
        )
        for line in lines
    )
    begins = tuple(place > 0 and rows[place][:2] != rows[place - 1][:2] for place in range(len(rows)))
    return Sheet("", headings, rows, begins)


def _line(one: Condition, init: str, repeats: Repeats, results: Results) -> DistanceLine | None:
    splits: dict[int, list[Distances]] = {}
    for run in one.pretrainings(repeats):
        entry = results.pretraining(run)
        for found in entry.distances if entry else ():
            if found.init == init:
                splits.setdefault(run.split_seed, []).append(found)
    intra = spread([found.intra_mean for found in rows] for rows in splits.values())
    inter = spread([found.inter_mean for found in rows] for rows in splits.values())
    separation = spread([found.separation for found in rows] for rows in splits.values())
    if intra is None or inter is None or separation is None:
        return None
    return DistanceLine(one, init, intra, inter, separation, tuple(found for rows in splits.values() for found in rows))


def _say(found: Spread) -> str:
    sd = "" if found.sd_seeds is None else f" ± {show_number(found.sd_seeds)}"
    return show_number(found.mean) + sd
