"""Make tables from the files of exports alone: no folder of a run is needed.

A mean and its spread over seeds are those of scores.csv. Its interval follows from these and from the spread over
patients in patients.csv. There is no interval where patients.csv is of other repetitions than the mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Literal

import attrs
import numpy as np

from clocs_core.contracts.grids import Condition
from clocs_core.contracts.scores import RANDOM
from clocs_core.evaluation.bootstrap import limits_of_difference
from clocs_core.evaluation.over_seeds import interval_from_spreads
from clocs_core.grids.axes import Repeats
from clocs_core.grids.cells import GridCell
from clocs_core.grids.draws import find_metric
from clocs_core.grids.export import across_key, repetition_of, say_method, say_repetitions, score_key
from clocs_core.grids.exported_files import Kept, KeptScore, OverPatients
from clocs_core.grids.measure import Lookup
from clocs_core.grids.summary import Difference, Judged, Line, Repetition, mean_seen, spread, untrained_condition
from clocs_core.grids.untrained import is_of, say_untrained


@attrs.frozen
class KeptLines:
    """Makes the lines of tables from the files of exports, as `summarise` does from folders."""

    kept: Kept
    repeats: Repeats
    published: Lookup

    @property
    def better(self) -> Literal["higher", "lower"]:
        """Whether a higher or a lower score is better."""
        return find_metric(self.kept.measure.metric).better

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

    def across(self, line: Line, other: Line) -> Judged | None:
        """Compare two lines of different places of a table, paired; None where their pair was not exported."""
        there, untrained = other.condition, not other.condition.trains
        if untrained:  # what was evaluated there is an encoder of this method, beside the untrained one
            there = attrs.evolve(line.condition, embedding_dim=there.embedding_dim, label_fraction=there.label_fraction)
        cells, theirs = self.repeats.cells(line.condition), self.repeats.cells(there)
        own = self._scores(cells)
        found = self._scores(theirs)
        if untrained:
            _, *place = score_key(theirs[0], True)[0]
            found = self.kept.untrained.get(tuple(place), {}).get(other.encoder, {})
        apart = {at: score.value - found[at].value for at, score in own.items() if at in found}
        key = across_key(cells[0], theirs[0], untrained, apart)
        return self._with_interval(self.kept.across.get(key), apart, paired=True)

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
        return self._with_interval(found, values, paired=bool(b))

    def _with_interval(
        self, found: OverPatients | None, values: dict[Repetition, float], paired: bool
    ) -> Judged | None:
        """Make the interval of these scores, or of paired differences, from its spread over patients."""
        if found is None:
            return None
        rows = list(_by_split(values))
        each = [float(np.mean(row)) for row in rows] if len(rows) > 1 else list(rows[0])
        mean = float(np.mean(each))
        if len(each) > 1:
            limits = find_metric(self.kept.measure.metric).limits
            limits = limits_of_difference(limits, limits) if paired else limits
            low, high = interval_from_spreads(each, found.sd, found.overlap, limits)
        elif found.low is not None and found.high is not None:
            low, high = found.low, found.high
        else:
            return None
        return Judged(mean, low, high, found.sd, found.overlap)


def _by_split(values: dict[Repetition, float]) -> Iterator[tuple[float, ...]]:
    for split in dict.fromkeys(split for split, _ in values):
        yield tuple(value for (at, _), value in values.items() if at == split)
