"""Does a representation find others of its patient, or of its diagnosis? Section 6.6 of the paper, as a search.

Every row asks: which rows are nearest? Three answers are right in three ways:

    same recording     other rows of the query's recording, among these and all rows of other patients
    other recordings   rows of the patient's other recordings, among these and all rows of other patients
    same diagnosis     rows of other patients with the query's diagnosis, among all rows of other patients with one

Two rows have one diagnosis where exactly the same classes hold for both. Recall at k is the share of queries with a
right row among the k nearest; average precision is the mean, over the right rows of a query, of the share of right
rows down to each. Queries for which no row is right are left out, and counted.

Ties: rows that are equally near have no order, so every order of them counts the same. Each number is the expectation
over all these orders, in closed form. So neither the order of the files nor that of a sort is in any number, and an
encoder that maps everything to one point gets exactly what chance gets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias, get_args

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clocs_core.evaluation.features import Features

Nearness: TypeAlias = Literal["euclidean", "cosine"]
Relevant: TypeAlias = Literal["same recording", "other recordings", "same diagnosis"]

KS = (1, 5, 10)
ROWS = 20_000  # searched at most, by whole patients, so that none of them loses a part of its rows
QUERIES = 1_000  # asked at most, evenly spaced: 8 million distances with 8,000 rows, about a second on a CPU
_TILE = 128  # queries at a time: about 15 arrays of tile x n numbers, 100 MB with 8,000 rows
_ROUNDING = 1e-13  # of the scale of a square: nearer than this, two rows are one point


@attrs.frozen(kw_only=True)
class Retrieval:
    """How well nearness finds what is right. recall: at each of KS. NaN where no query has a right row.

    queries: how many had a right row; left_out: how many had none; rows: how many were searched.
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
    """Search with every row, or `most_queries` of them evenly spaced, in all ways; rows that are not finite are left.

    Exact: every distance is computed, a tile of queries at a time, in float64, and compared in float32, so that
    distances that differ by rounding alone are ties. One sort per tile serves all ways.
    """
    rows = features.take(_usable(features))
    ids = _Ids.of(rows, device)
    x = torch.from_numpy(rows.embedding).to(device, torch.float64)  # (n, dim)
    queries = torch.from_numpy(np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most_queries)).astype(np.int64)))
    tiles = queries.to(device).split(_TILE) if len(rows) else ()
    found: dict[Relevant, list[Tensor]] = {way: [] for way in get_args(Relevant)}
    for step, tile in enumerate(tiles, start=1):
        near, order = distances(x[tile], x, nearness).sort(dim=1)  # (tile, n)
        ties = _Ties.of(near)
        for way, candidate, right in ids.judge(tile, order):
            found[way].append(_expected(ties, candidate, right))  # (tile, 1 + len(KS))
        tick(step, len(tiles))
    return tuple(_summarise(way, nearness, parts, len(rows)) for way, parts in found.items())


def distances(a: Tensor, b: Tensor, nearness: Nearness) -> Tensor:
    """How far rows (q, dim) are from rows (n, dim): (q, n) float32, computed in float64.

    Euclidean, or one minus the cosine; a row of zeros has a cosine of 0 with everything, itself included.
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
    """A number for each set of classes that rows can have, -1 for no label. Labels are as in `Features`."""
    if label.ndim == 1:
        return label
    known = (label >= 0).all(axis=1)
    numbers = np.unique(label, axis=0, return_inverse=True)[1].reshape(-1)
    return np.where(known, numbers, np.int64(-1))


@attrs.frozen(eq=False)
class _Ids:
    """Whose each row is, on the device."""

    patient: Tensor  # (n,)
    record: Tensor  # (n,)
    diagnosis: Tensor  # (n,)

    @classmethod
    def of(cls, rows: Features, device: torch.device) -> _Ids:
        columns = (rows.patient, rows.record, diagnoses(rows.label))
        return cls(*(torch.from_numpy(np.ascontiguousarray(column)).to(device) for column in columns))

    def judge(self, query: Tensor, order: Tensor) -> Iterator[tuple[Relevant, Tensor, Tensor]]:
        """For each way, which rows are searched and which are right, in the order given: (query, n) each."""
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
    """The rows to search: finite ones, of every s-th patient where there are too many."""
    finite: NDArray[np.int64] = np.flatnonzero(np.isfinite(features.embedding).all(axis=1))
    every = -(-len(finite) // ROWS)
    _, number = np.unique(features.patient[finite], return_inverse=True)
    return np.asarray(finite[number % max(every, 1) == 0])


@attrs.frozen(eq=False)
class _Ties:
    """Where the tie of each row begins and ends: the first and the last column with the same distance."""

    first: Tensor  # (query, n)
    last: Tensor  # (query, n)

    @classmethod
    def of(cls, near: Tensor) -> _Ties:
        """The ties of distances in their order (query, n)."""
        column = torch.arange(near.shape[1], device=near.device).expand_as(near)
        other = near[:, 1:] != near[:, :-1]  # (query, n - 1): whether a tie ends at a column and one begins after it
        first, last = column.clone(), column.clone()
        first[:, 1:].masked_fill_(~other, 0)
        last[:, :-1].masked_fill_(~other, near.shape[1])
        return cls(first.cummax(1).values, last.flip(1).cummin(1).values.flip(1))


@attrs.frozen(eq=False)
class _Tie:
    """Of the tie that a row stands in: rows before it and in it, and how many of each are right. All float64."""

    before: Tensor
    right_before: Tensor
    size: Tensor
    right: Tensor


def _expected(ties: _Ties, candidate: Tensor, right: Tensor) -> Tensor:
    """Average precision and recall at each k (query, 1 + len(KS)), expected over all orders of ties; NaN: none right.

    candidate, right: which rows are searched, and which of them are right, in the order of their distances (query, n).
    """
    pad = torch.nn.functional.pad
    place, hits = (pad(one.cumsum(1), (1, 0)) for one in (candidate, right))  # (query, n + 1): so many before a column

    def tie_of(query: Tensor, column: Tensor) -> _Tie:
        first, end = ties.first[query, column], ties.last[query, column] + 1
        before, right_before = place[query, first].double(), hits[query, first].double()
        return _Tie(before, right_before, place[query, end] - before, hits[query, end] - right_before)

    query, column = right.nonzero(as_tuple=True)  # (right row,) sync point on a GPU
    every = hits[:, -1]  # right rows in all
    total = torch.zeros_like(every, dtype=torch.float64)
    total.index_add_(0, query, _precision(tie_of(query, column), candidate.shape[1]))
    columns = [total / every]  # 0 / 0 is NaN
    for k in KS:
        wanted = place[:, -1:].clamp(max=k)  # where there are fewer candidates than k, the last of them
        column = torch.searchsorted(place[:, 1:].contiguous(), wanted)[:, 0]
        columns.append(_recall(k, wanted[:, 0], tie_of(torch.arange(len(place), device=place.device), column)))
    return torch.where(every > 0, torch.stack(columns), torch.nan).T


def _precision(tie: _Tie, rows: int) -> Tensor:
    """What a right row adds to the sum of precisions of its query, on average over the orders of its tie.

    Of m rows that tie, r are right, after b rows of which h are right. With a = (r - 1) / (m - 1), a right row that
    comes i-th among them has a precision of (h + 1 + a (i - 1)) / (b + i) on average (McSherry and Najork 2008,
    "Computing information retrieval performance measures efficiently in the presence of tied scores"), and each i is
    as likely. That is a + (h + 1 - a (b + 1)) / (b + i), so that the mean over i needs only harmonic numbers.
    """
    count = torch.arange(1, rows + 1, device=tie.size.device, dtype=torch.float64)
    harmonic = torch.nn.functional.pad((1 / count).cumsum(0), (1, 0))  # (n + 1,): 0, 1, 1 + 1/2, …
    a = (tie.right - 1) / (tie.size - 1).clamp(min=1)
    inverse = harmonic[(tie.before + tie.size).long()] - harmonic[tie.before.long()]
    return a + (tie.right_before + 1 - a * (tie.before + 1)) * inverse / tie.size


def _recall(k: int, wanted: Tensor, tie: _Tie) -> Tensor:
    """The probability that one of the first `wanted` candidates, at most k, is right (query,).

    1 where one before the last tie is; else 1 - C(m - r, j) / C(m, j), since j of the m rows of that tie are taken.
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
