"""Hold the distances of representations within and between patients, in bins.

Processes that draw import this module: no torch here.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray


@attrs.frozen(eq=False)
class PatientDistances:
    """Histograms of distances between rows of the same patient and between rows of different patients.

    separation: the probability that two rows of one patient are nearer to each other than two rows of different
    patients: 0.5 is chance, 1 a perfect separation. It does not depend on the scale of the embeddings.
    """

    edges: NDArray[np.float64]  # (bin + 1,)
    intra: NDArray[np.int64]  # (bin,) distances of pairs of rows of one patient
    inter: NDArray[np.int64]  # (bin,) distances of pairs of rows of different patients
    intra_mean: float
    inter_mean: float
    separation: float


def coarsen(found: PatientDistances, most: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return edges (bin + 1,), intra (bin,) and inter (bin,) in at most `most` bins of equal width, starting at 0.

    Neighbouring bins are merged, so every distance is counted once.
    """
    used = int(np.flatnonzero(found.intra + found.inter)[-1]) + 1
    width = -(-used // most)
    bins = -(-used // width)
    padded = np.zeros((2, bins * width), dtype=np.int64)
    padded[:, :used] = found.intra[:used], found.inter[:used]
    intra, inter = padded.reshape(2, bins, width).sum(axis=2)
    return found.edges[1] * width * np.arange(bins + 1), intra, inter  # equal widths, and the first edge is 0
