"""Linear evaluation: a logistic regression on frozen representations, and the class prior as its baseline.

"the pre-trained parameters are frozen and multinomial logistic regression is performed" (section 5.3). One-of tasks
get one multinomial model, any-of tasks one binary model per class. Embeddings are standardised by the mean and
standard deviation of the training rows; the L2 penalty is scikit-learn's (C = 1 by default), and so is the optimum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.kinds import kind_of
from clocs_core.contracts.records import Task
from clocs_core.data.memory import within_memory
from clocs_core.errors import DataError
from clocs_core.evaluation.bootstrap import Floats, ScoreFunction
from clocs_core.evaluation.features import Features, add_rows
from clocs_core.evaluation.logistic import AnyOf, Fitted, OneOf, fit

GRID = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
"""The C among which one is chosen on validation patients."""


def linear(
    train: Features,
    test: Features,
    task: Task,
    device: torch.device | None = None,
    c: float = 1.0,
    validation: Features | None = None,
) -> Predictions:
    """Fit on the training rows, predict the test rows, and the validation rows where they are given.

    device: where to compute; default: the CPU. c: inverse strength of the L2 penalty. Raise DataError if the training
    rows have only one class, or if an embedding of a training or a test row is not finite.
    """
    beside = () if validation is None or not np.isfinite(validation.embedding).all() else (validation,)
    probabilities, notes = _predict(train, (test, *beside), task, (c,), device)
    found = [_as_predictions(one[0], of) for one, of in zip(probabilities, (test, *beside), strict=True)]
    return attrs.evolve(found[0], notes=notes, validation=found[1] if beside else None)


def linear_with_best_c(
    train: Features,
    validation: Features,
    test: Features,
    task: Task,
    score: ScoreFunction,
    device: torch.device | None = None,
) -> tuple[Predictions, float, float]:
    """Fit with every C of `GRID`, predict the test rows with the one that scores best on the validation rows.

    Return the predictions, C (the smallest of equally good ones) and its score. Where the validation rows have no
    score, for instance because all have one class, C is 1 and the score is NaN. Raise DataError as `linear` does.
    """
    (tried, probability), notes = _predict(train, (validation, test), task, GRID, device)
    best, value = choose_c(tried, validation, score)
    found = attrs.evolve(_as_predictions(probability[best], test), notes=notes)
    return attrs.evolve(found, validation=_as_predictions(tried[best], validation)), GRID[best], value


def _as_predictions(probability: Floats, rows: Features) -> Predictions:
    return Predictions(probability, rows.label, rows.patient, rows.record)


def choose_c(tried: Iterable[Floats], validation: Features, score: ScoreFunction) -> tuple[int, float]:
    """Return the place in `GRID` of the C whose predictions score best, and the score.

    It is the smallest of equally good ones; without any score it is 1, and the score is NaN.
    """
    once = np.ones(len(validation))
    scores = np.array([score(one, validation.label, once) for one in tried])
    best = GRID.index(1.0) if np.isnan(scores).all() else int(np.nanargmax(scores))
    return best, float(scores[best])


def _predict(
    train: Features, others: Sequence[Features], task: Task, grid: Sequence[float], device: torch.device | None
) -> tuple[list[Floats], tuple[str, ...]]:
    """Fit with each C of the grid; return the probabilities of each of `others`, `(C, row, class)`, and notes."""
    refuse_non_finite(train, *others)
    refuse_one_class(train.label, task)
    predict = _one_of if task.kind == "one_of" else _any_of

    def compute(where: torch.device, share: float) -> tuple[list[Floats], tuple[str, ...]]:
        x, *x_others = _standardise(train, others, where)
        return predict(x, x_others, train.label, task, grid, share)

    return within_memory(compute, device or torch.device("cpu"))


def refuse_non_finite(*parts: Features) -> None:
    """Raise DataError if an embedding is not finite."""
    for rows in parts:
        bad = ~np.isfinite(rows.embedding).all(axis=1)
        if bad.any():
            raise DataError(
                f"The encoder's embeddings of {bad.sum():,} of {len(rows):,} frames are not finite, so no classifier "
                "can be trained or scored on them. Look at the losses of its training; a smaller `learning_rate` may "
                "help."
            )


def _standardise(train: Features, others: Sequence[Features], device: torch.device) -> list[Tensor]:
    """Scale all by the mean and standard deviation of the training rows, in float64."""
    parts = [torch.from_numpy(one.embedding).to(device, torch.float64) for one in (train, *others)]
    sd, mean = torch.std_mean(parts[0], dim=0, correction=0)
    sd = torch.where(sd == 0, 1.0, sd)  # a dimension that is constant over all rows
    return [(part - mean) / sd for part in parts]


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
    total = add_rows(rows.probability - base[number], number, len(records))
    mean = base + total / np.bincount(number)[:, None]
    return Predictions(mean, rows.label[first], rows.patient[first], records, rows.notes)


def _one_of(
    x: Tensor, others: Sequence[Tensor], label: NDArray[np.int64], task: Task, grid: Sequence[float], share: float
) -> tuple[list[Floats], tuple[str, ...]]:
    present, number = np.unique(label, return_inverse=True)
    one_hot = torch.nn.functional.one_hot(torch.from_numpy(number).to(x.device), len(present)).to(x.dtype)
    two = len(present) == 2  # one logit, as in scikit-learn: two would share the penalty and be shrunk less
    link = AnyOf(one_hot[:, 1:].expand(-1, len(grid))) if two else OneOf(one_hot.unsqueeze(1))
    fitted = fit(x, link, x.new_tensor(grid), share)
    probabilities = []
    for rows in others:
        at = fitted.logits(rows).transpose(0, 1)  # (C, row, logit)
        found = torch.cat([torch.sigmoid(-at), torch.sigmoid(at)], dim=-1) if two else torch.softmax(at, dim=-1)
        probability = np.zeros((len(grid), len(rows), len(task.classes)))
        probability[..., present] = found.cpu().numpy()  # classes absent from training keep probability 0
        probabilities.append(probability)
    return probabilities, _notes(fitted)


def _any_of(
    x: Tensor, others: Sequence[Tensor], label: NDArray[np.int64], task: Task, grid: Sequence[float], share: float
) -> tuple[list[Floats], tuple[str, ...]]:
    varies = label.min(axis=0) != label.max(axis=0)
    always = label[0].astype(np.float64)  # classes that are always or never there: nothing to learn
    probabilities = [np.tile(always, (len(grid), len(rows), 1)) for rows in others]
    if not varies.any():
        return probabilities, ()
    y = torch.from_numpy(label[:, varies]).to(x.device, x.dtype)  # (row, class)
    fitted = fit(x, AnyOf(y.repeat(1, len(grid))), x.new_tensor(grid).repeat_interleave(y.shape[1]), share)
    for rows, probability in zip(others, probabilities, strict=True):
        at = fitted.logits(rows).view(len(rows), len(grid), -1).transpose(0, 1)  # (C, row, class)
        probability[..., varies] = torch.sigmoid(at).cpu().numpy()
    return probabilities, _notes(fitted)


def _notes(fitted: Fitted) -> tuple[str, ...]:
    if bool(fitted.converged.all()):
        return ()
    return (f"The logistic regression had not converged after {fitted.steps} steps.",)
