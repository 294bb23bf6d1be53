"""Compute the numbers of tables: means, spreads, intervals, gains over the untrained encoder, differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal, Protocol

import attrs
import numpy as np

from clocs_core.artifacts.reports import Report
from clocs_core.contracts.grids import Condition, Published, nothing_published
from clocs_core.contracts.scores import RANDOM
from clocs_core.evaluation.bootstrap import Interval, compare
from clocs_core.evaluation.over_seeds import mean_over_seeds, patients_spread
from clocs_core.grids.axes import Repeats
from clocs_core.grids.cells import GridCell, Random
from clocs_core.grids.draws import Source, fill_draws, find_metric, read_draws, scored_rows, source_of, sources_of
from clocs_core.grids.measure import Inputs, Lookup, Measure
from clocs_core.grids.results import Results
from clocs_core.grids.untrained import say_encoder, say_untrained

Repetition = tuple[int, int]  # split, seed
_Repeated = tuple[int, int, str]  # split, seed, and the patients of the split


@attrs.frozen
class Spread:
    """Scores by split and seed, their mean, and how far they spread over seeds within a split and over splits.

    sd_seeds is pooled over splits; sd_splits is that of the splits' means. None where there is one value only.
    """

    values: tuple[tuple[float, ...], ...]
    mean: float
    sd_seeds: float | None
    sd_splits: float | None


@attrs.frozen
class Seen:
    """How much a pre-training saw, as means over repetitions: until the best epoch, which is kept, and in all."""

    best_steps: float
    steps: float
    best_instances: float
    instances: float


@attrs.frozen
class Judged:
    """A mean over repetitions, or a difference of two, with its 95 % interval over seeds and patients.

    sd, overlap: its spread over patients, as `interval_from_spreads` takes it; the rest follows from the scores.
    """

    value: float
    low: float
    high: float
    sd: float
    overlap: float


@attrs.frozen(kw_only=True)
class Line:
    """A line of a table. interval: 95 % over seeds and patients, of the mean. gain: over the untrained encoder, paired.

    done, wanted: repetitions. errors: why others are missing. seen: by the pre-training; None where a report lacks it.
    beside: means by other measures, by their name. encoder: what is untrained, in a line of `random`.
    """

    condition: Condition
    spread: Spread | None
    interval: Judged | None
    gain: Judged | None
    gain_value: float | None
    printed: Published | None
    done: int
    wanted: int
    errors: tuple[str, ...] = ()
    seen: Seen | None = None
    beside: Mapping[str, float] = attrs.field(factory=dict)
    encoder: str = ""

    @property
    def off(self) -> float | None:
        """Our value minus the paper's."""
        return self.spread.mean - self.printed.mean if self.spread and self.printed else None


@attrs.frozen(kw_only=True)
class Difference:
    """The difference of two methods on the same test patients, over the repetitions that both have."""

    context: Condition
    a: str
    b: str
    interval: Judged
    repetitions: int


@attrs.frozen
class Across:
    """Two conditions of a table that stand in different places, such as at two label fractions.

    untrained: whether the second is the untrained encoder there, instead of the condition itself.
    """

    a: Condition
    b: Condition
    untrained: bool = False


@attrs.frozen
class Summary:
    """A table: its lines, the untrained encoder first in every context, and the differences between methods.

    better: whether a higher or a lower score is better.
    """

    lines: tuple[Line, ...]
    differences: tuple[Difference, ...]
    better: Literal["higher", "lower"] = "higher"


class FindsLines(Protocol):
    """Looks up the lines of a table, in the folders of a grid or in its files."""

    @property
    def better(self) -> Literal["higher", "lower"]:
        """Whether a higher or a lower score is better."""

    def line(self, condition: Condition) -> Line:
        """Summarise one condition."""

    def random_lines(self, context: Condition, rows: Sequence[Condition]) -> list[Line]:
        """Summarise each untrained encoder beside these conditions; one line at least."""

    def differences(self, context: Condition, rows: Sequence[Condition]) -> Iterator[Difference]:
        """Compare the methods of these conditions."""


def summarise(conditions: Sequence[Condition], inputs: Inputs, published: Lookup = nothing_published) -> Summary:
    """Make the table of these conditions as far as they are done. Draws are made where they are missing."""
    found = _Found(inputs.results, inputs.measure, inputs.repeats, published)
    fill_draws(found.sources(conditions), inputs.at_once, inputs.tick)
    return tabulate(conditions, found)


def compare_across(pairs: Iterable[Across], inputs: Inputs) -> Iterator[tuple[Across, Judged, tuple[Repetition, ...]]]:
    """Compare conditions on the same patients, over the repetitions that both have. Their draws must be there."""
    found = _Found(inputs.results, inputs.measure, inputs.repeats, nothing_published)
    for pair in pairs:
        judged, shared = found.across(pair)
        if judged is not None:
            yield pair, judged, shared


def tabulate(conditions: Iterable[Condition], found: FindsLines) -> Summary:
    """Make the table of these conditions, the untrained encoders first in every context."""
    contexts: dict[Condition, list[Condition]] = {}
    for condition in conditions:
        contexts.setdefault(condition.context, []).append(condition)
    lines: list[Line] = []
    differences: list[Difference] = []
    for context, rows in contexts.items():
        lines += found.random_lines(context, rows)
        lines += [found.line(condition) for condition in rows if condition.trains]
        differences += found.differences(context, rows)
    return Summary(tuple(lines), tuple(differences), found.better)


def untrained_condition(context: Condition, encoder: str, several: int) -> Condition:
    """Return the condition of an untrained encoder; it is named in full beside others."""
    return attrs.evolve(context, method=RANDOM, name=say_untrained(encoder) if several > 1 else "")


def seen_by(report: Report | None) -> Seen | None:
    """Count what a pre-training saw; None where its report does not say."""
    if report is None or report.exposure is None:
        return None
    steps, instances = report.exposure.steps, report.exposure.instances
    best = steps * report.best_epoch / max(1, report.epochs_run)
    return Seen(best, steps, instances * report.best_epoch, instances * report.epochs_run)


def mean_seen(found: Sequence[Seen | None]) -> Seen | None:
    """Average what repetitions saw; None unless all of them say."""
    rows = [attrs.astuple(one) for one in found if one is not None]
    return Seen(*np.mean(rows, axis=0).tolist()) if rows and len(rows) == len(found) else None


def spread(values: Iterable[Sequence[float]]) -> Spread | None:
    """Compute the spread of scores (split, seed); None where there are none. Splits may differ in their seeds."""
    rows = tuple(tuple(row) for row in values if row)
    if not rows:
        return None
    means = [float(np.mean(row)) for row in rows]
    several = [row for row in rows if len(row) > 1]
    pooled = float(np.sqrt(np.mean([np.var(row, ddof=1) for row in several]))) if several else None
    between = float(np.std(means, ddof=1)) if len(means) > 1 else None
    return Spread(rows, float(np.mean([value for row in rows for value in row])), pooled, between)


@attrs.frozen
class _Found:
    """Looks up the numbers of cells."""

    results: Results
    measure: Measure
    repeats: Repeats
    published: Lookup

    @property
    def better(self) -> Literal["higher", "lower"]:
        """Whether a higher or a lower score is better."""
        return find_metric(self.measure.metric).better

    def sources(self, conditions: Iterable[Condition]) -> Iterator[Source]:
        for condition in conditions:
            for cell in self.repeats.cells(condition):
                predictions = self._predictions(cell)
                if predictions is not None:
                    yield from sources_of(cell, predictions, self.measure, self.results.out)

    def line(self, condition: Condition) -> Line:
        cells = self.repeats.cells(condition)
        scored = [(cell, value) for cell in cells if (value := self._value(cell, cell.pretraining.method)) is not None]
        random = [value for cell, _ in scored if (value := self._value(cell, RANDOM)) is not None]
        gains = [
            (cell, compare(own, other))
            for cell, _ in scored
            if (own := self._draws(cell)) and (other := self._draws(cell, True))
        ]
        values = [value for _, value in scored]
        return Line(
            condition=condition,
            spread=self._spread(scored),
            interval=_over_repetitions([(cell, self._draws(cell)) for cell, _ in scored]),
            gain=_over_repetitions(gains) if len(gains) == len(scored) else None,
            gain_value=float(np.mean(values) - np.mean(random)) if values and len(random) == len(values) else None,
            printed=self.published(condition),
            done=len(scored),
            wanted=len(cells),
            errors=self._errors(cells),
            seen=self._seen([cell for cell, _ in scored]),
        )

    def random_lines(self, context: Condition, rows: Sequence[Condition]) -> list[Line]:
        """Summarise each untrained encoder, once a repetition: the evaluations of all methods score the same one."""
        found: dict[str, dict[Random, GridCell]] = {}
        for cell in (cell for condition in rows for cell in self.repeats.cells(condition)):
            report = self.results.evaluated(cell)
            if report is not None and self._value(cell, RANDOM) is not None:
                found.setdefault(say_encoder(report), {}).setdefault(cell.random, cell)
        wanted = len(self.repeats.cells(rows[0]))
        return [
            self._random_line(untrained_condition(context, encoder, len(found)), encoder, list(once.values()), wanted)
            for encoder, once in (found or {"": {}}).items()
        ]

    def _random_line(self, condition: Condition, encoder: str, cells: Sequence[GridCell], wanted: int) -> Line:
        scored = [(cell, value) for cell in cells if (value := self._value(cell, RANDOM)) is not None]
        return Line(
            condition=condition,
            spread=self._spread(scored),
            interval=_over_repetitions([(cell, self._draws(cell, random=True)) for cell, _ in scored]),
            gain=None,
            gain_value=None,
            printed=self.published(condition),
            done=len(scored),
            wanted=wanted,
            encoder=encoder,
        )

    def across(self, pair: Across) -> tuple[Judged | None, tuple[Repetition, ...]]:
        """Compare two conditions over the repetitions that both have on the same patients."""
        ours, theirs = self._drawn(pair.a), self._drawn(pair.b, pair.untrained)
        shared = [key for key in ours if key in theirs]
        pairs = [(ours[key][0], compare(ours[key][1], theirs[key][1])) for key in shared]
        return _over_repetitions(pairs), tuple((split, seed) for split, seed, _ in shared)

    def _drawn(self, condition: Condition, random: bool = False) -> dict[_Repeated, tuple[GridCell, Interval]]:
        return {
            (cell.pretraining.split_seed, cell.pretraining.seed, patients): (cell, found)
            for cell in self.repeats.cells(condition)
            if (found := self._draws(cell, random)) and (patients := self._patients(cell))
        }

    def differences(self, context: Condition, rows: Sequence[Condition]) -> Iterator[Difference]:
        """Compare methods over the repetitions that both have on the same patients."""
        draws = {condition.row: self._drawn(condition) for condition in rows}
        for a, b in combinations(draws, 2):
            shared = [key for key in draws[a] if key in draws[b]]
            pairs = [(draws[a][key][0], compare(draws[a][key][1], draws[b][key][1])) for key in shared]
            interval = _over_repetitions(pairs)
            if interval is not None:
                yield Difference(context=context, a=a, b=b, interval=interval, repetitions=len(shared))

    def _predictions(self, cell: GridCell) -> Path | None:
        found = self.results.cell(cell)
        return found.predictions if found and found.report else None

    def _patients(self, cell: GridCell) -> str:
        """Return what a cell's scores are of: its split, its task and its scored rows.

        It is "" where there is no report, and nothing can be paired.
        """
        report, predictions = self.results.evaluated(cell), self._predictions(cell)
        if report is None or not report.split.hash or predictions is None:
            return ""
        source = source_of(cell, cell.pretraining.method, predictions, self.measure, self.results.out)
        return f"{report.split.hash} {report.task} {scored_rows(source)}"

    def _value(self, cell: GridCell, init: str) -> float | None:
        report = self.results.evaluated(cell)
        asked = (cell.protocol, init, cell.label_fraction, self.measure.metric, self.measure.level)
        for score in report.scores if report else ():
            if (score.protocol, score.init, score.label_fraction, score.metric, score.level) == asked:
                return score.value
        return None

    def _draws(self, cell: GridCell, random: bool = False) -> Interval | None:
        predictions = self._predictions(cell)
        if predictions is None:
            return None
        init = RANDOM if random else cell.pretraining.method
        return read_draws(source_of(cell, init, predictions, self.measure, self.results.out))

    def _seen(self, cells: Sequence[GridCell]) -> Seen | None:
        return mean_seen([seen_by(self.results.trained(cell.pretraining)) for cell in cells])

    def _spread(self, scored: Sequence[tuple[GridCell, float]]) -> Spread | None:
        splits = dict.fromkeys(cell.pretraining.split_seed for cell, _ in scored)
        return spread([value for cell, value in scored if cell.pretraining.split_seed == split] for split in splits)

    def _errors(self, cells: Iterable[GridCell]) -> tuple[str, ...]:
        found = (self.results.cell(cell) for cell in cells)
        return tuple(dict.fromkeys(one.note.error for one in found if one and one.report is None))


def _over_repetitions(found: Sequence[tuple[GridCell, Interval | None]]) -> Judged | None:
    """Average repetitions, with an interval over seeds and patients; None unless all of them have draws.

    Of several splits, each has its own patients: the means of the splits then take the place of seeds.
    """
    whole = [(cell.pretraining.split_seed, one) for cell, one in found if one is not None]
    if not whole or len(whole) < len(found):
        return None
    splits = dict.fromkeys(split for split, _ in whole)
    each = [one for _, one in whole]
    if len(splits) > 1:
        each = [mean_over_seeds([one for at, one in whole if at == split]) for split in splits]
    mean = mean_over_seeds(each)
    return Judged(mean.value, mean.low, mean.high, *patients_spread(each))
