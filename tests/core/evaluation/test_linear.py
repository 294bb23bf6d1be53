"""Linear evaluation: frozen means frozen, fractions nest, absent classes do no harm."""

import numpy as np
import pytest
import torch
from fake_frames import TASK
from sklearn.linear_model import LogisticRegression

from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.records import Task
from clocs_core.errors import ClocsWarning, DataError
from clocs_core.evaluation import linear as module
from clocs_core.evaluation import logistic
from clocs_core.evaluation.features import Features
from clocs_core.evaluation.linear import GRID, by_record, linear, linear_with_best_c, prior

ANY_OF = Task("finding", classes=("a", "b", "c"), kind="any_of")


def features(n=60, dim=3, classes=3, seed=0, label=None):
    rng = np.random.default_rng(seed)
    label = np.arange(n) % classes if label is None else label
    n = len(label)
    centre = label if label.ndim == 1 else label.sum(1)
    z = rng.normal(centre[:, None] * [1.0, -1.0, 0.0], 0.3, (n, dim)).astype(np.float32)
    return Features(z, label.astype(np.int64), np.arange(n) // 4, np.arange(n) // 2)


def test_separable_classes_are_told_apart_and_rows_sum_to_one():
    found = linear(features(seed=1), features(seed=2), TASK)
    assert (found.probability.argmax(1) == found.label).mean() > 0.95
    np.testing.assert_allclose(found.probability.sum(1), 1.0)


def test_a_class_absent_from_training_keeps_probability_zero_and_its_column():
    """The released code drops the column, and every later class is scored against its neighbour."""
    train = features(label=np.array([0, 2] * 30))
    found = linear(train, features(seed=3), TASK)
    assert found.probability.shape[1] == 3
    assert (found.probability[:, 1] == 0).all()


def test_one_class_alone_is_refused_by_name():
    with pytest.raises(DataError, match=r"all have one class \(b\)"):
        linear(features(label=np.ones(20, dtype=int)), features(), TASK)


def test_any_of_tasks_get_a_model_per_class_and_a_constant_where_nothing_varies():
    label = np.zeros((60, 3), dtype=int)
    label[::2, 0] = 1
    label[:, 2] = 1
    found = linear(features(label=label), features(seed=4, label=label), ANY_OF)
    assert ((found.probability[:, 0] > 0.5) == (label[:, 0] == 1)).mean() > 0.9
    assert (found.probability[:, 1] == 0).all()
    assert (found.probability[:, 2] == 1).all()


@pytest.mark.parametrize("part", ["training", "scored"])
def test_embeddings_that_are_not_finite_are_refused(part):
    rows = {"training": features(seed=1), "scored": features(seed=2)}
    rows[part].embedding[3:5, 1] = np.nan, np.inf
    with pytest.raises(DataError, match="embeddings of 2 of 60 frames are not finite, so no classifier"):
        linear(rows["training"], rows["scored"], TASK)


@pytest.mark.parametrize("kind", ["one_of", "any_of"])
def test_the_best_c_is_that_of_the_highest_score_on_validation_rows(kind):
    """All C are fitted as one batch; each must predict what it does alone."""
    task = Task("finding", classes=("a", "b", "c"), kind=kind)
    label = np.arange(60) % 3
    label = (label[:, None] > [0, 1, -1]).astype(int) if kind == "any_of" else label
    train, validation, test = (features(seed=seed, label=label) for seed in (1, 2, 3))

    def closeness(probability, label, weight):
        truth = label if label.ndim == 2 else np.eye(3)[label]
        return -float(((probability - truth) ** 2).sum())

    alone = {c: linear(train, validation, task, c=c) for c in GRID}
    best = max(GRID, key=lambda c: closeness(alone[c].probability, label, None))
    found, c, score = linear_with_best_c(train, validation, test, task, closeness)
    assert c == best != GRID[0]
    assert score == pytest.approx(closeness(alone[c].probability, label, None))
    np.testing.assert_allclose(found.probability, linear(train, test, task, c=c).probability, atol=1e-7)
    assert found.patient is test.patient


def test_the_smallest_of_equally_good_c_is_chosen_and_1_where_there_is_no_score():
    train, test = features(seed=1), features(seed=2)
    assert linear_with_best_c(train, test, test, TASK, lambda *rows: 0.5)[1:] == (0.001, 0.5)
    found, c, score = linear_with_best_c(train, test, test, TASK, lambda *rows: float("nan"))
    assert c == 1
    assert np.isnan(score)
    np.testing.assert_allclose(found.probability, linear(train, test, TASK).probability, atol=1e-7)


def test_more_classes_than_rows_and_equal_rows_are_fitted():
    """Neither is an error of linear algebra: the penalty alone determines the weights."""
    many = Task("rhythm", classes=tuple("abcdefgh"))
    few = linear(features(label=np.array([1, 4, 6])), features(9), many)
    assert not few.notes
    np.testing.assert_allclose(few.probability[:, [1, 4, 6]].sum(1), 1.0)
    same = features(label=np.array([0, 1, 1, 2] * 5))
    same.embedding[:] = 0.25
    np.testing.assert_allclose(linear(same, same, TASK).probability, np.tile([0.25, 0.5, 0.25], (20, 1)), atol=1e-8)


def test_a_gpu_without_memory_gets_smaller_chunks_and_then_the_cpu_computes(monkeypatch):
    train, test = features(seed=1), features(seed=2)
    expected = linear(train, test, TASK)
    asked = []

    def short(x, link, c, share):
        asked.append(share)
        if len(asked) < 4:
            raise torch.OutOfMemoryError
        return logistic.fit(x, link, c, share)

    standardise = module._standardise
    monkeypatch.setattr(module, "_standardise", lambda train, others, device: standardise(train, others, None))
    monkeypatch.setattr(module, "fit", short)
    with pytest.warns(ClocsWarning, match="memory of cuda does not suffice"):
        found = linear(train, test, TASK, torch.device("cuda"))
    assert asked == [1.0, 1 / 8, 1 / 64, 1.0]
    np.testing.assert_array_equal(found.probability, expected.probability)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_probabilities_are_those_of_scikit_learn_on_standardised_embeddings(classes):
    train, test = features(90, classes=classes, seed=5), features(seed=6, classes=classes)
    mean, sd = train.embedding.mean(0, dtype=float), train.embedding.std(0, dtype=float)
    model = LogisticRegression(tol=1e-10, max_iter=5000).fit((train.embedding - mean) / sd, train.label)
    found = linear(train, test, TASK)
    expected = model.predict_proba((test.embedding - mean) / sd)
    np.testing.assert_allclose(found.probability[:, :classes], expected, atol=1e-5)


def test_the_prior_is_the_share_of_each_class_in_training():
    train = features(label=np.array([0, 0, 0, 1]))
    assert prior(train, features(8), TASK).probability[5].tolist() == [0.75, 0.25, 0.0]


def test_a_recording_has_the_mean_probability_of_its_rows():
    rows = linear(features(seed=1), features(seed=2), TASK)
    records = by_record(rows)
    for number, record in enumerate(records.record):
        mine = [row for row in range(len(rows.record)) if rows.record[row] == record]
        expected = sum(rows.probability[row] for row in mine) / len(mine)
        np.testing.assert_allclose(records.probability[number], expected)
        assert records.label[number] == rows.label[mine[0]]
        assert records.patient[number] == rows.patient[mine[0]]


def test_a_recording_keeps_its_own_label_and_patient_in_whatever_order_the_rows_come():
    """Rows are sorted by part and recording, and the numbers of recordings need not rise with them."""
    probability = np.array([[0.2, 0.8], [0.4, 0.6], [1.0, 0.0]])
    found = by_record(Predictions(probability, np.array([1, 1, 0]), np.array([5, 5, 4]), np.array([9, 9, 3])))
    assert (found.record.tolist(), found.label.tolist(), found.patient.tolist()) == ([3, 9], [0, 1], [4, 5])
    np.testing.assert_allclose(found.probability, [[1.0, 0.0], [0.3, 0.7]])


def test_what_is_predicted_of_a_row_does_not_depend_on_the_other_test_rows():
    """Standardised by the test rows, a classifier would know something of all of them."""
    train, test = features(seed=1), features(seed=2)
    alone = linear(train, test.take(np.array([7])), TASK)
    np.testing.assert_allclose(linear(train, test, TASK).probability[7:8], alone.probability, rtol=1e-9)


def test_recordings_of_which_the_same_is_said_are_tied_however_many_rows_they_have():
    """The class prior must rank nobody: a mean that is off by its last bit would, and would not score one half."""
    record = np.repeat(np.arange(40), np.arange(1, 41))
    said = np.tile([0.1, 0.3, 0.6], (len(record), 1))
    found = by_record(Predictions(said, np.zeros(len(record), dtype=np.int64), record, record))
    assert np.array_equal(found.probability, np.tile([0.1, 0.3, 0.6], (40, 1)))
