"""Search the nearest representations of each row and score how many are of its patient or diagnosis (section 6.6).

Every row is a query. Three searches differ in the relevant rows and in the rows that are searched:

    same recording     other rows of the query's recording, among these and all rows of other patients
    other recordings   rows of the patient's other recordings, among these and all rows of other patients
    same diagnosis     rows of other patients with the query's diagnosis, among all rows of other patients with one

Two rows have the same diagnosis if exactly the same classes hold for both. Recall at k is the share of queries with a
relevant row among the k nearest. Average precision is the mean of the precisions at the relevant rows of a query.
Queries without a relevant row are left out, and counted.

Ties: equally near rows have no order. Each number is the expectation over all orders of ties, in closed form. So no
number depends on the order of files or on a sort, and an encoder that maps everything to one point scores exactly as
chance does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias, get_args

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clocs_core.data.memory import within_memory
from clocs_core.evaluation.features import Features
from clocs_core.evaluation.thinning import thin

Nearness: TypeAlias = Literal["euclidean", "cosine"]
Relevant: TypeAlias = Literal["same recording", "other recordings", "same diagnosis"]

KS = (1, 5, 10)
ROWS = 20_000  # most rows searched; whole patients are left out where there are enough of them
QUERIES = 1_000  # most queries, evenly spaced: 8 million distances with 8,000 rows, about a second on a CPU
_TILE = 128  # queries at a time: about 15 arrays of tile x n numbers, 100 MB with 8,000 rows
_MORE = 8  # times as many on a GPU, where launching the operations of a tile takes longer than computing them
_ROUNDING = 1e-13  # relative to the squared scale: rows nearer than this count as one point


@attrs.frozen(kw_only=True)
class Retrieval:
    """The scores of one search. recall: at each of KS. NaN if no query has a relevant row.

    queries: number of queries with a relevant row; left_out: without one; rows: number of rows searched.
    """

    relevant: Relevant
    nearness: Nearness
    recall: tuple[float, ...]
    mean_average_precision: float
    queries: int
    left_out: int
    rows: int


def retrieve(
    features: Features,
    nearness: Nearness,
    device: torch.device,
    tick: Callable[[int, int], None] = lambda done, total: None,
    most_queries: int = QUERIES,
) -> tuple[Retrieval, ...]:
    """Run all searches with every finite row, or `most_queries` evenly spaced rows, as queries.

    Exact: every distance is computed in float64, a tile of queries at a time, and compared in float32, so that
    distances that differ by rounding only are ties. All searches share one sort per tile.
    """
    rows = features.take(_usable(features))
    queries = torch.from_numpy(np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most_queries)).astype(np.int64)))

    def search(where: torch.device, share: float) -> dict[Relevant, list[Tensor]]:
        ids = _Ids.of(rows, where)
        x = torch.from_numpy(rows.embedding).to(where, torch.float64)  # (n, dim)
        size = _TILE if where.type == "cpu" else max(1, int(_TILE * _MORE * share))
        tiles = queries.to(where).split(size) if len(rows) else ()
        found: dict[Relevant, list[Tensor]] = {way: [] for way in get_args(Relevant)}
        for step, tile in enumerate(tiles, start=1):
            near, order = distances(x[tile], x, nearness).sort(dim=1)  # (tile, n)
            ties = _Ties.of(near)
            for way, candidate, right in ids.judge(tile, order):
                found[way].append(_expected(ties, candidate, right))  # (tile, 1 + len(KS))
            tick(step, len(tiles))
        return found

    found = within_memory(search, device)
    return tuple(_summarise(way, nearness, parts, len(rows)) for way, parts in found.items())


def distances(a: Tensor, b: Tensor, nearness: Nearness) -> Tensor:
    """Compute distances (q, n) of rows (q, dim) to rows (n, dim) in float64; return float32.

    Euclidean, or one minus the cosine; a row of zeros has a cosine of 0 with every row, itself included.
    """
    a, b = a.double(), b.double()
    if nearness == "cosine":
        a, b = (side / side.norm(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny) for side in (a, b))
        apart = 1 - a @ b.T
        return torch.where(apart < _ROUNDING, 0, apart).float()
    scale = (a**2).sum(1)[:, None] + (b**2).sum(1)[None, :]
    square = scale - 2 * a @ b.T
    return torch.where(square < _ROUNDING * scale, 0, square).sqrt().float()


def diagnoses(label: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the distinct sets of classes; return each row's number, -1 for no label. Labels are as in `Features`."""
    if label.dtype.kind == "f":  # a number, which is no diagnosis
        return np.full(len(label), -1, dtype=np.int64)
    if label.ndim == 1:
        return label
    known = (label >= 0).all(axis=1)
    numbers = np.unique(label, axis=0, return_inverse=True)[1].reshape(-1)
    return np.where(known, numbers, np.int64(-1))


@attrs.frozen(eq=False)
class _Ids:
    """Patient, record and diagnosis of each row, on the device."""

    patient: Tensor  # (n,)
    record: Tensor  # (n,)
    diagnosis: Tensor  # (n,)

    @classmethod
    def of(cls, rows: Features, device: torch.device) -> _Ids:
        columns = (rows.patient, rows.record, diagnoses(rows.label))
        return cls(*(torch.from_numpy(np.ascontiguousarray(column)).to(device) for column in columns))

    def judge(self, query: Tensor, order: Tensor) -> Iterator[tuple[Relevant, Tensor, Tensor]]:
        """Yield, for each search, masks (query, n) of the rows searched and the relevant rows, in the order given."""
        asks = query[:, None]
        mine = self.patient[order] == self.patient[asks]
        here = self.record[order] == self.record[asks]
        diagnosis = self.diagnosis[order]
        right = here & (order != asks)
        yield "same recording", right | ~mine, right
        right = mine & ~here
        yield "other recordings", right | ~mine, right
        candidate = ~mine & (diagnosis >= 0)
        yield "same diagnosis", candidate, candidate & (diagnosis == self.diagnosis[asks])


def _usable(features: Features) -> NDArray[np.int64]:
    """Return the rows to search: finite ones, and not too many."""
    finite: NDArray[np.int64] = np.flatnonzero(np.isfinite(features.embedding).all(axis=1))
    return np.asarray(finite[thin(features.patient[finite], ROWS, fewest=2)])


@attrs.frozen(eq=False)
class _Ties:
    """First and last column of each row's tie, that is, of the columns with the same distance."""

    first: Tensor  # (query, n)
    last: Tensor  # (query, n)

    @classmethod
    def of(cls, near: Tensor) -> _Ties:
        """Find the ties of sorted distances (query, n)."""
        column = torch.arange(near.shape[1], device=near.device).expand_as(near)
        other = near[:, 1:] != near[:, :-1]  # (query, n - 1): true where one tie ends and the next begins
        first, last = column.clone(), column.clone()
        first[:, 1:].masked_fill_(~other, 0)
        last[:, :-1].masked_fill_(~other, near.shape[1])
        return cls(first.cummax(1).values, last.flip(1).cummin(1).values.flip(1))


@attrs.frozen(eq=False)
class _Tie:
    """A row's tie: rows before it (`before`) and in it (`size`), and the relevant ones among each. All float64."""

    before: Tensor
    right_before: Tensor
    size: Tensor
    right: Tensor


def _expected(ties: _Ties, candidate: Tensor, right: Tensor) -> Tensor:
    """Compute average precision and recall at each k (query, 1 + len(KS)), as expectations over all orders of ties.

    NaN for a query without a relevant row. candidate, right: masks (query, n) of the rows searched and of the relevant
    ones among them, sorted by distance.
    """
    pad = torch.nn.functional.pad
    place, hits = (pad(one.cumsum(1), (1, 0)) for one in (candidate, right))  # (query, n + 1): counts before a column

    def tie_of(query: Tensor, column: Tensor) -> _Tie:
        first, end = ties.first[query, column], ties.last[query, column] + 1
        before, right_before = place[query, first].double(), hits[query, first].double()
        return _Tie(before, right_before, place[query, end] - before, hits[query, end] - right_before)

    query, column = right.nonzero(as_tuple=True)  # (right row,) sync point on a GPU
    every = hits[:, -1]  # relevant rows in total
    total = torch.zeros(len(every), dtype=torch.float64)
    # On the CPU: a GPU adds up in any order, so that the last digit would differ from run to run.
    total.index_add_(0, query.cpu(), _precision(tie_of(query, column), candidate.shape[1]).cpu())
    columns = [total.to(every.device) / every]  # 0 / 0 is NaN
    for k in KS:
        wanted = place[:, -1:].clamp(max=k)  # with fewer candidates than k, all of them
        column = torch.searchsorted(place[:, 1:].contiguous(), wanted)[:, 0]
        columns.append(_recall(k, wanted[:, 0], tie_of(torch.arange(len(place), device=place.device), column)))
    return torch.where(every > 0, torch.stack(columns), torch.nan).T


def _precision(tie: _Tie, rows: int) -> Tensor:
    """Compute the precision at a relevant row, averaged over the orders of its tie.

    A tie has m rows, r of them relevant; b rows come before it, h of them relevant. With a = (r - 1) / (m - 1), a
    relevant row at place i of the tie has a precision of (h + 1 + a (i - 1)) / (b + i) on average (McSherry and Najork
    2008, "Computing information retrieval performance measures efficiently in the presence of tied scores"). All i are
    equally likely. The precision equals a + (h + 1 - a (b + 1)) / (b + i), so its mean over i needs only harmonic
    numbers.
    """
    count = torch.arange(1, rows + 1, dtype=torch.float64)  # on the CPU, as above
    harmonic = torch.nn.functional.pad((1 / count).cumsum(0), (1, 0)).to(tie.size.device)  # (n + 1,): 0, 1, 1 + 1/2, …
    a = (tie.right - 1) / (tie.size - 1).clamp(min=1)
    inverse = harmonic[(tie.before + tie.size).long()] - harmonic[tie.before.long()]
    return a + (tie.right_before + 1 - a * (tie.before + 1)) * inverse / tie.size


def _recall(k: int, wanted: Tensor, tie: _Tie) -> Tensor:
    """Compute the probability (query,) that one of the first `wanted` candidates, at most k, is relevant.

    It is 1 if one before the last tie is relevant. Otherwise it is 1 - C(m - r, j) / C(m, j): j of the tie's m rows
    are taken, r of the m are relevant.
    """
    j = wanted - tie.before
    missed = torch.ones_like(tie.size)
    for taken in range(k):
        left = (tie.size - tie.right - taken).clamp(min=0) / (tie.size - taken).clamp(min=1)
        missed = torch.where(taken < j, missed * left, missed)
    return torch.where(tie.right_before > 0, 1.0, 1 - missed)


def _summarise(way: Relevant, nearness: Nearness, parts: list[Tensor], rows: int) -> Retrieval:
    found = torch.cat(parts).cpu().numpy() if parts else np.empty((0, 1 + len(KS)))  # sync point
    asked = ~np.isnan(found[:, 0])
    mean = found[asked].mean(axis=0) if asked.any() else np.full(1 + len(KS), np.nan)
    return Retrieval(
        relevant=way,
        nearness=nearness,
        recall=tuple(mean[1:].tolist()),
        mean_average_precision=float(mean[0]),
        queries=int(asked.sum()),
        left_out=int((~asked).sum()),
        rows=rows,
    )
