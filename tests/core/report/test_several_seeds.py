"""The scores of several seeds: rows of a console, and a page."""

from __future__ import annotations

import math

import attrs
import pytest

from clocs_core.artifacts.several_seeds import SeedsReport, SeedsScore
from clocs_core.contracts.scores import Comparison
from clocs_core.report.several_seeds import over_what, render_seeds, seeds_rows, wide_seeds_rows

SCORE = SeedsScore(
    protocol="linear",
    init="<cmsc>",
    label_fraction=0.5,
    metric="auroc",
    level="frame",
    values=(0.7, 0.8),
    mean=0.75,
    sd=0.0707,
    low=0.6,
    high=0.9,
)
PRIOR = attrs.evolve(SCORE, protocol="prior", init="random", values=(0.5, 0.5), mean=0.5, sd=0.0, low=0.5, high=0.5)
GAIN = Comparison("<cmsc>", "random", "linear", "tiny", 0.5, "auroc", "frame", 0.2, 0.1, 0.3, seeds=2)
REPORT = SeedsReport(
    method="<cmsc>",
    dataset="tiny",
    task="kind",
    seeds=(0, 1),
    best_epochs=(3, 9),
    settings={"run": {"method": "<cmsc>"}},
    scores=(SCORE, attrs.evolve(SCORE, metric="f1", mean=0.25), PRIOR),
    comparisons=(GAIN,),
    notes=("Seed 2 is missing here.",),
    seconds={"start": 3.0, "prepare": 0.25, "runs": 65.0, "summarise": 2.0},
)


def test_the_console_has_a_row_per_classifier_with_means_and_spreads() -> None:
    headings, rows = wide_seeds_rows(REPORT)
    assert headings == ("protocol", "weights", "labels", "level", "auroc", "95 % interval", "f1")
    assert rows == (
        ("linear", "<cmsc>", "0.5", "frame", "0.750 ± 0.071", "[0.600, 0.900]", "0.250 ± 0.071"),
        ("prior", "class prior", "0.5", "frame", "0.500 ± 0.000", "[0.500, 0.500]", ""),
    )


def test_the_page_has_a_row_per_score() -> None:
    assert seeds_rows(REPORT)[0] == ("<cmsc>", "0.750", "0.071", "[0.600, 0.900]", "auroc", "frame", "linear", "0.5")


@pytest.mark.parametrize(
    "words",
    [
        "is above random by 0.200 [0.100, 0.300]",
        "2 seeds): the interval over seeds and patients excludes 0.",
        '<td class="">seed1/report.html</td><td class="">9</td>',
        '<th scope="col">seed 1</th>',
        "Seed 2 is missing here.",
        "method = &#34;&lt;cmsc&gt;&#34;",
        "<dt>Time</dt><dd>1 min 10 s</dd>",
        '<td class="">start</td><td class="">3.0 s</td>',
        '<td class="">make the runs</td><td class="">1 min 05 s</td>',
        '<td class="">summarise</td><td class="">2.0 s</td>',
    ],
)
def test_the_page_says_what_was_found_and_where(words: str) -> None:
    page = render_seeds(REPORT)
    assert words in page
    assert "<cmsc>" not in page, "names come from files that are not trusted"


def test_one_seed_has_no_spread_and_its_interval_is_over_patients() -> None:
    alone = attrs.evolve(SCORE, values=(0.7,), mean=0.7, sd=math.nan)
    report = attrs.evolve(REPORT, seeds=(0,), best_epochs=(3,), scores=(alone,))
    assert wide_seeds_rows(report)[1][0][4] == "0.700"
    assert over_what(report) == "Intervals are over patients: one seed says nothing of another one."
    assert over_what(REPORT) == "Means of 2 seeds, with 95 % intervals over seeds and patients."


def test_the_page_of_an_older_summary_has_no_times() -> None:
    assert ">Time<" not in render_seeds(attrs.evolve(REPORT, seconds={}))


def test_runs_without_a_score_have_a_page() -> None:
    report = attrs.evolve(REPORT, scores=(), comparisons=(), notes=("There is no score: no labels.",))
    assert "There is no score; the notes say why." in render_seeds(report)
