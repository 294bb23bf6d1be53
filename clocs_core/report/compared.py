"""What `clocs compare` finds, as records for a program and as rows for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from clocs_core.artifacts.documents import SCHEMA, as_plain
from clocs_core.contracts.scores import Comparison
from clocs_core.report.tables import show_number

NONE = "–"  # in a table: this one has no such thing


@attrs.frozen(kw_only=True)
class Compares:
    """One of what is compared: a run or an evaluation, or several that differ by their seed only.

    letter: what tables call it. weights: what was scored, the method's name. seeds: in the order of `folders`.
    """

    letter: str
    folders: tuple[str, ...]
    kind: str
    weights: str
    protocol: str
    dataset: str
    task: str
    part: str
    seeds: tuple[int, ...]

    @property
    def name(self) -> str:
        """For a sentence: "A (method)"."""
        return f"{self.letter} ({self.weights})"


@attrs.frozen(kw_only=True)
class SettingRow:
    """A setting that is not the same in all: of each that is compared, the values it has there, if any."""

    name: str
    values: tuple[tuple[object, ...], ...] = attrs.field(converter=as_plain)


@attrs.frozen(kw_only=True)
class ComparedScore:
    """A score of one that is compared. Of several seeds: their mean, the sd between them, and no interval.

    weights: "own", or the controls: "random" and "class prior".
    """

    letter: str
    weights: str
    label_fraction: float
    metric: str
    level: str
    values: tuple[float, ...]  # by seed
    low: float = math.nan
    high: float = math.nan
    mean: float = attrs.field(init=False)
    sd: float = attrs.field(init=False)

    @mean.default
    def _mean(self) -> float:
        return sum(self.values) / len(self.values)

    @sd.default
    def _sd(self) -> float:
        """As of a sample, with n - 1; NaN of one."""
        if len(self.values) < 2:
            return math.nan
        return math.sqrt(sum((value - self.mean) ** 2 for value in self.values) / (len(self.values) - 1))

    def shown(self) -> str:
        """ "0.812 [0.790, 0.830]", or "0.812 ± 0.010" of several seeds."""
        if len(self.values) > 1:
            return f"{show_number(self.mean)} ± {show_number(self.sd)}"
        return f"{show_number(self.mean)} [{show_number(self.low)}, {show_number(self.high)}]"


@attrs.frozen(kw_only=True)
class Refusal:
    """Why there is no paired difference between two, at a level or at all (an empty level)."""

    a: str
    b: str
    level: str
    reason: str


@attrs.frozen(kw_only=True)
class Compared:
    """All that was found. `differences` are of the first minus each other, over the same draws of test patients."""

    schema: int = SCHEMA
    compared: tuple[Compares, ...]
    settings: tuple[SettingRow, ...]
    scores: tuple[ComparedScore, ...]
    differences: tuple[Comparison, ...]
    refused: tuple[Refusal, ...]
    notes: tuple[str, ...]


def compares_rows(compared: Sequence[Compares]) -> tuple[tuple[str, ...], ...]:
    """Letter, weights, protocol, data set, task, part, seeds and folders of each."""
    return tuple(
        (
            one.letter,
            one.weights,
            one.protocol,
            one.dataset,
            one.task,
            one.part,
            ", ".join(map(str, one.seeds)),
            "\n".join(one.folders),
        )
        for one in compared
    )


def setting_rows(settings: Sequence[SettingRow]) -> tuple[tuple[str, ...], ...]:
    """The name of each setting, then its value in each that is compared."""
    return tuple((row.name, *(_values(held) for held in row.values)) for row in settings)


def score_table(found: Compared) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Headings, and a row for each share of labels, metric, level and weights, with a column for each compared."""
    letters = [one.letter for one in found.compared]
    keys = dict.fromkeys((one.label_fraction, one.metric, one.level, one.weights) for one in found.scores)
    cells = {(one.letter, one.label_fraction, one.metric, one.level, one.weights): one for one in found.scores}
    rows = []
    for key in keys:
        held = (cells.get((letter, *key)) for letter in letters)
        fraction, *rest = key
        rows.append((f"{fraction:g}", *rest, *(NONE if one is None else one.shown() for one in held)))
    return ("labels F", "metric", "level", "weights", *letters), tuple(rows)


def _values(held: Sequence[object]) -> str:
    if not held:
        return NONE
    return " | ".join(", ".join(map(str, one)) if isinstance(one, (list, tuple)) else str(one) for one in held)
