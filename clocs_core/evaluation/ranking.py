"""Rank the rows of one class by their probability: ROC and precision-recall curves, areas, thresholds.

A row counts as positive where its probability is at least the threshold. All counts are of weighted rows, so that
many bootstrap samples are counted at once.
"""

from __future__ import annotations

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clocs_core.evaluation.bootstrap import Floats

POINTS = 64  # of a curve that is kept
BINS = 10  # of a reliability diagram
_AT_ONCE = 2**16  # weights per block: half a megabyte, which fits in a core's cache


@attrs.frozen(eq=False)
class Ranking:
    """The rows of one class in the order of falling probability. Rows of equal probability are one tie.

    order: rows (n,). positive: whether each has the class, in this order. ends: the last place of each tie (tie,).
    score: the probability of each tie (tie,).
    """

    order: NDArray[np.int64]
    positive: NDArray[np.bool_]
    ends: NDArray[np.int64]
    score: Floats

    @classmethod
    def of(cls, probability: Floats, positive: NDArray[np.bool_]) -> Ranking:
        """Rank rows (n,), of which there is at least one."""
        order = np.argsort(-probability, kind="stable")
        sorted_ = probability[order]
        ends = np.append(np.flatnonzero(np.diff(sorted_)), len(sorted_) - 1)
        return cls(order, positive[order], ends, sorted_[ends])

    def counts(self, weights: Floats) -> tuple[Floats, Floats]:
        """Count the true and the false positives at each threshold, from the highest down: (draw, tie) each.

        weights: (draw, n), how often each row counts.
        """
        ranked = np.take(weights, self.order, axis=1)
        true, said = np.cumsum(ranked * self.positive, axis=1), np.cumsum(ranked, axis=1)
        if len(self.ends) < len(self.order):
            true, said = true[:, self.ends], said[:, self.ends]
        return true, said - true

    def estimate(self, weights: Floats, threshold: float) -> Floats:
        """Return AUROC, average precision, sensitivity and specificity of every draw: (draw, 4).

        NaN where a draw lacks what the number is a share of, and sensitivity and specificity without a threshold.
        """
        size = max(1, _AT_ONCE // len(self.order))
        blocks = [weights[at : at + size] for at in range(0, len(weights), size)]
        return np.concatenate([np.empty((0, 4)), *(self._estimate(block, threshold) for block in blocks)])

    def _estimate(self, weights: Floats, threshold: float) -> Floats:
        true, false = self.counts(weights)
        positives, negatives = true[:, -1], false[:, -1]
        counted = np.diff(np.append(0, np.cumsum(self.positive)[self.ends]))
        hits = np.flatnonzero(counted)  # ties with a positive: the others add nothing to either area
        before = np.where((hits > 0)[None], false[:, hits - 1], 0.0)  # false positives above each tie
        at, alarms = true[:, hits], false[:, hits]  # (draw, hit)
        more = np.diff(at, axis=1, prepend=0.0)
        found = np.full((len(weights), 4), np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            both = positives * negatives > 0
            area = (more * (negatives[:, None] - (alarms + before) / 2)).sum(1) / (positives * negatives)
            average = (more * at / np.maximum(at + alarms, 1.0)).sum(1) / positives  # no row so far: 0 of 1
            found[:, 0], found[:, 1] = np.where(both, area, np.nan), np.where(both, average, np.nan)
            if not np.isnan(threshold):
                hit, alarm = (_at(held, self.score, threshold) for held in (true, false))
                found[:, 2] = np.where(positives > 0, hit / positives, np.nan)
                found[:, 3] = np.where(negatives > 0, 1 - alarm / negatives, np.nan)
        return found

    def estimate_on(self, weights: Tensor, threshold: float) -> Tensor:
        """Compute `estimate` where the weights lie: (draw, 4)."""
        there = weights.device
        order, positive, ends = (torch.from_numpy(one).to(there) for one in (self.order, self.positive, self.ends))
        hits = torch.from_numpy(np.flatnonzero(np.diff(np.append(0, np.cumsum(self.positive)[self.ends])))).to(there)
        ranked = weights.index_select(1, order)
        true = (ranked * positive).cumsum(1).index_select(1, ends)  # (draw, tie)
        false = ranked.cumsum(1).index_select(1, ends) - true
        positives, negatives = true[:, -1], false[:, -1]
        before = torch.where(hits > 0, false[:, hits - 1], 0.0)  # false positives above each tie with a positive
        at, alarms = true[:, hits], false[:, hits]  # (draw, hit)
        more = torch.diff(at, dim=1, prepend=at.new_zeros(len(at), 1))
        both = positives * negatives > 0
        area = (more * (negatives[:, None] - (alarms + before) / 2)).sum(1) / (positives * negatives)
        average = (more * at / (at + alarms).clamp_min(1.0)).sum(1) / positives
        found = torch.full((len(weights), 4), torch.nan, dtype=weights.dtype, device=there)
        found[:, 0], found[:, 1] = torch.where(both, area, torch.nan), torch.where(both, average, torch.nan)
        if not np.isnan(threshold):
            ties = _ties_above(self.score, threshold)
            hit, alarm = (one[:, ties - 1] if ties else torch.zeros_like(positives) for one in (true, false))
            found[:, 2] = torch.where(positives > 0, hit / positives, torch.nan)
            found[:, 3] = torch.where(negatives > 0, 1 - alarm / negatives, torch.nan)
        return found

    def threshold(self) -> float:
        """Choose the threshold with the largest Youden index, sensitivity + specificity - 1.

        It lies halfway between the probabilities of two neighbouring ties; of equally good ones it is the highest. NaN
        where there is no positive or no negative.
        """
        true, false = (one[0] for one in self.counts(np.ones((1, len(self.order)))))
        if not true[-1] or not false[-1]:
            return float("nan")
        best = int(np.argmax(true / true[-1] - false / false[-1]))
        return float(self.score[best : best + 2].mean())

    def roc(self) -> tuple[tuple[float, ...], ...]:
        """Return false positive rates and sensitivities, from (0, 0) to (1, 1); empty where they are not defined."""
        true, false = (one[0] for one in self.counts(np.ones((1, len(self.order)))))
        if not true[-1] or not false[-1]:
            return ()
        return _thin(np.append(0.0, false / false[-1]), np.append(0.0, true / true[-1]))

    def precision_recall(self) -> tuple[tuple[float, ...], ...]:
        """Return recalls and precisions, from the highest threshold down; empty without a positive or a negative."""
        true, false = (one[0] for one in self.counts(np.ones((1, len(self.order)))))
        if not true[-1] or not false[-1]:
            return ()
        return _thin(true / true[-1], true / (true + false))

    def reliability(self) -> tuple[tuple[float, ...], ...]:
        """Return for each bin the mean probability, the share of positives and the number of rows; empty bins not."""
        sizes = np.diff(self.ends, prepend=-1)
        probability = np.repeat(self.score, sizes)
        number = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
        count = np.bincount(number, minlength=BINS)
        there = count > 0
        mean, share = (
            np.bincount(number, one, minlength=BINS)[there] / count[there] for one in (probability, self.positive)
        )
        return tuple(tuple(np.round(one, 4).tolist()) for one in (mean, share, count[there].astype(np.float64)))


def _at(counts: Floats, score: Floats, threshold: float) -> Floats:
    """Return the counts (draw,) of rows at or above a threshold."""
    ties = _ties_above(score, threshold)
    return counts[:, ties - 1] if ties else np.zeros(len(counts))


def _ties_above(score: Floats, threshold: float) -> int:
    """Return how many ties lie at or above a threshold."""
    return int(np.searchsorted(-score, -threshold, side="right"))


def _thin(x: Floats, y: Floats) -> tuple[tuple[float, ...], ...]:
    """Keep some points of a curve, the first and the last among them."""
    kept = np.unique(np.linspace(0, len(x) - 1, POINTS).round().astype(np.int64))
    return tuple(tuple(np.round(one[kept], 4).tolist()) for one in (x, y))
