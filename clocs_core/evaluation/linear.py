"""Linear evaluation: a logistic regression on frozen representations, and the class prior as its baseline.

"the pre-trained parameters are frozen and multinomial logistic regression is performed" (section 5.3). One-of tasks
get one multinomial model, any-of tasks one binary model per class. Embeddings are standardised by the mean and
standard deviation of the training rows; the L2 penalty is scikit-learn's default (C = 1).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.kinds import kind_of
from clocs_core.contracts.records import Task
from clocs_core.errors import DataError
from clocs_core.evaluation.features import Features

_ITERATIONS = 1000


def linear(train: Features, test: Features, task: Task) -> Predictions:
    """Fit on the training rows, predict the test rows. Raise DataError if the training rows have only one class."""
    mean, sd = train.embedding.mean(0, dtype=np.float64), train.embedding.std(0, dtype=np.float64)
    sd[sd == 0] = 1.0  # a dimension that is constant over all rows
    x_train, x_test = (train.embedding - mean) / sd, (test.embedding - mean) / sd
    if task.kind == "one_of":
        probability, notes = _one_of(x_train, train.label, x_test, task)
    else:
        probability, notes = _any_of(x_train, train.label, x_test)
    return Predictions(probability, test.label, test.patient, test.record, notes)


def refuse_one_class(label: NDArray[np.int64], task: Task) -> None:
    """Raise DataError if all labels of a task have one class, or one value: there is nothing to tell apart."""
    kind = kind_of(task)
    if only := kind.nothing_to_tell(np.unique(label).tolist(), task):
        raise DataError(f"The labelled training frames all have one {kind.noun} ({only}); a classifier needs two.")


def prior(train: Features, test: Features, task: Task) -> Predictions:
    """Predict every row by the class frequencies, or the mean, of the training labels: the baseline without signal."""
    guess = kind_of(task).guess(train.label, task)
    return Predictions(np.tile(guess, (len(test), 1)), test.label, test.patient, test.record)


def by_record(rows: Predictions) -> Predictions:
    """Average the probabilities of each recording's frames and leads. For tasks with a label per record."""
    records, first, number = np.unique(rows.record, return_index=True, return_inverse=True)
    base = rows.probability[first]  # (record, class): subtracted, so that the mean of equal rows is exact
    total = np.zeros(base.shape)
    np.add.at(total, number, rows.probability - base[number])
    mean = base + total / np.bincount(number)[:, None]
    return Predictions(mean, rows.label[first], rows.patient[first], records, rows.notes)


def _one_of(
    x: NDArray[np.float64], label: NDArray[np.int64], x_test: NDArray[np.float64], task: Task
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    refuse_one_class(label, task)
    present = np.unique(label)
    model, notes = _fit(x, label)
    probability = np.zeros((len(x_test), len(task.classes)))
    probability[:, present] = model.predict_proba(x_test)  # classes absent from training keep probability 0
    return probability, notes


def _any_of(
    x: NDArray[np.float64], label: NDArray[np.int64], x_test: NDArray[np.float64]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    probability = np.zeros((len(x_test), label.shape[1]))
    notes: tuple[str, ...] = ()
    for column in range(label.shape[1]):
        y = label[:, column]
        if y.min() == y.max():
            probability[:, column] = y[0]  # nothing to learn: the class is always or never present
            continue
        model, more = _fit(x, y)
        notes += more
        probability[:, column] = model.predict_proba(x_test)[:, 1]
    return probability, tuple(dict.fromkeys(notes))


def _fit(x: NDArray[np.float64], y: NDArray[np.int64]) -> tuple[Any, tuple[str, ...]]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=_ITERATIONS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(x, y)
    slow = any(issubclass(one.category, ConvergenceWarning) for one in caught)
    return model, (f"The logistic regression had not converged after {_ITERATIONS} iterations.",) if slow else ()
