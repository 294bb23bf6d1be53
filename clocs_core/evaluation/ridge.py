"""Linear evaluation of a number: ridge regression on frozen representations.

Embeddings are standardised by the mean and standard deviation of the training rows, and the intercept is not
penalised. The penalty is 1, as that of the logistic regression for classes.
"""

from __future__ import annotations

import numpy as np

from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.records import Task
from clocs_core.errors import DataError
from clocs_core.evaluation.features import Features

_PENALTY = 1.0


def ridge(train: Features, test: Features, task: Task) -> Predictions:
    """Fit the weights w that minimise |y - Xw|^2 + |w|^2 on the training rows, in closed form; predict the test rows.

    Computed in float64. Raise DataError for embeddings that are not finite.
    """
    if not np.isfinite(train.embedding).all():
        raise DataError(
            "The encoder's embeddings of the training frames are not all finite, so nothing can be fitted to them. "
            "Look at the losses of its training; a smaller `learning_rate` may help."
        )
    mean, sd = train.embedding.mean(0, dtype=np.float64), train.embedding.std(0, dtype=np.float64)
    sd[sd == 0] = 1.0  # a dimension that is constant over all rows
    x, x_test = ((rows.embedding - mean) / sd for rows in (train, test))  # (n, dim)
    y = train.label.astype(np.float64)
    middle = y.mean()
    weights = np.linalg.solve(x.T @ x + _PENALTY * np.eye(x.shape[1]), x.T @ (y - middle))  # (dim,)
    predicted = (middle + x_test @ weights)[:, None]  # (n, 1)
    return Predictions(predicted, test.label, test.patient, test.record)
