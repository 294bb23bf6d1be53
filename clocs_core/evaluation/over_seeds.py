"""Intervals of a mean over several seeds: for other seeds and other patients, not for other patients alone.

A score varies with the seed, with the patients, and with both together: a patient who is easy for one seed is hard for
another. The variance of the mean over S seeds is

    seeds / S + patients / P + both / (S P)

The bootstrap over patients, with the same draws for every seed, finds the last two terms. The spread between seeds
finds the first and the last. The last is therefore taken away once; it is called the overlap here.

A spread between S seeds has S - 1 degrees of freedom, and the bootstrap has many. The quantile is a mean of the two
quantiles, as Cochran and Cox do for two samples of unequal variance: the variance between seeds is the weight of the
one, and what the bootstrap finds beyond the overlap is the weight of the other. In simulations 95 % intervals cover
0.94 to 0.97 with 3 to 10 seeds: `benchmarks/coverage.py`. Two seeds cannot tell the spread between seeds from the
overlap, so the overlap counts as 0 there: intervals cover 0.93 to 0.99. With the overlap it would be 0.89 to 0.97.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.evaluation.bootstrap import (
    NO_LIMITS,
    Interval,
    Limits,
    compare,
    cut_interval,
    limits_of_difference,
)

Floats = NDArray[np.float64]

NORMAL = NormalDist().inv_cdf(0.975)


@attrs.frozen(eq=False)
class Between:
    """The spread between seeds. Each number may be an array, of many simulated experiments.

    variance: of the mean, as estimated from its S seeds. overlap: the part of it that the patients' variance has too.
    """

    seeds: int
    variance: Floats
    overlap: Floats


def mean_over_seeds(found: Sequence[Interval]) -> Interval:
    """Average several seeds. The interval is over seeds and patients; over patients alone where there is one seed.

    A draw must have the same patients for every seed.
    """
    draws = np.stack([one.draws for one in found])  # (seed, draw)
    value = float(np.mean([one.value for one in found]))
    if len(found) == 1:
        return cut_interval(value, draws[0], found[0].limits)
    parts = [_between([one.value for one in found], draws)]
    return _interval(value, draws.mean(axis=0), parts, found[0].limits)


def patients_spread(found: Sequence[Interval]) -> tuple[float, float]:
    """Return the standard deviation over patients of the mean of several seeds, and its overlap, as in `Between`.

    With the values of the seeds, `interval_from_spreads` makes of them the interval that `mean_over_seeds` has.
    """
    draws = np.stack([one.draws for one in found])  # (seed, draw)
    defined = draws[:, np.isfinite(draws).all(axis=0)]
    if not defined.size:
        return np.nan, 0.0
    if len(found) == 1:
        return float(defined.std()), 0.0
    variance, overlap = spread_over_patients(defined)
    return float(np.sqrt(variance)), float(overlap)


def difference_over_seeds(a: Sequence[Interval], b: Sequence[Interval], paired: bool) -> Interval:
    """Return the mean of `a` less the mean of `b`, with its interval over seeds and patients.

    paired: both have the same seeds in the same order, so that the differences are taken seed by seed. Otherwise the
    seeds of both sides vary by themselves. Where a side has one seed, the interval is over patients alone.
    """
    if paired:
        return mean_over_seeds([compare(one, other) for one, other in zip(a, b, strict=True)])
    sides = [(np.array([one.value for one in side]), np.stack([one.draws for one in side])) for side in (a, b)]
    (ours, our_draws), (theirs, their_draws) = sides
    value, draws = float(ours.mean() - theirs.mean()), our_draws.mean(axis=0) - their_draws.mean(axis=0)
    limits = limits_of_difference(a[0].limits, b[0].limits)
    if min(len(a), len(b)) == 1:
        return cut_interval(value, draws, limits)
    return _interval(value, draws, [_between(values, drawn) for values, drawn in sides], limits)


def interval_from_spreads(
    values: Sequence[float], sd_patients: float, overlap: float = 0.0, limits: Limits = NO_LIMITS
) -> tuple[float, float]:
    """Return the 95 % interval of the mean of these seeds, where no draws are at hand.

    sd_patients: the standard deviation of that mean over draws of the patients. overlap: as in `Between`. Where it is
    not known, 0 makes the interval somewhat too wide.
    """
    if len(values) < 2:
        raise ValueError(f"The spread between seeds needs two seeds or more, got {len(values)}.")
    mean, variance = np.mean(values), np.var(values, ddof=1) / len(values)
    between = Between(len(values), np.asarray(variance), np.asarray(overlap))
    half = float(half_width(np.asarray(sd_patients**2), [between]))
    return _within(limits, float(mean) - half, float(mean) + half)


def _within(limits: Limits, low: float, high: float) -> tuple[float, float]:
    """Cut an interval at the limits of its metric. It covers as often: there is no value beyond them."""
    return (low, high) if np.isnan(low) else (max(low, limits[0]), min(high, limits[1]))


def half_width(patients: Floats, parts: Sequence[Between]) -> Floats:
    """Return half of the width of a 95 % interval. patients: the variance of the mean over draws of the patients."""
    from scipy.special import stdtrit  # the quantile of Student's t; scipy.stats takes 1 s longer to import

    total, weighted, of_seeds = patients, np.zeros_like(patients), np.zeros_like(patients)
    for part in parts:
        beyond = np.maximum(0.0, part.variance - np.minimum(part.overlap, patients))
        weight = np.where(beyond > 0, part.variance, 0.0)
        total = total + beyond
        of_seeds = of_seeds + weight
        weighted = weighted + weight * stdtrit(part.seeds - 1, 0.975)
    quantile: Floats = (weighted + np.maximum(0.0, total - of_seeds) * NORMAL) / np.maximum(total, of_seeds).clip(
        1e-300
    )
    return np.asarray(quantile * np.sqrt(total), dtype=np.float64)


def spread_over_patients(draws: Floats) -> tuple[Floats, Floats]:
    """Return the variance of the mean over seeds, from its draws (..., seed, draw), and its overlap with the seeds'.

    The mean variance of single seeds is `patients / P + both / P`. What averaging takes away is a share of the second
    term: the seeds' own part of it. The overlap of two seeds is 0, see above.
    """
    seeds = draws.shape[-2]
    mean = draws.mean(axis=-2).var(axis=-1)
    if seeds == 2:
        return mean, np.zeros_like(mean)
    single = draws.var(axis=-1).mean(axis=-1)
    return mean, np.maximum(0.0, single - mean) / (seeds - 1)


def _between(values: Sequence[float] | Floats, draws: Floats) -> Between:
    defined = draws[:, np.isfinite(draws).all(axis=0)]  # a draw without any class to score is NaN
    overlap = spread_over_patients(defined)[1] if defined.size else np.zeros(())
    return Between(len(values), np.asarray(np.var(values, ddof=1) / len(values)), overlap)


def _interval(value: float, draws: Floats, parts: Sequence[Between], limits: Limits) -> Interval:
    defined = draws[np.isfinite(draws)]
    half = float(half_width(np.asarray(defined.var()), parts)) if len(defined) else np.nan
    return Interval(value, *_within(limits, value - half, value + half), draws, limits)
