"""Nearest neighbours against loops, for every kind of task and both distances; every promise of a protocol."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
import torch

from clocs_core import Features, Task, Trial
from clocs_core.settings.options import structure
from clocs_core.testing import checks_of, failures
from clocs_plugins.knn import KnnOptions, clocs_protocols, neighbours, predict

(OFFER,) = clocs_protocols()
TASKS = {
    "one_of": Task("t", ("a", "b", "c")),
    "any_of": Task("t", ("a", "b"), kind="any_of"),
    "number": Task("t", kind="number"),
}


def trial_of(kind, train=12, scored=5):
    rng = np.random.default_rng(0)
    labels = {
        "one_of": rng.integers(0, 3, train),
        "any_of": rng.integers(0, 2, (train, 2)),
        "number": rng.normal(60, 9, train).astype(np.float32),
    }
    ids, others = np.arange(train), np.arange(scored)
    far = Features(rng.normal(size=(scored, 4)).astype(np.float32), np.full(scored, -1), others, others)
    near = Features(rng.normal(1.0, 2.0, (train, 4)).astype(np.float32), labels[kind], ids, ids)
    return Trial(task=TASKS[kind], train=near, scored=far, seed=0, device=torch.device("cpu"))


def by_hand(trial, k, nearness):
    found = []
    for row in trial.scored.embedding.astype(np.float64):
        distances = []
        for number, other in enumerate(trial.train.embedding.astype(np.float64)):
            cosine = sum(row * other) / (sum(row**2) ** 0.5 * sum(other**2) ** 0.5)
            distances.append((1 - cosine if nearness == "cosine" else sum((row - other) ** 2), number))
        nearest = [number for _, number in sorted(distances)[:k]]
        label = trial.train.label[nearest].astype(np.float64)
        if trial.task.kind == "one_of":
            found.append([np.mean(label == one) for one in range(3)])
        else:
            found.append(np.atleast_1d(label.mean(axis=0)))
    return np.array(found)


@pytest.mark.parametrize("nearness", ["cosine", "euclidean"])
@pytest.mark.parametrize("kind", TASKS)
def test_the_mean_label_of_the_nearest_rows_is_predicted(kind, nearness):
    trial = trial_of(kind)
    found = predict(KnnOptions(k=3, nearness=nearness), trial).predicted
    np.testing.assert_allclose(found, by_hand(trial, 3, nearness), rtol=1e-12)


def test_with_fewer_rows_than_neighbours_all_are_asked_and_blocks_change_nothing(monkeypatch):
    trial = trial_of("one_of")
    whole = predict(KnnOptions(k=99), trial).predicted
    assert (whole == whole[0]).all()
    few = predict(KnnOptions(k=3), trial).predicted
    monkeypatch.setattr(neighbours, "_AT_ONCE", 13)
    np.testing.assert_array_equal(predict(KnnOptions(k=3), trial).predicted, few)


def test_it_keeps_every_promise_of_a_protocol():
    assert failures(checks_of(OFFER)) == {}


def test_no_neighbours_are_refused():
    with pytest.raises(ValueError, match="k"):
        structure(KnnOptions, attrs.asdict(KnnOptions()) | {"k": 0}, "protocol")
