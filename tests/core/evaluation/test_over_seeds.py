"""Intervals of a mean over seeds, against formulas written out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean, variance

import numpy as np
import pytest

from clocs_core.evaluation.bootstrap import Interval, compare
from clocs_core.evaluation.over_seeds import (
    Between,
    difference_over_seeds,
    half_width,
    interval_from_spreads,
    mean_over_seeds,
    patients_spread,
)

T_1, T_2, T_4 = 12.706204736432095, 4.302652729911275, 2.7764451051977987  # 97.5 % points of Student's t, as printed
NORMAL = 1.959963984540054


def seeds(values, spread: float, rng_seed: int = 1, draws: int = 4000) -> list[Interval]:
    """Seeds whose draws share nothing: each seed has a spread over patients of its own."""
    rng = np.random.default_rng(rng_seed)
    return [Interval(value, np.nan, np.nan, rng.normal(value, spread, draws)) for value in values]


def by_hand(values, draws: np.ndarray) -> float:
    """Half of the width, in plain sums, from the description in docs/protocols.md. draws: (seed, draw)."""
    count = len(values)
    means = [fmean(column) for column in draws.T.tolist()]
    patients = fmean((one - fmean(means)) ** 2 for one in means)
    single = fmean(fmean((one - fmean(row)) ** 2 for one in row) for row in draws.tolist())
    overlap = min((single - patients) / (count - 1), patients) if count > 2 else 0.0
    between = variance(values) / count
    total = patients + max(0.0, between - overlap)
    weight = between if between > overlap else 0.0
    quantile = (weight * {2: T_1, 3: T_2, 5: T_4}[count] + (total - weight) * NORMAL) / total
    return quantile * total**0.5


@pytest.mark.parametrize("values", [(0.1, 0.102), (0.1, 0.2, 0.6), (0.30, 0.31, 0.29), (0.1, 0.4, 0.2, 0.3, 0.9)])
@pytest.mark.parametrize("shared", [0.0, 0.05])
def test_the_interval_is_the_one_that_the_documentation_describes(values, shared):
    """With patients that are easy or hard for all seeds alike, and without."""
    rng = np.random.default_rng(2)
    alike = rng.normal(0, shared, 300) if shared else np.zeros(300)
    draws = np.array([alike + rng.normal(value, 0.03, 300) for value in values])
    found = mean_over_seeds([Interval(value, 0, 0, row) for value, row in zip(values, draws, strict=True)])
    assert found.value == pytest.approx(fmean(values))
    assert found.high - found.value == pytest.approx(by_hand(values, draws))
    assert found.value - found.low == pytest.approx(by_hand(values, draws))
    assert found.draws == pytest.approx(draws.mean(axis=0))


def test_one_seed_that_collapses_widens_the_interval_across_zero():
    """As measured: four seeds near 0 and one at -0.117. Over patients alone it was [-0.029, -0.012]."""
    values = (0.011, 0.009, 0.003, -0.008, -0.117)
    low, high = interval_from_spreads(values, sd_patients=(0.029 - 0.012) / 3.92)
    assert low < -0.08
    assert high > 0.04


def test_seeds_that_agree_leave_the_interval_over_patients():
    """With no spread between seeds but that of their patients, the width is that of the bootstrap."""
    found = mean_over_seeds(seeds((0.5, 0.5, 0.5), 0.03))
    assert found.high - found.low == pytest.approx(2 * NORMAL * found.draws.std())


def test_without_patients_it_is_students_t():
    low, high = interval_from_spreads((0.1, 0.2, 0.6), sd_patients=0.0)
    half = T_2 * (variance((0.1, 0.2, 0.6)) / 3) ** 0.5
    assert (low, high) == pytest.approx((0.3 - half, 0.3 + half))


def test_one_seed_keeps_its_interval_over_patients():
    """It says nothing about other seeds, and must not look as if it did."""
    (one,) = seeds((0.5,), 0.1)
    found = mean_over_seeds([one])
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(one.draws, [2.5, 97.5])))
    with pytest.raises(ValueError, match="two seeds or more, got 1"):
        interval_from_spreads((0.5,), 0.1)


def test_differences_are_paired_seed_by_seed_where_the_seeds_are_the_same():
    """What a seed does to both sides cancels."""
    a, b = seeds((0.5, 0.7, 0.9), 0.01), seeds((0.4, 0.6, 0.8), 0.01, 2)
    paired = difference_over_seeds(a, b, paired=True)
    assert (paired.low, paired.high) == pytest.approx(
        (lambda one: (one.low, one.high))(mean_over_seeds([compare(*each) for each in zip(a, b, strict=True)]))
    )
    assert paired.low > 0.05
    apart = difference_over_seeds(a, b, paired=False)
    assert apart.value == pytest.approx(paired.value)
    assert apart.low < 0 < apart.high


def test_seeds_that_are_not_shared_vary_on_both_sides():
    """The two variances add up; with one seed on a side there is no spread to add."""
    a, b = seeds((0.5, 0.7, 0.9), 1e-6), seeds((0.1, 0.2, 0.3, 0.4, 0.5), 1e-6, 2)
    found = difference_over_seeds(a, b, paired=False)
    ours, theirs = variance((0.5, 0.7, 0.9)) / 3, variance((0.1, 0.2, 0.3, 0.4, 0.5)) / 5
    quantile = (ours * T_2 + theirs * T_4) / (ours + theirs)
    assert found.high - found.value == pytest.approx(quantile * (ours + theirs) ** 0.5, rel=1e-4)
    alone = difference_over_seeds(a[:1], b, paired=False)
    assert alone.high - alone.low < 1e-5


def test_draws_without_a_value_do_not_spoil_the_interval():
    """A draw of patients may lack a class; a metric is then not defined on it."""
    rng = np.random.default_rng(3)
    draws = rng.normal(0.5, 0.1, (3, 50))
    holes = draws.copy()
    holes[1, 7] = np.nan
    found, whole = (
        mean_over_seeds([Interval(value, 0, 0, row) for value, row in zip((0.4, 0.5, 0.6), each, strict=True)])
        for each in (holes, np.delete(draws, 7, axis=1))
    )
    assert (found.low, found.high) == pytest.approx((whole.low, whole.high))
    nothing = mean_over_seeds([Interval(0.5, 0, 0, np.array([np.nan]))] * 2)
    assert np.isnan([nothing.low, nothing.high]).all()


ROOT = Path(__file__).parents[3]
COVERAGE = json.loads((ROOT / "benchmarks" / "results" / "coverage.json").read_text(encoding="utf-8"))


def test_the_interval_covers_as_often_as_it_says():
    """In the committed simulation: with every spread over seeds, from 3 to 10 seeds and 62 to 1,000 patients."""
    rows = [row for row in COVERAGE["rows"] if row["seeds"] != 2]
    assert {row["seeds"] for row in rows} == {3, 5, 10}
    assert {row["patients"] for row in rows} == {62, 250, 1000}
    assert {row["seed_sd"] for row in rows} == {0.0, 0.01, 0.02, 0.06}
    assert all(0.93 <= row["over_seeds"] <= 0.97 for row in rows)
    assert min(row["patients only"] for row in rows) < 0.3
    assert min(row["two-way bootstrap"] for row in rows) < 0.8


def test_two_seeds_have_an_interval_that_is_rather_too_wide_than_too_narrow():
    rows = [row for row in COVERAGE["rows"] if row["seeds"] == 2]
    assert len(rows) == 24
    assert min(row["over_seeds"] for row in rows) > 0.925
    assert min(row["overlap estimated"] for row in rows) < 0.9


@pytest.mark.parametrize(("between", "words"), [(0.02, "Where Q is larger than O"), (0.001, "Where Q is at most O")])
def test_the_weights_of_the_two_quantiles_are_those_of_the_page(between, words):
    """Q for Student's t and P - O for the normal one, or the normal one alone. Five seeds."""
    patients, overlap = 0.01, 0.002
    weights = (between, patients - overlap) if between > overlap else (0.0, patients)
    quantile = (weights[0] * T_4 + weights[1] * NORMAL) / sum(weights)
    half = half_width(np.asarray(patients), [Between(5, np.asarray(between), np.asarray(overlap))])
    assert half == pytest.approx(quantile * sum(weights) ** 0.5)
    page = " ".join((ROOT / "docs" / "protocols.md").read_text(encoding="utf-8").split())
    assert words in page
    assert "has the weight Q, and the normal one has the weight P - O" in page


def test_the_tables_of_coverage_are_the_committed_ones():
    page = (ROOT / "docs" / "protocols.md").read_text(encoding="utf-8")
    intervals = [name for name in COVERAGE["rows"][0] if name not in ("seeds", "patients", "seed_sd", "both_sd")]
    several = [(name, False) for name in intervals if name != "overlap estimated"]  # it is `over_seeds` there
    for name, of_two in (*several, ("over_seeds", True), ("overlap estimated", True)):
        cells = []
        for sd in (0.0, 0.01, 0.02, 0.06):
            rows = [row for row in COVERAGE["rows"] if (row["seeds"] == 2) == of_two]
            found = [row[name] for row in rows if row["seed_sd"] == sd]
            cells.append(f"{min(found):.3f} – {max(found):.3f}")
        assert f"| {' | '.join(cells)} |" in page


def test_the_spread_over_patients_and_the_values_give_the_interval_again():
    """So that two numbers are kept in place of thousands of draws; a draw that is not defined is left out of both."""
    found = seeds((0.1, 0.2, 0.6), 0.1, draws=50)
    found[0].draws[3] = np.nan
    mean = mean_over_seeds(found)
    assert interval_from_spreads([0.1, 0.2, 0.6], *patients_spread(found)) == pytest.approx((mean.low, mean.high))
    one = seeds((0.5,), 0.1, draws=50)
    assert patients_spread(one) == (pytest.approx(np.std(one[0].draws)), 0.0)
