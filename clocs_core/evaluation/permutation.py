"""Test a difference between two classifiers by swapping their predictions, patient by patient.

If it does not matter which of the two made a prediction, the difference is as likely after a swap as before it. All
rows of a patient are swapped together: frames of one patient are not independent, so swapping frames would find far too
many differences.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.result_offers import Metric
from clocs_core.evaluation.bootstrap import score_groups

_ROUNDING = 1e-12  # of a score: two permutations that swap equal predictions differ by this much at most


def permutation_p(a: Predictions, b: Predictions, metric: Metric, permutations: int, seed: int) -> float | None:
    """Return the share of permutations with a difference at least as large as that of a and b, in either direction.

    For each permutation, a fair coin decides for each patient whether a and b swap their rows. The permutation without
    a swap counts as one, so that p is never 0. None: no permutation is asked for, or the difference is not defined.
    a, b: predictions of the same patients under the same numbers.
    """
    return permutation_all(a, b, (metric,), permutations, seed)[0]


def permutation_all(
    a: Predictions,
    b: Predictions,
    metrics: Sequence[Metric],
    permutations: int,
    seed: int,
    device: torch.device | None = None,
) -> list[float | None]:
    """Return p of each metric, by the same coins. Arguments as in `permutation_p` and `bootstrap`."""
    if not permutations:
        return [None] * len(metrics)
    patients, number = np.unique(np.concatenate([a.patient, b.patient]), return_inverse=True)
    number[len(a.patient) :] += len(patients)  # the rows of b are groups of their own
    drawn = _swap(len(patients), permutations, seed)
    return [_share(scores) for scores in score_groups(_join(a, b), metrics, np.concatenate(drawn), number, device)]


def _share(scores: NDArray[np.float64]) -> float | None:
    """Return p, from the scores of the first side in every permutation, and of the second; the first has no swap."""
    mine, other = scores.reshape(2, -1)
    size = np.abs(mine - other)  # (1 + permutation,)
    if not np.isfinite(size[0]):
        return None
    smaller = size < size[0] - _ROUNDING * max(abs(mine[0]), abs(other[0]))  # an undefined difference is not smaller
    return float((~smaller).mean())


def _swap(patients: int, permutations: int, seed: int) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """Return which rows each side has, those of a's patients, then b's: (1 + permutation, 2 patients) of 0 and 1."""
    coins = np.random.default_rng(seed).integers(0, 2, (1 + permutations, patients), dtype=np.uint16)
    coins[0] = 0
    return np.hstack([1 - coins, coins]), np.hstack([coins, 1 - coins])


def _join(a: Predictions, b: Predictions) -> Predictions:
    return Predictions(
        np.concatenate([a.probability, b.probability]),
        np.concatenate([a.label, b.label]),
        np.concatenate([a.patient, b.patient]),
        np.concatenate([a.record, b.record]),
    )
