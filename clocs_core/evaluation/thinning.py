"""Choose some of very many rows for work that grows with their square, without losing the pairs of a patient."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray


def thin(patient: NDArray[np.int64], most: int, fewest: int) -> NDArray[np.int64]:
    """Choose about `most` of the rows of patients (n,), in order; all where they are no more than that.

    All rows of every s-th patient are chosen. Rows at even distances would be of one lead alone, since the rows of a
    recording lie lead by lead. Where fewer than `fewest` patients would be left, rows are drawn, by a fixed seed. Where
    some patients have very many rows, rows of these are drawn, so that there are at most twice as many as asked for.
    """
    every = -(-len(patient) // most)
    if every <= 1:
        return np.arange(len(patient))
    names, number = np.unique(patient, return_inverse=True)
    if len(names) < fewest * every:
        return np.sort(np.random.default_rng(0).choice(len(patient), most, replace=False))
    chosen = np.flatnonzero(number % every == 0)
    return chosen if len(chosen) <= 2 * most else _levelled(chosen, number, most)


def _levelled(rows: NDArray[np.int64], patient: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Choose at most `most` of the rows, as many of each patient as there are, up to one number for all."""
    drawn = np.random.default_rng(0).permutation(rows)
    drawn = drawn[np.argsort(patient[drawn], kind="stable")]  # by patient, and at random within one
    _, first, counts = np.unique(patient[drawn], return_index=True, return_counts=True)
    limit = bisect_right(range(1, most + 1), most, key=lambda one: int(np.minimum(counts, one).sum()))
    rank = np.arange(len(drawn)) - np.repeat(first, counts)
    return np.sort(drawn[rank < max(1, limit)])
