"""Compute paired differences of scores over the same bootstrap samples of test patients, or say why there are none.

Differences are computed from the stored predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import attrs

from clocs_core import seeds
from clocs_core.artifacts.predictions import Predictions
from clocs_core.artifacts.results import Candidate, Group
from clocs_core.contracts.result_offers import Metric
from clocs_core.contracts.scores import Comparison
from clocs_core.evaluation.bootstrap import Interval, bootstrap
from clocs_core.evaluation.identification import find_recall
from clocs_core.evaluation.over_seeds import difference_over_seeds
from clocs_core.evaluation.pairing import predictions_at, why_not_same
from clocs_core.evaluation.permutation import permutation_p
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.progress import Display
from clocs_core.report.compared import Compares, Refusal


@attrs.frozen
class Wanted:
    """The scores to compare. Empty: the first metric of the reports; every level; every label fraction."""

    metrics: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    fractions: tuple[float, ...] = ()


@attrs.frozen
class Differences:
    """Paired differences, the reasons for missing ones, and the label fractions that have none."""

    found: tuple[Comparison, ...]
    refused: tuple[Refusal, ...]
    missing: tuple[str, ...]


def find_differences(
    groups: Sequence[Group], named: Sequence[Compares], wanted: Wanted, catalogue: Catalogue, show: Display
) -> Differences:
    """Pair the first group with each of the others, where their test rows are the same; `wanted` names everything."""
    drawn = _Drawn(groups[0][0], {name: _metric(name, catalogue) for name in wanted.metrics})
    differences: list[Comparison] = []
    refused: list[Refusal] = []
    missing: list[str] = []
    for number, (b, group) in enumerate(zip(named[1:], groups[1:], strict=True), start=1):
        a, pair = named[0], (groups[0], group)
        reasons = {level: _why_not_paired(pair, level) for level in wanted.levels}
        refused += _refusals(a, b, reasons)
        open_levels = [level for level, reason in reasons.items() if not reason]
        missing += _one_sided((a, b), pair, wanted.fractions) if open_levels else []
        for fraction, metric, level in product(_shared(pair, wanted.fractions), wanted.metrics, open_levels):
            mine, other = (drawn.by_seed(_in_order(one), fraction, metric, level) for one in pair)
            if mine and other:
                gain = difference_over_seeds(mine, other, paired=sorted(a.seeds) == sorted(b.seeds))
                p = drawn.test(pair, fraction, metric, level)
                differences.append(_comparison(a, b, fraction, drawn.metrics[metric], level, gain, p))
        show.tick(number, len(groups) - 1)
    return Differences(tuple(differences), tuple(refused), tuple(missing))


def _metric(name: str, catalogue: Catalogue) -> Metric:
    return find_recall(name) or catalogue.metrics.get(name).offer


def _why_not_paired(pair: tuple[Group, Group], level: str) -> str:
    """Say why the test rows of two groups cannot be paired; return "" where they can."""
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
    """Return the label fractions at which all candidates have a score."""
    return [one for one in dict.fromkeys(fractions) if all(_has_scores(group, one) for group in pair)]


def _has_scores(group: Group, fraction: float) -> bool:
    """Return whether each candidate of a group has a score at a label fraction."""
    return all(any(score.label_fraction == fraction for score in one.scores) for one in group)


def _one_sided(names: tuple[Compares, Compares], pair: tuple[Group, Group], fractions: Sequence[float]) -> list[str]:
    """Describe the requested label fractions that have no difference, and name the group without a score."""
    found: dict[str, list[str]] = {}
    for fraction in fractions:
        lacking = [name for name, group in zip(names, pair, strict=True) if not _has_scores(group, fraction)]
        who = " and ".join(f"{'a seed of ' if len(one.seeds) > 1 else ''}{one.letter}" for one in lacking)
        if who:
            found.setdefault(who, []).append(f"{fraction:g}")
    a, b = names
    return [
        f"{a.name} and {b.name} are not compared at F = {', '.join(shares)}: {who} has no score there."
        for who, shares in found.items()
    ]


def _refusals(a: Compares, b: Compares, reasons: dict[str, str]) -> list[Refusal]:
    """Make a refusal for each level, or a single one where the reason is the same."""
    if len(set(reasons.values())) == 1:
        reasons = {"": next(iter(reasons.values()))}
    return [Refusal(a=a.name, b=b.name, level=level, reason=why) for level, why in reasons.items() if why]


@attrs.frozen(eq=False)
class _Drawn:
    """Scores on bootstrap samples of the test patients, each computed once. The first candidate sets the samples."""

    first: Candidate
    metrics: dict[str, Metric]
    known: dict[tuple[int, float, str, str], Interval | None] = attrs.field(factory=dict)

    def by_seed(self, group: Group, fraction: float, metric: str, level: str) -> list[Interval]:
        """Return the scores of a group; none where one has no predictions, or the metric is for other tasks."""
        found = [self._of_one(one, fraction, metric, level) for one in group]
        kept = [one for one in found if one is not None]
        return kept if len(kept) == len(found) else []

    def _of_one(self, one: Candidate, fraction: float, metric: str, level: str) -> Interval | None:
        key = id(one), fraction, metric, level
        if key not in self.known:
            self.known[key] = self._draw(one, fraction, self.metrics[metric], level)
        return self.known[key]

    def test(self, pair: tuple[Group, Group], fraction: float, metric: str, level: str) -> float | None:
        """Return p of the permutation test over patients; None where a side has several seeds, which vary as well."""
        if len(pair[0]) > 1 or len(pair[1]) > 1:
            return None
        mine, other = (_rows(group[0], fraction, level) for group in pair)
        assert mine is not None, "both sides have a score"
        assert other is not None, "both sides have a score"
        return permutation_p(mine, other, self.metrics[metric], *self._how_often("permutations", "permutation"))

    def _draw(self, one: Candidate, fraction: float, metric: Metric, level: str) -> Interval | None:
        assert one.rows is not None  # candidates without rows are not paired
        rows = _rows(one, fraction, level)
        if rows is None or one.rows.kind not in metric.tasks:
            return None
        return bootstrap(rows, metric, *self._how_often("resamples", "bootstrap"))

    def _how_often(self, setting: str, purpose: str) -> tuple[int, int]:
        """Return how many draws to make, and their seed."""
        count = self.first.settings[f"evaluate.{setting}"]
        assert isinstance(count, int)
        return count, seeds.derive(self.first.split.seed, purpose)


def _rows(one: Candidate, fraction: float, level: str) -> Predictions | None:
    """Return the predictions that the scored weights made, at a level."""
    assert one.rows is not None
    return predictions_at(one.rows, one.protocol, one.weights, fraction, level)


def _in_order(group: Group) -> Group:
    return tuple(sorted(group, key=lambda one: (one.seed, str(one.settings.get("evaluation.seed", "")))))


def _comparison(
    a: Compares, b: Compares, fraction: float, metric: Metric, level: str, gain: Interval, p: float | None
) -> Comparison:
    return Comparison(
        a=a.name,
        b=b.name,
        protocol=a.protocol if a.protocol == b.protocol else f"{a.protocol} / {b.protocol}",
        dataset=a.dataset,
        label_fraction=fraction,
        metric=metric.name,
        level=level,  # type: ignore[arg-type]  # levels come from scores
        difference=gain.value,
        low=gain.low,
        high=gain.high,
        seeds=min(len(set(a.seeds)), len(set(b.seeds))),
        better=metric.better,
        p=p,
    )
