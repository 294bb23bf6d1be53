"""Linear evaluation of a number: ridge regression on frozen representations.

Embeddings are standardised by the mean and standard deviation of the training rows, and the intercept is not
penalised. C is the inverse strength of the penalty, as in the logistic regression for classes.
"""

from __future__ import annotations

import numpy as np
import torch

from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.records import Task
from clocs_core.evaluation.bootstrap import ScoreFunction
from clocs_core.evaluation.features import Features
from clocs_core.evaluation.linear import GRID, choose_c, refuse_non_finite


def ridge(
    train: Features, test: Features, task: Task, device: torch.device | None = None, c: float = 1.0
) -> Predictions:
    """Fit the weights w that minimise |y - Xw|^2 + |w|^2 / c on the training rows, in closed form; predict the others.

    Computed in float64 on the CPU: the fit is one small system. Raise DataError for embeddings that are not finite.
    """
    refuse_non_finite(train, test)
    mean, sd = train.embedding.mean(0, dtype=np.float64), train.embedding.std(0, dtype=np.float64)
    sd[sd == 0] = 1.0  # a dimension that is constant over all rows
    x, x_test = ((rows.embedding - mean) / sd for rows in (train, test))  # (n, dim)
    y = train.label.astype(np.float64)
    middle = y.mean()
    weights = np.linalg.solve(x.T @ x + np.eye(x.shape[1]) / c, x.T @ (y - middle))  # (dim,)
    predicted = (middle + x_test @ weights)[:, None]  # (n, 1)
    return Predictions(predicted, test.label, test.patient, test.record)


def ridge_with_best_c(
    train: Features,
    validation: Features,
    test: Features,
    task: Task,
    score: ScoreFunction,
    device: torch.device | None = None,
) -> tuple[Predictions, float, float]:
    """Fit with every C of `GRID`; predict the test rows with the one that scores best on the validation rows.

    Return the predictions, C (the smallest of equally good ones) and its score; C is 1 where there is no score.
    """
    tried = (ridge(train, validation, task, device, c).probability for c in GRID)
    best, value = choose_c(tried, validation, score)
    return ridge(train, test, task, device, GRID[best]), GRID[best], value
