"""Which labelled rows a classifier may use: a share F of them, by frame as the authors' code has it, or by patient."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

FractionOf: TypeAlias = Literal["frames", "patients"]


def choose_rows(patient: NDArray[np.int64], fraction: float, seed: int, of: FractionOf = "frames") -> NDArray[np.int64]:
    """A random share of rows that belong to patients (n,): their numbers, in order.

    Of `frames`, int(F n) rows, whoever they are of; of `patients`, all rows of int(F p) patients; at least one each.
    Nested for one seed: the 25 % lie within the 50 %.
    """
    rng = np.random.default_rng(seed)
    if of == "frames":
        return np.sort(_share(rng.permutation(len(patient)), fraction))
    return np.flatnonzero(np.isin(patient, _share(rng.permutation(np.unique(patient)), fraction)))


def _share(order: NDArray[np.int64], fraction: float) -> NDArray[np.int64]:
    return order[: max(1, int(fraction * len(order)))]
