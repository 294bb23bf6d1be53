"""Hold the results of `clocs compare` as records for a program, and make rows of them for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from clocs_core.artifacts.documents import SCHEMA, as_plain
from clocs_core.contracts.scores import Comparison
from clocs_core.report.tables import show_number

NONE = "–"  # a table cell without a value


@attrs.frozen(kw_only=True)
class Compares:
    """One side of a comparison: a run or an evaluation, or several that differ by their seed only.

    letter: its name in tables. weights: the name of the scored method. seeds: in the order of `folders`.
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
        """Name in a sentence: "A (method)"."""
        return f"{self.letter} ({self.weights})"


@attrs.frozen(kw_only=True)
class SettingRow:
    """A setting that differs between the sides, with its values on each side, if any."""

    name: str
    values: tuple[tuple[object, ...], ...] = attrs.field(converter=as_plain)


@attrs.frozen(kw_only=True)
class ComparedScore:
    """A score of one side. With several seeds: their mean, the sd between them, and no interval.

    weights: "own", or the controls: "random", "chance" and "class prior".
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
        """Return the sample standard deviation, with n - 1; NaN for one seed."""
        if len(self.values) < 2:
            return math.nan
        return math.sqrt(sum((value - self.mean) ** 2 for value in self.values) / (len(self.values) - 1))

    def shown(self) -> str:
        """Return "0.812 [0.790, 0.830]", or "0.812 ± 0.010" for several seeds."""
        if len(self.values) > 1:
            return f"{show_number(self.mean)} ± {show_number(self.sd)}"
        return f"{show_number(self.mean)} [{show_number(self.low)}, {show_number(self.high)}]"


@attrs.frozen(kw_only=True)
class Refusal:
    """The reason why two sides have no paired difference at a level, or at any level (if it is empty)."""

    a: str
    b: str
    level: str
    reason: str


@attrs.frozen(kw_only=True)
class Compared:
    """All results. `differences` are the first minus each other side, over the same draws of test patients."""

    schema: int = SCHEMA
    compared: tuple[Compares, ...]
    settings: tuple[SettingRow, ...]
    scores: tuple[ComparedScore, ...]
    differences: tuple[Comparison, ...]
    refused: tuple[Refusal, ...]
    notes: tuple[str, ...]


def compares_rows(compared: Sequence[Compares]) -> tuple[tuple[str, ...], ...]:
    """Return letter, weights, protocol, data set, task, part, seeds and folders of each side."""
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
    """Return a row per setting: its name, then its value on each side."""
    return tuple((row.name, *(_values(held) for held in row.values)) for row in settings)


def score_table(found: Compared) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return headings, and a row for each label fraction, metric, level and weights, with a column for each side."""
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
