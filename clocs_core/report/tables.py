"""Turn scores, comparisons and labels into rows and sentences for console, HTML and log. Nothing is printed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs

from clocs_core.contracts.scores import Comparison, Score

if TYPE_CHECKING:
    from clocs_core.artifacts.reports import RetrievalRow

SCORE_HEADINGS = ("protocol", "weights", "labels F", "metric", "level", "value", "95 % interval")
COMPARISON_HEADINGS = ("a", "b", "protocol", "labels F", "metric", "level", "a - b", "95 % interval", "reading", "p")
RETRIEVAL_HEADINGS = (
    "right is",
    "encoder",
    "nearness",
    "recall@1",
    "recall@5",
    "recall@10",
    "MAP",
    "queries",
    "left out",
)

Outcome: TypeAlias = Literal["above", "below", "undecided", "undefined"]
"""Position of the interval of a difference: a better (`above`), a worse (`below`), across 0, or undefined."""

_READING: dict[Outcome, str] = {
    "above": "excludes 0",
    "below": "excludes 0",
    "undecided": "contains 0",
    "undefined": "not defined",
}


@attrs.frozen
class Verdict:
    """The summary of a report: the headline, further sentences, and the position of the headline's interval."""

    outcome: Outcome
    headline: str
    rest: str = ""


def show_number(value: float) -> str:
    """Format a number with three decimals; a smaller one keeps its first digit, because 0.000 would read as zero."""
    if math.isnan(value):
        return "n/a"
    if value != 0 and abs(value) < 0.0005:
        return f"{value:.1g}"
    return f"{value:.3f}"


def initial_weights(score: Score) -> str:
    """Name the scored weights: the method, random, supervised, or the class prior (no encoder)."""
    return "class prior" if score.protocol == "prior" else score.init


def score_rows(scores: Sequence[Score]) -> tuple[tuple[str, ...], ...]:
    """Return a row per score under SCORE_HEADINGS, in the order given."""
    return tuple(
        (
            score.protocol,
            initial_weights(score),
            f"{score.label_fraction:g}",
            score.metric,
            score.level,
            show_number(score.value),
            _interval(score.low, score.high),
        )
        for score in scores
    )


def wide_score_rows(scores: Sequence[Score]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return headings, and a row for each classifier and level: all metrics side by side, the first with interval."""
    metrics = list(dict.fromkeys(score.metric for score in scores))
    headings = ("protocol", "weights", "labels", "level", metrics[0], "95 % interval", *metrics[1:])
    found: dict[tuple[str, ...], dict[str, Score]] = {}
    for score in scores:
        classifier = (score.protocol, initial_weights(score), f"{score.label_fraction:g}", score.level)
        found.setdefault(classifier, {})[score.metric] = score
    rows = []
    for row, by_metric in found.items():
        values = [show_number(by_metric[name].value) if name in by_metric else "" for name in metrics]
        first = by_metric.get(metrics[0])
        rows.append((*row, values[0], _interval(first.low, first.high) if first else "", *values[1:]))
    return headings, tuple(rows)


def comparison_rows(comparisons: Sequence[Comparison]) -> tuple[tuple[str, ...], ...]:
    """Return a row per comparison under COMPARISON_HEADINGS, in the order given."""
    return tuple(
        (
            compared.a,
            compared.b,
            compared.protocol,
            f"{compared.label_fraction:g}",
            compared.metric,
            compared.level,
            show_number(compared.difference),
            _interval(compared.low, compared.high),
            _READING[outcome(compared)],
            "–" if compared.p is None else show_number(compared.p),
        )
        for compared in comparisons
    )


def retrieval_rows(rows: Sequence[RetrievalRow]) -> tuple[tuple[str, ...], ...]:
    """Return a row per search under RETRIEVAL_HEADINGS, in the order given."""
    return tuple(
        (
            row.relevant,
            row.init,
            row.nearness,
            show_number(row.recall_at_1),
            show_number(row.recall_at_5),
            show_number(row.recall_at_10),
            show_number(row.mean_average_precision),
            f"{row.queries:,}",
            f"{row.left_out:,}",
        )
        for row in rows
    )


_NEAREST_IS = {
    "same recording": "of the same recording (left out: the patient's others)",
    "other recordings": "of the same patient (left out: the recording itself)",
    "same diagnosis": "of the same diagnosis (left out: the patient)",
}


def retrieval_sentence(rows: Sequence[RetrievalRow], method: str) -> str:
    """Say how often the nearest row by Euclidean distance is right, for a method and its controls."""
    said = []
    for way, words in _NEAREST_IS.items():
        found = {row.init: row for row in rows if row.relevant == way and row.nearness != "cosine"}
        if method not in found:
            continue
        others = ", ".join(f"{name} {row.recall_at_1:.1%}" for name, row in found.items() if name != method)
        beside = f" ({others})" if others else ""
        said.append(f"{words} in {found[method].recall_at_1:.1%} of {found[method].queries:,} queries{beside}")
    return f"With {method}, the nearest row is {'; '.join(said)}." if said else ""


def outcome(compared: Comparison) -> Outcome:
    """Return the position of the interval: above 0 if a is better. An interval that only touches 0 contains it."""
    low, high = _gain(compared)
    if any(math.isnan(value) for value in (compared.difference, low, high)):
        return "undefined"
    if low > 0:
        return "above"
    return "below" if high < 0 else "undecided"


def _gain(compared: Comparison) -> tuple[float, float]:
    """Return the interval of the difference such that positive numbers are in favour of a."""
    low, high = compared.low, compared.high
    return (-high, -low) if compared.better == "lower" else (low, high)


def comparison_sentence(compared: Comparison) -> str:
    """Write the comparison as a sentence that says what the interval is over, and whether it contains 0.

    The interval alone decides between the words. The p of the permutation test is beside it, where there is one.
    """
    a, b, found = compared.a, compared.b, outcome(compared)
    several = compared.seeds > 1
    seeds = f"{compared.seeds} seeds" if several else "one seed"
    labels = float(compared.label_fraction)
    lower = compared.better == "lower"
    metric = f"{compared.metric} (lower is better)" if lower else compared.metric
    where = f"({compared.protocol}, {metric}, {compared.level} level, F = {labels!r}, {seeds})"
    interval = f"the interval over {'seeds and patients' if several else 'patients'}"
    by, low, high = compared.difference, compared.low, compared.high
    tested = "" if compared.p is None else f" Permutation test over patients: p = {show_number(compared.p)}."
    if found == "undefined":
        return f"{a} and {b} cannot be compared {where}: the difference or its interval is not defined."
    if found == "undecided":
        size = f"{show_number(by)} {_interval(low, high)}"
        said = f"{a} and {b} differ by {size} {where}: {interval} contains 0, so this test cannot tell them apart."
        return said + tested
    size = f"{show_number(by)} {_interval(low, high)}"
    if by < 0:
        size = f"{show_number(-by)} {_interval(-high, -low)}"
    position = found if not lower else "better than" if found == "above" else "worse than"
    return f"{a} is {position} {b} by {size} {where}: {interval} excludes 0.{tested}"


def verdict(scores: Sequence[object], comparisons: Sequence[Comparison], notes: Sequence[str]) -> Verdict:
    """Summarise a report by the comparison with the most labels (the first of them, in the order given).

    Where recordings are scored as well as frames, it is a comparison of recordings: they are what was labelled.
    The rest counts all comparisons, so that a reader sees at once whether the headline is an exception.
    """
    if not scores:
        why = "; the notes say why." if notes else ", and the run left no note that says why."
        return Verdict("undefined", f"There is no score{why}")
    if not comparisons:
        return Verdict(
            "undefined", "There are scores but no comparison: nothing here says whether pre-training helped."
        )
    most = max(compared.label_fraction for compared in comparisons)
    largest = [compared for compared in comparisons if compared.label_fraction == most]
    first = next((compared for compared in largest if compared.level == "record"), largest[0])
    return Verdict(outcome(first), comparison_sentence(first), _count_outcomes(comparisons))


def _count_outcomes(comparisons: Sequence[Comparison]) -> str:
    found = [outcome(compared) for compared in comparisons]
    if len(found) < 2:
        return ""
    mixed = any(compared.better == "lower" for compared in comparisons)
    words = (
        ("above", "for the better" if mixed else "above 0"),
        ("undecided", "across 0"),
        ("below", "for the worse" if mixed else "below 0"),
        ("undefined", "not defined"),
    )
    counts = [f"{found.count(name)} {text}" for name, text in words if name in found]
    return f"Of all {len(found)} intervals: {', '.join(counts)}."


def _interval(low: float, high: float) -> str:
    return f"[{show_number(low)}, {show_number(high)}]"
