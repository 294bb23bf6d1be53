"""Are representations of one patient nearer to each other than to those of other patients? Section 6.6 of the paper.

All pairwise Euclidean distances, in tiles: n rows cost n²/2 distances, of which a histogram is kept.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

BINS = 2048  # fine enough for the separation: a tie of two distances in one bin counts one half
MOST = 8000  # rows looked at, evenly spaced: 32 million distances, about a second
_TILE = 1024


@attrs.frozen(eq=False)
class PatientDistances:
    """Distances between rows of the same patient and between rows of different ones.

    separation: the probability that two rows of one patient are nearer to each other than two rows of different
    patients: 0.5 says nothing, 1 is a perfect separation. It does not depend on the scale of the embeddings.
    """

    edges: NDArray[np.float64]  # (bin + 1,)
    intra: NDArray[np.int64]  # (bin,) distances of pairs of rows of one patient
    inter: NDArray[np.int64]  # (bin,) distances of pairs of rows of different patients
    intra_mean: float
    inter_mean: float
    separation: float


def coarsen(found: PatientDistances, most: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Edges (bin + 1,), intra (bin,) and inter (bin,) in at most so many bins of equal width, from 0 to the furthest.

    Neighbouring bins are put together, so that no distance is counted twice or lost.
    """
    used = int(np.flatnonzero(found.intra + found.inter)[-1]) + 1
    width = -(-used // most)
    bins = -(-used // width)
    padded = np.zeros((2, bins * width), dtype=np.int64)
    padded[:, :used] = found.intra[:used], found.inter[:used]
    intra, inter = padded.reshape(2, bins, width).sum(axis=2)
    return found.edges[1] * width * np.arange(bins + 1), intra, inter  # equal widths, and the first edge is 0


def patient_distances(embedding: NDArray[np.float32], patient: NDArray[np.int64]) -> PatientDistances | None:
    """The distances of rows (n, dim) of patients (n,); None where there is no pair of one of the two kinds."""
    finite = np.flatnonzero(np.isfinite(embedding).all(axis=1))
    kept = finite[np.unique(np.linspace(0, len(finite) - 1, min(len(finite), MOST)).astype(np.intp))]
    rows, ids = embedding[kept].astype(np.float64), patient[kept]
    rows = rows - rows.mean(axis=0) if len(rows) else rows  # near the origin less is lost to rounding
    furthest = 2 * float(np.sqrt((rows**2).sum(axis=1).max())) if len(rows) else 0.0
    edges = np.linspace(0, furthest or 1.0, BINS + 1)
    counts, sums = np.zeros((2, BINS), dtype=np.int64), np.zeros(2)
    for first in range(0, len(rows), _TILE):
        for other in range(first, len(rows), _TILE):
            distance, same = _tile(rows, ids, first, other)
            for kind, chosen in enumerate((distance[same], distance[~same])):
                counts[kind] += np.histogram(chosen, edges)[0]
                sums[kind] += chosen.sum()
    pairs = counts.sum(axis=1)
    if not pairs.all():
        return None
    within, between = sums / pairs
    separation = _separation(counts / pairs[:, None])
    return PatientDistances(edges, counts[0], counts[1], float(within), float(between), separation)


def _tile(
    rows: NDArray[np.float64], ids: NDArray[np.int64], first: int, other: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The distances (pair,) between two blocks of rows, each pair once, and whether it is of one patient."""
    a, b = rows[first : first + _TILE], rows[other : other + _TILE]
    square = (a**2).sum(1)[:, None] + (b**2).sum(1)[None, :] - 2 * a @ b.T
    once = np.triu(np.ones(square.shape, dtype=bool), k=1) if first == other else np.ones(square.shape, dtype=bool)
    same = ids[first : first + _TILE, None] == ids[None, other : other + _TILE]
    return np.sqrt(square[once].clip(min=0)), same[once]


def _separation(share: NDArray[np.float64]) -> float:
    """P(intra < inter) + P(equal)/2 of two distributions over the same bins."""
    intra, inter = share
    beyond = inter[::-1].cumsum()[::-1] - inter  # (bin,) P(inter lies in a later bin)
    return float((intra * (beyond + inter / 2)).sum())
