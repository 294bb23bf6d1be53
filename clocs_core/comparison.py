"""The story of `clocs compare` on one page: open runs and evaluations, say what differs in their settings, and score.

Runs that differ by their seed only are one. Scores are those of the reports; a difference is computed anew from the
predictions that were kept, over the same draws of the same test patients.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from string import ascii_uppercase
from typing import Protocol

import attrs

from clocs_core import seeds
from clocs_core.errors import SettingsError, UnknownName, neighbours
from clocs_core.evaluate.linear import by_record
from clocs_core.evaluate.pairing import mean_interval, why_not_same
from clocs_core.evaluate.pretrained import RANDOM
from clocs_core.evaluate.statistics import Interval, bootstrap, compare
from clocs_core.extend.catalogue import Catalogue
from clocs_core.extend.offers import Metric
from clocs_core.finished import Candidate, Group, group_by_seed, open_candidate
from clocs_core.report.compared import Compared, ComparedScore, Compares, Refusal, SettingRow
from clocs_core.scores import Comparison, Score

__all__ = ["Wanted", "compare_folders"]


class Display(Protocol):
    """Where the story tells how it is getting on."""

    def stage(self, text: str) -> None:
        """A new stage begins, which may take a while."""

    def tick(self, done: int, total: int) -> None:
        """The stage has come so far."""


@attrs.frozen
class Wanted:
    """Which scores are compared. Empty: the first metric of the reports; every level; every share of labels."""

    metrics: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    fractions: tuple[float, ...] = ()


def compare_folders(paths: Sequence[Path], wanted: Wanted, catalogue: Catalogue, show: Display) -> Compared:
    """Compare runs and evaluations by their folders: the first with each other one.

    Raises RunFolderError where a folder is none, or not finished; UnknownName for a metric or level that none has.
    """
    twice = [path for path in paths if [one.resolve() for one in paths].count(path.resolve()) > 1]
    if twice:
        raise SettingsError(f"{twice[0]} is given twice; a run does not differ from itself.")
    groups = group_by_seed([open_candidate(path) for path in paths])
    named = tuple(_describe(letter, group) for letter, group in zip(_letters(len(groups)), groups, strict=True))
    chosen = _settle(wanted, [score for group in groups for one in group for score in one.scores])
    show.stage("drawing patients")
    differences, refused = _differences(groups, named, chosen, catalogue, show)
    notes = [f"{one.letter}: {note}" for one, group in zip(named, groups, strict=True) for note in _notes(group)]
    return Compared(
        compared=named,
        settings=_settings_that_differ(groups),
        scores=tuple(_scores(groups, named, chosen)),
        differences=differences,
        refused=refused,
        notes=tuple(dict.fromkeys(notes)),
    )


# ------------------------------------------------------------------------------------------------ what they are made of


def _letters(count: int) -> list[str]:
    if count > len(ascii_uppercase):
        raise SettingsError(
            f"{count} that differ by more than their seed are too many to set side by side; 26 are not."
        )
    return list(ascii_uppercase[:count])


def _describe(letter: str, group: Group) -> Compares:
    first = group[0]
    return Compares(
        letter=letter,
        folders=tuple(str(one.path) for one in group),
        kind=first.kind,
        weights=first.weights,
        protocol=first.protocol,
        dataset=first.dataset,
        task=first.task,
        part=first.part,
        seeds=tuple(one.seed for one in group),
    )


def _notes(group: Group) -> tuple[str, ...]:
    seeds_of = [one.seed for one in group]
    again = sorted({seed for seed in seeds_of if seeds_of.count(seed) > 1})
    twice = (f"Seed {again[0]} is there more than once: the sd is too small.",) if again else ()
    return (*twice, *(note for one in group for note in one.notes))


def _settings_that_differ(groups: Sequence[Group]) -> tuple[SettingRow, ...]:
    """Settings that are not the same in all that can have them: a run has none of an evaluation's own."""
    names = dict.fromkeys(name for group in groups for one in group for name in one.settings)
    rows = []
    for name in names:
        kinds = {one.kind for group in groups for one in group if name in one.settings}
        held = [[one.settings.get(name) for one in group if one.kind in kinds] for group in groups]
        if len({repr(value) for values in held for value in values}) > 1:
            each = [{repr(value): value for value in values if value is not None} for values in held]
            rows.append(SettingRow(name=name, values=tuple(tuple(one.values()) for one in each)))
    return tuple(rows)


# --------------------------------------------------------------------------------------------------------------- scores


def _settle(wanted: Wanted, scores: Sequence[Score]) -> Wanted:
    """What is wanted, by name; the first metric where none is named."""
    metrics = list(dict.fromkeys(score.metric for score in scores))
    levels = list(dict.fromkeys(str(score.level) for score in scores))
    fractions = sorted({score.label_fraction for score in scores})
    for what, asked, there in (("metric", wanted.metrics, metrics), ("level", wanted.levels, levels)):
        for name in asked:
            if name not in there:
                raise UnknownName(f"None of the reports has the {what} {name!r}.{neighbours(name, there)}")
    for one in wanted.fractions:
        if one not in fractions:
            shown = ", ".join(f"{f:g}" for f in fractions) or "no score at all"
            raise SettingsError(f"None of the reports has scores at F = {one:g}; there is {shown}.")
    return Wanted(
        wanted.metrics or tuple(metrics[:1]), wanted.levels or tuple(levels), wanted.fractions or tuple(fractions)
    )


def _scores(groups: Sequence[Group], named: Sequence[Compares], wanted: Wanted) -> list[ComparedScore]:
    found = []
    for fraction, metric, level in product(wanted.fractions, wanted.metrics, wanted.levels):
        for weights in ("own", RANDOM, "class prior"):
            for name, group in zip(named, groups, strict=True):
                mine = [
                    score
                    for one in group
                    for score in one.scores
                    if (score.label_fraction, score.metric, score.level) == (fraction, metric, level)
                    and _weights(one, score) == weights
                ]
                if mine:
                    found.append(_score_of(name.letter, weights, mine))
    return found


def _weights(one: Candidate, score: Score) -> str:
    if one.is_own(score):
        return "own"
    return "class prior" if score.protocol == "prior" else score.init


def _score_of(letter: str, weights: str, mine: Sequence[Score]) -> ComparedScore:
    first = mine[0]
    found = ComparedScore(
        letter=letter,
        weights=weights,
        label_fraction=first.label_fraction,
        metric=first.metric,
        level=first.level,
        values=tuple(score.value for score in mine),
    )
    return attrs.evolve(found, low=first.low, high=first.high) if len(mine) == 1 else found


# ---------------------------------------------------------------------------------------------------------- differences


def _differences(
    groups: Sequence[Group], named: Sequence[Compares], wanted: Wanted, catalogue: Catalogue, show: Display
) -> tuple[tuple[Comparison, ...], tuple[Refusal, ...]]:
    """Of the first with each other one, where their test rows are the same; else why not."""
    drawn = _Drawn(groups[0][0], {name: catalogue.metrics.get(name).offer for name in wanted.metrics})
    differences: list[Comparison] = []
    refused: list[Refusal] = []
    for number, (b, group) in enumerate(zip(named[1:], groups[1:], strict=True), start=1):
        a, pair = named[0], (groups[0], group)
        reasons = {level: _why_not_paired(pair, level) for level in wanted.levels}
        refused += _refusals(a, b, reasons)
        open_levels = [level for level, reason in reasons.items() if not reason]
        for fraction, metric, level in product(_shared(pair, wanted.fractions), wanted.metrics, open_levels):
            mine, other = (drawn.interval(one, fraction, metric, level) for one in pair)
            if mine is not None and other is not None:
                differences.append(_comparison(a, b, fraction, metric, level, compare(mine, other)))
        show.tick(number, len(groups) - 1)
    return tuple(differences), tuple(refused)


def _why_not_paired(pair: tuple[Group, Group], level: str) -> str:
    """Why the test rows of two groups cannot be paired, in words; nothing where they can."""
    first, other = pair[0][0], pair[1][0]
    for what in ("dataset", "task", "part"):
        mine, theirs = getattr(first, what), getattr(other, what)
        if mine != theirs:
            return f"the {_WORD[what]} is not the same ({mine} and {theirs})"
    if not _shared(pair, tuple(score.label_fraction for score in first.scores)):
        return "they have no share of labels in common"
    for one in (*pair[0], *pair[1]):
        if first.rows is None or one.rows is None:
            return f"{(one if one.rows is None else first).path} has no predictions"
        reason = why_not_same(first.rows, one.rows, level)
        if reason:
            split = first.split.seed, one.split.seed
            return f"{reason}; the split seeds are {split[0]} and {split[1]}" if split[0] != split[1] else reason
    return ""


_WORD = {"dataset": "data set", "task": "task", "part": "part of the patients"}


def _shared(pair: tuple[Group, Group], fractions: Sequence[float]) -> list[float]:
    """The shares of labels at which all have a score."""
    held = [{score.label_fraction for score in one.scores} for group in pair for one in group]
    return [one for one in dict.fromkeys(fractions) if all(one in some for some in held)]


def _refusals(a: Compares, b: Compares, reasons: dict[str, str]) -> list[Refusal]:
    """A refusal for each level, or one for all where the reason is the same."""
    if len(set(reasons.values())) == 1:
        reasons = {"": next(iter(reasons.values()))}
    return [Refusal(a=a.name, b=b.name, level=level, reason=why) for level, why in reasons.items() if why]


@attrs.frozen(eq=False)
class _Drawn:
    """Scores on draws of the test patients, each computed once. The draws are those of the first that is compared."""

    first: Candidate
    metrics: dict[str, Metric]
    known: dict[tuple[int, str, str, str], Interval | None] = attrs.field(factory=dict)

    def interval(self, group: Group, fraction: float, metric: str, level: str) -> Interval | None:
        """The mean over a group's seeds; None where one of them did not predict, or the metric is for other tasks."""
        found = [self._of_one(one, f"{fraction:g}", metric, level) for one in group]
        kept = [one for one in found if one is not None]
        return mean_interval(kept) if len(kept) == len(found) else None

    def _of_one(self, one: Candidate, fraction: str, metric: str, level: str) -> Interval | None:
        key = id(one), fraction, metric, level
        if key not in self.known:
            self.known[key] = self._draw(one, fraction, self.metrics[metric], level)
        return self.known[key]

    def _draw(self, one: Candidate, fraction: str, metric: Metric, level: str) -> Interval | None:
        assert one.rows is not None  # else they would not be paired
        mine = (one.protocol, one.weights, fraction)
        rows = next((rows for (p, i, f), rows in one.rows.predicted.items() if (p, i, f"{f:g}") == mine), None)
        if rows is None or one.rows.kind not in metric.tasks:
            return None
        resamples, seed = self.first.settings["evaluate.resamples"], seeds.derive(self.first.split.seed, "bootstrap")
        assert isinstance(resamples, int)
        return bootstrap(by_record(rows) if level == "record" else rows, metric.score, resamples, seed)


def _comparison(a: Compares, b: Compares, fraction: float, metric: str, level: str, gain: Interval) -> Comparison:
    return Comparison(
        a=a.name,
        b=b.name,
        protocol=a.protocol if a.protocol == b.protocol else f"{a.protocol} / {b.protocol}",
        dataset=a.dataset,
        label_fraction=fraction,
        metric=metric,
        level=level,  # type: ignore[arg-type]  # levels come from scores
        difference=gain.value,
        low=gain.low,
        high=gain.high,
    )
