"""AUROC and average precision of many weightings of the same rows, in torch, on any device.

Both depend on the weights of negatives below, tied with and above each score that a positive has. Rows are sorted into
these places once for each class; then the weights of every draw are added up by place. Weights of a bootstrap are whole
numbers, so that sums are exact in any order, and in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import numpy as np
import torch
from torch import Tensor

from clocs_plugins.classification.rows import (
    Floats,
    Integers,
    mean_over_classes,
    nan_where_missing,
    positives,
    refuse_other_shapes,
)

_AT_ONCE = 2**19  # weights per block on a CPU: some MB, which fit in a core's cache
_EXACT = 2**23  # whole numbers up to here, doubled, are exact in float32


def draw_auroc(probability: Floats, label: Integers, weights: Floats) -> Floats:
    """Compute `macro_auroc` (draw,) for every row of `weights` (draw, n)."""
    return tensor_auroc(*map(_as_tensor, (probability, label, weights))).numpy()


def draw_auprc(probability: Floats, label: Integers, weights: Floats) -> Floats:
    """Compute `macro_auprc` (draw,) for every row of `weights` (draw, n)."""
    return tensor_auprc(*map(_as_tensor, (probability, label, weights))).numpy()


def tensor_auroc(probability: Tensor, label: Tensor, weights: Tensor) -> Tensor:
    """Compute `draw_auroc` where the tensors lie."""
    return _by_class(_area, probability, label, weights)


def tensor_auprc(probability: Tensor, label: Tensor, weights: Tensor) -> Tensor:
    """Compute `draw_auprc` where the tensors lie."""
    return _by_class(_precision, probability, label, weights)


def _as_tensor(array: Any) -> Tensor:
    array = np.require(array, requirements="W")  # torch reads no locked or reversed arrays
    return torch.from_numpy(array if min(array.strides) >= 0 else array.copy())


@attrs.frozen(eq=False)
class _Sums:
    """Adds up some rows by group."""

    group: Tensor  # (row,): the group of each
    row: Tensor  # (row,)
    groups: int

    def of(self, weights: Tensor) -> Tensor:
        """Add up weights (n, draw) by group: (group, draw). Weights are whole numbers, so no order of sums matters."""
        added = weights.new_zeros(self.groups, weights.shape[1])
        return added.index_add_(0, self.group, weights.index_select(0, self.row))


@attrs.frozen(eq=False)
class _Ranks:
    """The place of every row of one class among the scores of its positives, the thresholds.

    up: sums the weights of positives at each threshold. down: sums those of negatives below the first threshold, from
    the first to below the second, and so on. tied: sums those of negatives at each threshold; None if there are none.
    """

    up: _Sums
    down: _Sums
    tied: _Sums | None

    def of(self, weights: Tensor) -> _Found:
        """Add up weights (n, draw)."""
        below = self.down.of(weights).cumsum(0)  # (threshold + 1, draw)
        tied = None if self.tied is None else self.tied.of(weights)
        return _Found(self.up.of(weights), below[:-1], below[-1], tied)


@attrs.frozen(eq=False)
class _Found:
    """The weights of one class in every draw, in float32 or float64."""

    up: Tensor  # (threshold, draw) of positives at a threshold
    below: Tensor  # (threshold, draw) of negatives below it
    downs: Tensor  # (draw,) of all negatives
    tied: Tensor | None  # (threshold, draw) of negatives at it; None for zeros


def _by_class(of_class: Callable[[_Found], Tensor], probability: Tensor, label: Tensor, weights: Tensor) -> Tensor:
    """Average the results of `of_class` over classes, a block of draws at a time."""
    said, truth = probability.cpu().numpy(), label.cpu().numpy()
    refuse_other_shapes(said, truth, weights[0])
    positive = torch.from_numpy(positives(truth, said.shape[1])).to(weights.device)
    scores = probability.nan_to_num()  # draws that have such a row are set to NaN below
    ranks = [_rank(*columns) for columns in zip(scores.T.contiguous(), positive.T, strict=True)]

    def score(block: Tensor) -> Tensor:
        by_row = _by_row(block)
        return torch.stack([of_class(one.of(by_row)) for one in ranks], dim=1)

    if weights.is_cuda:
        found = score(weights)
    else:
        with _one_thread():
            found = torch.cat([score(block) for block in weights.split(max(1, _AT_ONCE // len(scores)))])
    missing = weights[:, probability.isnan().any(1)].cpu().numpy()
    return torch.from_numpy(nan_where_missing(mean_over_classes(found.cpu().numpy()), missing))


def _by_row(weights: Tensor) -> Tensor:
    """Return weights (draw, n) as (n, draw): in float32, which takes half the time, if all sums are exact in it."""
    short = weights.T.to(torch.float32, memory_format=torch.contiguous_format)
    small = (short.amin() >= 0) & (short.amax() * len(short) < _EXACT)
    whole = short.sub(short.floor()).amax() == 0
    return short if small & whole else weights.T.contiguous()  # sync point on a GPU


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute on one thread: several would wait for each other after every small operation."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _rank(score: Tensor, positive: Tensor) -> _Ranks:
    ups, downs = positive.nonzero()[:, 0], (~positive).nonzero()[:, 0]
    thresholds, tie = score[ups].unique(return_inverse=True)
    below = score[downs]
    place, after = (torch.searchsorted(thresholds, below, right=right) for right in (False, True))  # equal: not tied
    at = (place != after).nonzero()[:, 0]
    tied = _Sums(place[at], downs[at], len(thresholds)) if len(at) else None
    return _Ranks(_Sums(tie, ups, len(thresholds)), _Sums(after, downs, len(thresholds) + 1), tied)


def _area(found: _Found) -> Tensor:
    """Compute the area of one class in every draw (draw,); NaN where a draw lacks positives or negatives.

    A negative that is tied with a positive counts half.
    """
    twice = 2 * found.below if found.tied is None else 2 * found.below + found.tied
    pairs = found.up.sum(0).double() * found.downs
    area = found.up.double().mul_(twice).sum(0) / (2 * pairs)
    return torch.where(pairs > 0, area, torch.nan)


def _precision(found: _Found) -> Tensor:
    """Compute the average precision of one class in every draw (draw,); NaN as in `_area`."""
    up, total = found.up, found.up.sum(0)
    true = (total - up.cumsum(0) + up).double()  # (threshold, draw): positives at a threshold and above
    precision = true / (true + (found.downs - found.below)).clamp_min_(torch.finfo(true.dtype).tiny)
    return torch.where((total > 0) & (found.downs > 0), precision.mul_(up).sum(0) / total, torch.nan)
