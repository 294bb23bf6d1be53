"""Compare distances between representations within and between patients. Section 6.6 of the paper.

All pairwise Euclidean distances are computed in tiles and counted in a histogram; n rows cost n²/2 distances.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from clocs_core.data.memory import within_memory
from clocs_core.evaluation.distance_bins import PatientDistances
from clocs_core.evaluation.thinning import thin

BINS = 2048  # fine enough for the separation; two distances in one bin count as a tie, one half
MOST = 8000  # rows compared, of whole patients: 32 million distances, about a second
PATIENTS = 50  # fewest that are left when rows are too many: with fewer, the choice of patients would decide
_TILE = 1024


def patient_distances(
    embedding: NDArray[np.float32], patient: NDArray[np.int64], device: torch.device | None = None
) -> PatientDistances | None:
    """Compute the distances of rows (n, dim) of patients (n,); None if one of the two kinds has no pair.

    device: where to compute, in float64; default: the CPU. Devices round differently: a distance on the edge of two
    bins may be counted in the other one, and means differ by some 1e-12, or by 1e-10 where many rows are equal.
    """
    finite = np.flatnonzero(np.isfinite(embedding).all(axis=1))
    kept = finite[thin(patient[finite], MOST, PATIENTS)]
    rows, ids = embedding[kept].astype(np.float64), patient[kept]
    rows = rows - rows.mean(axis=0) if len(rows) else rows  # centred rows lose less to rounding
    furthest = 2 * float(np.sqrt((rows**2).sum(axis=1).max())) if len(rows) else 0.0
    edges = np.linspace(0, furthest or 1.0, BINS + 1)

    def count(where: torch.device, share: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        if where.type == "cpu":
            return _count(rows, ids, edges)
        return count_on(where, rows, ids, edges, max(1, int(_TILE * share)))

    counts, sums = within_memory(count, device or torch.device("cpu"))
    pairs = counts.sum(axis=1)
    if not pairs.all():
        return None
    within, between = sums / pairs
    separation = _separation(counts / pairs[:, None])
    return PatientDistances(edges, counts[0], counts[1], float(within), float(between), separation)


def _count(
    rows: NDArray[np.float64], ids: NDArray[np.int64], edges: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Count distances in bins, (kind, bin), and add them up, (kind,), with each pair once.

    Kinds: pairs of one patient, pairs of different ones.
    """
    counts, sums = np.zeros((2, BINS), dtype=np.int64), np.zeros(2)
    for first in range(0, len(rows), _TILE):
        for other in range(first, len(rows), _TILE):
            distance, same = _tile(rows, ids, first, other)
            for kind, chosen in enumerate((distance[same], distance[~same])):
                counts[kind] += np.histogram(chosen, edges)[0]
                sums[kind] += chosen.sum()
    return counts, sums


def _tile(
    rows: NDArray[np.float64], ids: NDArray[np.int64], first: int, other: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the distances (pair,) between two blocks of rows, each pair once, and whether it is of one patient."""
    a, b = rows[first : first + _TILE], rows[other : other + _TILE]
    square = (a**2).sum(1)[:, None] + (b**2).sum(1)[None, :] - 2 * a @ b.T
    once = np.triu(np.ones(square.shape, dtype=bool), k=1) if first == other else np.ones(square.shape, dtype=bool)
    same = ids[first : first + _TILE, None] == ids[None, other : other + _TILE]
    return np.sqrt(square[once].clip(min=0)), same[once]


def count_on(
    device: torch.device, rows: NDArray[np.float64], ids: NDArray[np.int64], edges: NDArray[np.float64], tile: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Count as `_count` does, on a GPU: without a sort, which a CPU does sooner than look-ups. One host sync."""
    x, who, bounds = (torch.from_numpy(one).to(device) for one in (rows, ids, edges))
    square = (x**2).sum(1)
    counts = torch.zeros(2 * BINS, dtype=torch.int64, device=device)
    sums = torch.zeros(2, dtype=torch.float64, device=device)
    for first in range(0, len(x), tile):
        mine = slice(first, first + tile)
        for other in range(first, len(x), tile):
            theirs = slice(other, other + tile)
            near = (square[mine, None] + square[None, theirs] - 2 * x[mine] @ x[theirs].T).clamp_(min=0).sqrt_()
            once = torch.ones_like(near, dtype=torch.bool)
            once = once.triu_(1) if first == other else once
            same = who[mine, None] == who[None, theirs]
            place = (torch.bucketize(near, bounds, right=True) - 1).clamp_(max=BINS - 1)  # the last bin has its edge
            counts.index_add_(0, (place + BINS * ~same).flatten(), once.long().flatten())
            sums += torch.stack([(near * (once & kind)).sum() for kind in (same, ~same)])
    return counts.view(2, BINS).cpu().numpy(), sums.cpu().numpy()


def _separation(share: NDArray[np.float64]) -> float:
    """Compute P(intra < inter) + P(equal)/2 of two distributions over the same bins."""
    intra, inter = share
    beyond = inter[::-1].cumsum()[::-1] - inter  # (bin,) P(inter lies in a later bin)
    return float((intra * (beyond + inter / 2)).sum())
