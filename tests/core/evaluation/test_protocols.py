"""The protocol of a plugin: it sees no label that is scored, and what it returns is checked."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from clocs_core import Answer, Features, Protocol, Task, Trial
from clocs_core.errors import DataError, PluginError
from clocs_core.evaluation.protocols import run_protocol
from clocs_core.plan.data import Chosen

ONE, AGE = Task("t", ("a", "b")), Task("age", kind="number")


def trial(task=ONE):
    label = np.array([0, 1, 1]) if task is ONE else np.array([60.0, 61.0, 62.0], dtype=np.float32)
    rows = Features(np.zeros((3, 2), np.float32), label, np.arange(3), np.arange(3))
    return Trial(task=task, train=rows, scored=rows, seed=4, device=torch.device("cpu"))


def run(predict, task=ONE):
    offer = Protocol(name="mine", summary="s", predict=predict)
    return run_protocol(Chosen(offer, None, "plugin 'mine' (mine 1.0)"), trial(task))


@pytest.mark.parametrize("task", [ONE, AGE], ids=["classes", "number"])
def test_labels_that_are_scored_are_withheld_and_the_others_are_not(task):
    """Or a protocol could score itself, by mistake or otherwise."""
    seen = []

    def predict(_options, given):
        seen.append(given)
        return Answer(np.full((3, len(task.outputs)), 1 / len(task.outputs)))

    given = trial(task)
    run(predict, task)
    assert np.isnan(seen[0].scored.label).all() if task is AGE else (seen[0].scored.label == -1).all()
    np.testing.assert_array_equal(seen[0].train.label, given.train.label)


def test_torch_is_seeded_so_that_the_encoder_and_its_control_begin_alike():
    def predict(_options, given):
        return Answer(torch.rand(3, 2, dtype=torch.float64).softmax(1).numpy())

    first = run(predict).predicted
    torch.rand(5)
    np.testing.assert_array_equal(run(predict).predicted, first)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.zeros((3, 2)), "must return an Answer, got ndarray"),
        (Answer(np.zeros((2, 2))), r"must predict a float64 array of the shape \(3, 2\), got ndarray \(2, 2\)"),
        (Answer(np.zeros((3, 2), np.float32)), "must predict a float64 array"),
        (Answer([[0.0, 1.0]] * 3), r".*, got list None"),
        (Answer(np.full((3, 2), np.nan)), "predicts values that are not finite"),
        (Answer(np.full((3, 2), 1.5)), "must predict probabilities from 0 to 1, got 1.5 to 1.5"),
        (Answer(np.full((3, 2), 0.4)), r"must predict probabilities that sum to 1 in each row, got 0\.8 to 0\.8"),
        (Answer(np.full((3, 2), 0.5), chosen=["k"]), r"must name what it has chosen by a mapping, got \['k'\]"),
        (Answer(np.full((3, 2), 0.5), notes=None), "must return notes as a tuple of sentences, got None"),
        (Answer(np.full((3, 2), 0.5), notes="k = 5."), "must return notes as a tuple of sentences, got 'k = 5\\.'"),
    ],
)
def test_an_answer_that_does_not_fit_names_the_plugin(answer, message):
    with pytest.raises(PluginError, match=rf"Protocol 'mine' of plugin 'mine' \(mine 1.0\) {message}"):
        run(lambda _options, _trial: answer)


def test_a_number_may_be_any_number():
    assert run(lambda _options, _trial: Answer(np.full((3, 1), 61.5)), AGE).predicted[0, 0] == 61.5


def test_a_protocol_that_fails_is_named_and_what_it_refuses_is_passed_on():
    def breaks(_options, _trial):
        raise KeyError("centre")

    def refuses(_options, _trial):
        raise DataError("Too few rows.")

    with pytest.raises(PluginError, match=r"Protocol 'mine' of plugin 'mine' \(mine 1.0\) failed: KeyError: 'centre'"):
        run(breaks)
    with pytest.raises(DataError, match="Too few rows"):
        run(refuses)
