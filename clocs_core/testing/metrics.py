"""Rules for metrics: the best predictions have the best score, and weights count rows."""

from __future__ import annotations

import pickle
import random
import unittest
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.contracts.kinds import KINDS
from clocs_core.contracts.result_offers import Metric
from clocs_core.testing.checks import Check, expect, label_of, make_checks, rules_of
from clocs_core.testing.pace import Clock, expect_quick

ROWS, CLASSES = 24, 3


@attrs.frozen
class _Sample:
    """Rows to score: probability (n, class) or numbers (n, 1), label (n,) or (n, class), weight (n,)."""

    kind: str
    probability: NDArray[np.float64]
    label: NDArray[Any]
    weight: NDArray[np.float64]


@attrs.frozen
class _Case:
    offer: Metric
    clock: Clock

    def given(self, sample: _Sample) -> object:
        """Return the metric's result for rows, of any type."""
        return self.offer.score(sample.probability.copy(), sample.label.copy(), sample.weight.copy())

    def score(self, sample: _Sample, **other: Any) -> float:
        """Return the score of rows, with some of their arrays replaced."""
        found = self.given(attrs.evolve(sample, **other))
        if not isinstance(found, float):  # the rules `number` and `absent-class` report it
            raise unittest.SkipTest("a score is not a float, so there is nothing to compare")
        return found

    def samples(self, classes_that_occur: int = CLASSES) -> Iterator[_Sample]:
        """Yield noisy predictions for each kind of task; the labels cycle through the classes."""
        rng = np.random.default_rng(0)
        for kind in self.offer.tasks:
            label: NDArray[Any] = np.arange(ROWS) % classes_that_occur
            if kind == "number":
                label = (10.0 + 5.0 * label).astype(np.float32)
                noisy = label[:, None] + rng.normal(size=(ROWS, 1))
                yield _Sample(kind, noisy, label, rng.integers(1, 4, ROWS).astype(np.float64))
                continue
            truth = np.eye(CLASSES, dtype=np.int64)[label]
            if kind == "any_of":
                label = truth
            probability = 0.4 * truth + rng.random(truth.shape)
            if kind == "one_of":
                probability /= probability.sum(1, keepdims=True)
            yield _Sample(kind, np.clip(probability, 0, 1), label, rng.integers(1, 4, ROWS).astype(np.float64))


def checks_of_metric(offer: Metric, clock: Clock) -> list[Check]:
    """Return the checks of a metric."""
    return make_checks(label_of(offer), rules_of(__name__), _Case(offer, clock))


def _tasks(case: _Case) -> None:
    """The metric names the kinds of task that it can score."""
    tasks = case.offer.tasks
    fits = isinstance(tasks, tuple) and len(tasks) > 0 and set(tasks) <= set(KINDS)
    expect(fits, f"a tuple of {' and '.join(map(repr, KINDS))}", repr(tasks), "Name the kinds of task it can score.")


def _number(case: _Case) -> None:
    """A score is a finite Python float, within the limits of the metric."""
    low, high = case.offer.limits
    for sample in case.samples():
        found = case.given(sample)
        fits = isinstance(found, float) and np.isfinite(found)
        expect(fits, f"a finite float for a {sample.kind} task", repr(found), "Return float(...).")
        advice = "Give the least and the largest score that there can be as `limits`."
        inside = isinstance(found, float) and low <= found <= high
        expect(inside, f"a score of {low:g} to {high:g}", repr(found), advice)


def _perfect_is_best(case: _Case) -> None:
    """Perfect predictions score at least as well as shuffled ones, and better than the opposite."""
    rng = np.random.default_rng(1)
    sign = -1.0 if case.offer.better == "lower" else 1.0
    for sample in case.samples():
        perfect, opposite = _best_and_worst(sample)
        best = case.score(sample, probability=perfect)
        others = [case.score(sample, probability=rng.permutation(perfect)) for _ in range(5)]
        worst = case.score(sample, probability=opposite)
        shuffled = max(others, key=lambda score: sign * score)
        found = f"{best} for perfect predictions, {shuffled} for shuffled ones, {worst} for the opposite"
        fits = sign * best >= sign * shuffled and sign * best > sign * worst
        advice = "Higher must be better; negate an error. With `better='lower'`, lower scores are the better ones."
        if case.offer.better == "lower":
            advice = "With `better='lower'`, lower scores must be the better ones."
        expect(fits, f"the {case.offer.better[:-2]}est score for perfect predictions", found, advice)


def _best_and_worst(sample: _Sample) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the best predictions of a sample, and the worst."""
    if sample.kind == "number":
        value = sample.label[:, None].astype(np.float64)
        return value, value.min() + value.max() - value
    truth = sample.label if sample.kind == "any_of" else np.eye(CLASSES)[sample.label]
    perfect = 0.05 + 0.85 * truth.astype(np.float64)
    opposite = 0.95 - perfect
    if sample.kind == "one_of":
        opposite /= opposite.sum(1, keepdims=True)  # some metrics require rows that sum to 1
    return perfect, opposite


def _weight_scale(case: _Case) -> None:
    """Doubling all weights does not change the score."""
    for sample in case.samples():
        _expect_same(case.score(sample, weight=2 * sample.weight), case.score(sample), "Divide by the sum of weights.")


def _weight_zero(case: _Case) -> None:
    """A row of weight 0 does not count."""
    for sample in case.samples():
        without = attrs.evolve(
            sample, probability=sample.probability[1:], label=sample.label[1:], weight=sample.weight[1:]
        )
        weight = np.concatenate([[0.0], sample.weight[1:]])
        probability = np.concatenate([sample.probability[:1, ::-1], sample.probability[1:]])
        found = case.score(sample, weight=weight, probability=probability)
        _expect_same(found, case.score(without), "Multiply each row's part by its weight, or drop rows of weight 0.")


def _weight_counts(case: _Case) -> None:
    """A row of weight 2 counts as much as two equal rows."""
    for sample in case.samples():
        ones, twice = np.ones(ROWS), np.append(np.arange(ROWS), 0)
        doubled = attrs.evolve(
            sample, probability=sample.probability[twice], label=sample.label[twice], weight=np.ones(ROWS + 1)
        )
        ones[0] = 2.0
        _expect_same(case.score(sample, weight=ones), case.score(doubled), "Weight every row's part of the score.")


def _order_of_rows(case: _Case) -> None:
    """The score does not depend on the order of the rows."""
    for sample in case.samples():
        back = attrs.evolve(
            sample, probability=sample.probability[::-1], label=sample.label[::-1], weight=sample.weight[::-1]
        )
        _expect_same(case.score(back), case.score(sample), "Score rows by their values, not by their position.")


def _absent_class(case: _Case) -> None:
    """Labels that lack a class, or have only one class or value, give a float: NaN where the metric is not defined."""
    for present in (CLASSES - 1, 1):
        for sample in case.samples(present):
            found = case.given(sample)
            asked = f"a float where {present} of {CLASSES} classes occur"
            expect(isinstance(found, float), asked, repr(found), "Leave absent classes out, or return NaN.")


def _arguments_unchanged(case: _Case) -> None:
    """The arrays are not modified: the next bootstrap sample uses them again."""
    for sample in case.samples():
        kept = (sample.probability.copy(), sample.label.copy(), sample.weight.copy())
        given = (sample.probability, sample.label, sample.weight)
        case.offer.score(*given)
        same = all(np.array_equal(a, b) for a, b in zip(given, kept, strict=True))
        expect(same, "the arrays as they were", "other values", "Work on copies.")


def _pure(case: _Case) -> None:
    """The same rows give the same score, and no global random generator is used."""
    for sample in case.samples():
        before = _random_states()
        first, second = case.score(sample), case.score(sample)
        same = first == second or (np.isnan(first) and np.isnan(second))
        expect(bool(same), f"the same score, {first}", second, "Draw nothing: the bootstrap draws the rows.")
        moved = before != _random_states()
        expect(not moved, "no use of a global random generator", "one has moved", "Seed your own generator.")


def _draws(case: _Case) -> None:
    """`score_draws` and `score_tensors`, where there are any, score each draw as `score` does."""
    rng = np.random.default_rng(2)
    for sample in case.samples():
        weights = rng.integers(1, 4, (5, ROWS)).astype(np.float64)
        expected = [case.score(sample, weight=weight) for weight in weights]
        for name, found in _score_together(case.offer, (sample.probability, sample.label, weights)).items():
            fits = np.shape(found) == (5,) and np.allclose(found, expected, rtol=0, atol=1e-9)
            expect(fits, f"{expected} from {name}, as from score", found, "Weight rows alike in both.")


def _score_together(offer: Metric, rows: tuple[NDArray[Any], ...]) -> dict[str, NDArray[np.float64]]:
    found = {}
    if offer.score_draws is not None:
        found["score_draws"] = offer.score_draws(*(one.copy() for one in rows))
    if offer.score_tensors is not None:
        import torch

        found["score_tensors"] = offer.score_tensors(*(torch.tensor(one) for one in rows)).numpy()
    return found


def _quick(case: _Case) -> None:
    """A score of a few rows takes little processor time: it is computed for every bootstrap sample."""
    for sample in case.samples():
        advice = "Score all rows at once, without loops."
        expect_quick(lambda sample=sample: case.given(sample), f"{ROWS} rows", advice, case.clock)  # type: ignore[misc]


def _random_states() -> tuple[bytes, bytes]:
    theirs = np.random.get_state()  # noqa: NPY002  the global generator is the one to watch
    return pickle.dumps(theirs), pickle.dumps(random.getstate())


def _expect_same(found: float, expected: float, change: str) -> None:
    same = bool(np.isclose(found, expected, rtol=1e-9, atol=1e-9, equal_nan=True))
    expect(same, f"the same score, {expected}", found, change)
