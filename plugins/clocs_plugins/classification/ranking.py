"""AUROC and average precision of many weightings of the same rows, in torch, on any device.

Both depend on the weights of negatives below, tied with and above each score that a positive has. Rows are sorted into
these places once for each class; then the weights of every draw are added up by place. Weights of a bootstrap are whole
numbers, so that sums are exact in any order.
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

_AT_ONCE = 2**19  # weights per block on a CPU: 4 MB, which fit in a core's cache


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
    return torch.from_numpy(np.require(array, requirements=("C", "W")))  # torch reads no reversed or locked arrays


@attrs.frozen(eq=False)
class _Sums:
    """Adds up some rows by group."""

    group: Tensor  # (row,): the group of each
    row: Tensor  # (row,)
    groups: int

    def of(self, weights: Tensor) -> Tensor:
        """Add up weights (n, draw) by group: (group, draw). Weights are whole numbers, so no order of sums matters."""
        return weights.new_zeros(self.groups, weights.shape[1]).index_add_(0, self.group, weights[self.row])


@attrs.frozen(eq=False)
class _Ranks:
    """The place of every row of one class among the scores of its positives, the thresholds.

    up: sums the weights of positives at each threshold. down: sums those of negatives, below the first threshold, tied
    with it, between the first and the second, and so on.
    """

    up: _Sums
    down: _Sums


def _by_class(
    of_class: Callable[[Tensor, Tensor], Tensor], probability: Tensor, label: Tensor, weights: Tensor
) -> Tensor:
    """Average the results of `of_class` over classes, a block of draws at a time."""
    said, truth = probability.cpu().numpy(), label.cpu().numpy()
    refuse_other_shapes(said, truth, weights[0])
    positive = torch.from_numpy(positives(truth, said.shape[1])).to(weights.device)
    scores = probability.nan_to_num()  # draws that have such a row are set to NaN below
    ranks = [_rank(*columns) for columns in zip(scores.T.contiguous(), positive.T, strict=True)]

    def score(block: Tensor) -> Tensor:
        by_row = block.T.contiguous()  # (n, draw)
        return torch.stack([of_class(one.up.of(by_row), one.down.of(by_row)) for one in ranks], dim=1)

    if weights.is_cuda:
        found = score(weights)
    else:
        with _one_thread():
            found = torch.cat([score(block) for block in weights.split(max(1, _AT_ONCE // len(scores)))])
    missing = weights[:, probability.isnan().any(1)].cpu().numpy()
    return torch.from_numpy(nan_where_missing(mean_over_classes(found.cpu().numpy()), missing))


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
    place = torch.searchsorted(thresholds, below) + torch.searchsorted(thresholds, below, right=True)  # odd: tied
    return _Ranks(_Sums(tie, ups, len(thresholds)), _Sums(place, downs, 2 * len(thresholds) + 1))


def _area(up: Tensor, down: Tensor) -> Tensor:
    """Compute the area of one class in every draw (draw,); NaN where a draw lacks positives or negatives.

    up: (threshold, draw). down: (2 threshold + 1, draw). A negative that is tied with a positive counts half.
    """
    downs = down.cumsum(0)
    pairs = up.sum(0) * downs[-1]
    area = (up * (downs[:-1:2] + downs[1::2])).sum(0) / (2 * pairs)
    return torch.where(pairs > 0, area, torch.nan)


def _precision(up: Tensor, down: Tensor) -> Tensor:
    """Compute the average precision of one class in every draw (draw,); arguments and NaN as in `_area`."""
    total, downs = up.sum(0), down.cumsum(0)
    true = total - up.cumsum(0) + up  # (threshold, draw): positives at a threshold and above
    false = downs[-1] - downs[:-1:2]
    precision = true / (true + false).clamp_min(torch.finfo(up.dtype).tiny)
    return torch.where((total > 0) & (downs[-1] > 0), (up * precision).sum(0) / total, torch.nan)
