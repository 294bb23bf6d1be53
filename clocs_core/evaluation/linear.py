"""Linear evaluation: a logistic regression on frozen representations, and the class prior as its baseline.

"the pre-trained parameters are frozen and multinomial logistic regression is performed" (section 5.3). One-of tasks
get one multinomial model, any-of tasks one binary model per class. Embeddings are standardised by the mean and
standard deviation of the training rows; the L2 penalty is scikit-learn's default (C = 1), and so is the optimum.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.records import Task
from clocs_core.errors import DataError
from clocs_core.evaluation.features import Features
from clocs_core.evaluation.logistic import AnyOf, Fitted, OneOf, fit
from clocs_core.evaluation.memory import within_memory

_C = 1.0  # inverse strength of the L2 penalty


def linear(train: Features, test: Features, task: Task, device: torch.device | None = None) -> Predictions:
    """Fit on the training rows, predict the test rows.

    device: where to compute; default: the CPU. Raise DataError if the training rows have only one class, or if an
    embedding is not finite.
    """
    _refuse_non_finite(train, test)
    if task.kind == "one_of":
        refuse_one_class(train.label, task)
    predict = _one_of if task.kind == "one_of" else _any_of

    def compute(where: torch.device, share: float) -> tuple[NDArray[np.float64], tuple[str, ...]]:
        return predict(*_standardise(train, test, where), train.label, task, share)

    probability, notes = within_memory(compute, device or torch.device("cpu"))
    return Predictions(probability, test.label, test.patient, test.record, notes)


def _refuse_non_finite(train: Features, test: Features) -> None:
    for frames, rows in (("training", train), ("scored", test)):
        bad = ~np.isfinite(rows.embedding).all(axis=1)
        if bad.any():
            raise DataError(
                f"The encoder's embeddings of {bad.sum():,} of {len(rows):,} {frames} frames are not finite, so no "
                "classifier can be trained or scored on them. Look at the losses of its training; a smaller "
                "`learning_rate` may help."
            )


def _standardise(train: Features, test: Features, device: torch.device) -> tuple[Tensor, Tensor]:
    """Scale both by the mean and standard deviation of the training rows, in float64."""
    x_train, x_test = (torch.from_numpy(one.embedding).to(device, torch.float64) for one in (train, test))
    sd, mean = torch.std_mean(x_train, dim=0, correction=0)
    sd = torch.where(sd == 0, 1.0, sd)  # a dimension that is constant over all rows
    return (x_train - mean) / sd, (x_test - mean) / sd


def refuse_one_class(label: NDArray[np.int64], task: Task) -> None:
    """Raise DataError if all labels of a one-of task have one class."""
    present = np.unique(label)
    if task.kind == "one_of" and len(present) < 2:
        only = ", ".join(task.classes[i] for i in present)
        raise DataError(f"The labelled training frames all have one class ({only}); a classifier needs two.")


def prior(train: Features, test: Features, task: Task) -> Predictions:
    """Predict every row by the class frequencies of the training rows: the baseline without any signal."""
    if task.kind == "one_of":
        share = np.bincount(train.label, minlength=len(task.classes)) / len(train)
    else:
        share = train.label.mean(axis=0)
    return Predictions(np.tile(share, (len(test), 1)), test.label, test.patient, test.record)


def by_record(rows: Predictions) -> Predictions:
    """Average the probabilities of each recording's frames and leads. For tasks with a label per record."""
    records, first, number = np.unique(rows.record, return_index=True, return_inverse=True)
    base = rows.probability[first]  # (record, class): subtracted, so that the mean of equal rows is exact
    total = np.zeros(base.shape)
    np.add.at(total, number, rows.probability - base[number])
    mean = base + total / np.bincount(number)[:, None]
    return Predictions(mean, rows.label[first], rows.patient[first], records, rows.notes)


def _one_of(
    x: Tensor, x_test: Tensor, label: NDArray[np.int64], task: Task, share: float
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    present, number = np.unique(label, return_inverse=True)
    y = torch.from_numpy(number).to(x.device)
    one_hot = torch.nn.functional.one_hot(y, len(present)).to(x.dtype).unsqueeze(1)  # (row, 1, class)
    two = len(present) == 2  # one logit, as in scikit-learn: two would share the penalty and be shrunk less
    fitted = fit(x, AnyOf(one_hot[..., 1]) if two else OneOf(one_hot), x.new_full((1,), _C), share)
    at = fitted.logits(x_test)[:, 0]  # (row, logit)
    found = torch.cat([torch.sigmoid(-at), torch.sigmoid(at)], dim=1) if two else torch.softmax(at, dim=1)
    probability = np.zeros((len(x_test), len(task.classes)))
    probability[:, present] = found.cpu().numpy()  # classes absent from training keep probability 0
    return probability, _notes(fitted)


def _any_of(
    x: Tensor, x_test: Tensor, label: NDArray[np.int64], task: Task, share: float
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    varies = label.min(axis=0) != label.max(axis=0)
    probability = np.tile(label[0].astype(np.float64), (len(x_test), 1))  # always or never there: nothing to learn
    if not varies.any():
        return probability, ()
    y = torch.from_numpy(label[:, varies]).to(x.device, x.dtype)  # (row, class)
    fitted = fit(x, AnyOf(y), x.new_full((y.shape[1],), _C), share)
    probability[:, varies] = torch.sigmoid(fitted.logits(x_test)[..., 0]).cpu().numpy()
    return probability, _notes(fitted)


def _notes(fitted: Fitted) -> tuple[str, ...]:
    if bool(fitted.converged.all()):
        return ()
    return (f"The logistic regression had not converged after {fitted.steps} steps.",)
