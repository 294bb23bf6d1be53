"""Kinds of task: how labels are kept, decoded, guessed and said; every table by kind has every kind."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from clocs_core import Episode, Task
from clocs_core.artifacts import networks
from clocs_core.contracts.kinds import KINDS, as_rows, kind_of, kind_of_rows
from clocs_core.evaluation.classifiers import MODELS
from clocs_core.train.label_loss import LOSSES

ONE = Task("rhythm", ("a", "b"))
ANY = Task("findings", ("a", "b"), kind="any_of")
AGE = Task("age", kind="number", unit="years")


@pytest.mark.parametrize("table", [LOSSES, MODELS, networks._HEADS])
def test_a_table_by_kind_has_every_kind(table):
    """Or a new kind would fail in the middle of a run."""
    assert table.keys() == KINDS.keys()


@pytest.mark.parametrize(
    ("task", "labels", "stored", "rows"),
    [
        (ONE, [1, None], [1, -1], [1, -1]),
        (ANY, [frozenset({1}), frozenset(), None], [[0, 1], [0, 0], [np.nan] * 2], [[0, 1], [0, 0], [-1, -1]]),
        (ANY, [0], [[1, 0]], [[1, 0]]),
        (AGE, [61.5, 70, None], [61.5, 70, np.nan], [61.5, 70, np.nan]),
    ],
)
def test_labels_are_kept_with_a_mark_for_none(task, labels, stored, rows):
    found = kind_of(task).as_array(labels, task)
    np.testing.assert_array_equal(found, np.array(stored))
    assert found.dtype == (np.int64 if task is ONE else np.float32)
    np.testing.assert_array_equal(as_rows(found), np.array(rows))
    assert kind_of_rows(as_rows(found)) == task.kind


@pytest.mark.parametrize(
    ("task", "label", "words"),
    [
        (ONE, 1, "b"),
        (ONE, -1, "no label"),
        (ANY, [1, 0], "a"),
        (ANY, [1, 1], "a + b"),
        (ANY, [0, 0], "none of the classes"),
        (ANY, [-1, -1], "no label"),
        (AGE, 61.5, "61.5 years"),
        (AGE, float("nan"), "no label"),
    ],
)
def test_a_label_in_words(task, label, words):
    """None of the classes is known to hold: that is a finding. No label is none."""
    assert kind_of(task).row_in_words(np.array(label), task) == words


@pytest.mark.parametrize(
    ("task", "labels", "guess"),
    [(ONE, [0, 1, 1, 1], [0.25, 0.75]), (ANY, [[0, 1], [1, 1]], [0.5, 1.0]), (AGE, [60.0, 61.0, 65.0], [62.0])],
)
def test_the_guess_without_a_signal_is_the_frequency_or_the_mean(task, labels, guess):
    dtype = np.float32 if task is AGE else np.int64
    np.testing.assert_allclose(kind_of(task).guess(np.array(labels, dtype=dtype), task), guess)


def test_outputs_become_probabilities_or_stay_numbers():
    logits = torch.tensor([[0.0, 2.0]])
    assert kind_of(ONE).decode(logits).sum() == pytest.approx(1.0)
    assert kind_of(ANY).decode(logits).tolist() == [[0.5, pytest.approx(0.8808, abs=1e-4)]]
    assert kind_of(AGE).decode(logits[:, 1:]).tolist() == [[2.0]]


def test_decisions():
    probability = np.array([0.6, 0.7])
    assert kind_of(ONE).decide(probability, ONE.outputs) == "b"
    assert kind_of(ANY).decide(probability, ANY.outputs) == ("a", "b")
    assert kind_of(AGE).decide(np.array([61.5]), AGE.outputs) == 61.5


@pytest.mark.parametrize(
    ("task", "values", "only"),
    [(ONE, {1}, "b"), (ONE, {0, 1}, ""), (ANY, {1}, ""), (AGE, {60.0}, "60 years"), (AGE, {60.0, 61.0}, "")],
)
def test_one_class_or_one_value_leaves_nothing_to_tell(task, values, only):
    assert kind_of(task).nothing_to_tell(values, task) == only


@pytest.mark.parametrize(
    ("task", "label", "fault"),
    [
        (ONE, 1, ""),
        (ONE, 2, "classes are int"),
        (ONE, frozenset({1}), "any-of"),
        (ANY, frozenset({2}), "classes are int"),
        (ANY, 1, "frozenset"),
        (AGE, 61.5, ""),
        (AGE, 61, ""),
        (AGE, float("nan"), "finite"),
        (AGE, True, "finite"),
        (AGE, "61", "finite"),
    ],
)
def test_a_label_that_is_none_of_its_task_is_named(task, label, fault):
    found = kind_of(task).fault(label, task)
    assert fault in found
    assert bool(found) == bool(fault)


def test_labels_are_counted_by_class_and_numbers_as_they_come():
    assert kind_of(ANY).count([frozenset({0, 1}), None, frozenset({1})], ANY) == {"a": 1, "b": 2}
    assert kind_of(AGE).count([60.0, None, 61.0], AGE) == {"labelled": 2}
    assert set(kind_of(AGE).values((Episode(0, 9, 60.0), Episode(10, 19, 61.0)))) == {60.0, 61.0}
