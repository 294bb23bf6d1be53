"""Choose a fraction F of the labelled rows for a classifier: of frames, as in the authors' code, or of patients."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

FractionOf: TypeAlias = Literal["frames", "patients"]


def choose_rows(patient: NDArray[np.int64], fraction: float, seed: int, of: FractionOf = "frames") -> NDArray[np.int64]:
    """Draw a fraction of the rows; return their sorted numbers. patient: the patient of each row (n,).

    of: `frames` draws int(F n) rows of any patient; `patients` draws all rows of int(F p) patients; at least one each.
    Draws of one seed are nested: the 25 % lie within the 50 %.
    """
    rng = np.random.default_rng(seed)
    if of == "frames":
        return np.sort(_share(rng.permutation(len(patient)), fraction))
    return np.flatnonzero(np.isin(patient, _share(rng.permutation(np.unique(patient)), fraction)))


def _share(order: NDArray[np.int64], fraction: float) -> NDArray[np.int64]:
    return order[: max(1, int(fraction * len(order)))]
