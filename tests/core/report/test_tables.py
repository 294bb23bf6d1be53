"""Rows and sentences say what the numbers say, no more."""

import math

import attrs
import pytest

from clocs_core.contracts.scores import Comparison, Score
from clocs_core.report.tables import (
    COMPARISON_HEADINGS,
    SCORE_HEADINGS,
    comparison_rows,
    comparison_sentence,
    outcome,
    score_rows,
    show_number,
    verdict,
    wide_score_rows,
)


def score(protocol="linear", init="m", value=0.8) -> Score:
    return Score(protocol, init, "d", 0.25, "auroc", "frame", value, value - 0.05, value + 0.05)


def compared(difference: float, low: float, high: float, fraction: float = 1.0, metric: str = "auroc") -> Comparison:
    return Comparison("m", "random", "linear", "d", fraction, metric, "frame", difference, low, high)


def test_a_score_is_a_row_with_its_interval():
    """A number without its interval invites too much trust."""
    assert score_rows([score()]) == (("linear", "m", "0.25", "auroc", "frame", "0.800", "[0.750, 0.850]"),)
    assert len(score_rows([score()])[0]) == len(SCORE_HEADINGS)


def test_the_class_prior_is_not_called_random():
    """Both controls carry the init `random`; a reader must not take the prior for an untrained encoder."""
    assert [row[1] for row in score_rows([score("prior", "random"), score("linear", "random")])] == [
        "class prior",
        "random",
    ]


def test_a_comparison_is_a_row_with_its_reading():
    (row,) = comparison_rows([compared(0.12, 0.08, 0.16)])
    assert row == ("m", "random", "linear", "1", "auroc", "frame", "0.120", "[0.080, 0.160]", "excludes 0", "–")
    assert len(row) == len(COMPARISON_HEADINGS)
    assert comparison_rows([compared(0.12, -0.08, 0.16)])[0][-2] == "contains 0"
    assert comparison_rows([attrs.evolve(compared(0.12, -0.08, 0.16), p=0.0123)])[0][-1] == "0.012"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.12345, "0.123"),
        (0.0, "0.000"),
        (0.00031, "0.0003"),
        (-0.00004, "-4e-05"),
        (1.0, "1.000"),
        (math.nan, "n/a"),
    ],
)
def test_a_small_number_does_not_become_nothing(value, text):
    """An interval [0.000, 0.000] that "excludes 0" would be nonsense on paper."""
    assert show_number(value) == text


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (0.01, 0.2, "above"),
        (-0.2, -0.01, "below"),
        (-0.1, 0.1, "undecided"),
        (0.0, 0.2, "undecided"),
        (-0.2, 0.0, "undecided"),
        (math.nan, 0.2, "undefined"),
    ],
)
def test_an_interval_that_touches_zero_contains_it(low, high, found):
    assert outcome(compared(0.1, low, high)) == found


def test_the_sentence_says_above_and_that_the_interval_excludes_zero():
    assert comparison_sentence(compared(0.12, 0.08, 0.16)) == (
        "m is above random by 0.120 [0.080, 0.160] (linear, auroc, frame level, F = 1.0, one seed): the interval "
        "over patients excludes 0."
    )


def test_the_sentence_says_below_by_a_positive_amount():
    """ "Below by -0.12" would say the opposite; the interval turns round with the number."""
    assert comparison_sentence(compared(-0.12, -0.2, -0.08)) == (
        "m is below random by 0.120 [0.080, 0.200] (linear, auroc, frame level, F = 1.0, one seed): the interval "
        "over patients excludes 0."
    )


def test_the_sentence_does_not_claim_what_the_interval_does_not_show():
    """A positive difference whose interval contains 0 is not "above"."""
    sentence = comparison_sentence(compared(0.02, -0.03, 0.07, fraction=0.1))
    assert sentence == (
        "m and random differ by 0.020 [-0.030, 0.070] (linear, auroc, frame level, F = 0.1, one seed): "
        "the interval over patients contains 0, so this test cannot tell them apart."
    )


@pytest.mark.parametrize(("low", "high"), [(0.08, 0.16), (-0.03, 0.16), (-0.2, -0.1)])
def test_p_stands_behind_the_sentence_and_changes_none_of_its_words(low, high):
    """The interval is the judge: a small p does not make "above" of an interval that contains 0."""
    without = compared(0.12, low, high)
    for p, shown in ((0.001, "0.001"), (0.0004, "0.0004"), (0.9, "0.900")):
        tested = attrs.evolve(without, p=p)
        said = f"{comparison_sentence(without)} Permutation test over patients: p = {shown}."
        assert comparison_sentence(tested) == said
        assert outcome(tested) == outcome(without)
        assert verdict([score()], [tested], []).outcome == verdict([score()], [without], []).outcome


def test_a_difference_that_is_not_defined_is_said_to_be_so():
    assert "cannot be compared" in comparison_sentence(compared(math.nan, math.nan, math.nan))


def test_the_verdict_takes_the_first_comparison_with_the_most_labels():
    """Which one is read first must not depend on which one looks best."""
    few, first = compared(0.5, 0.4, 0.6, fraction=0.1), compared(0.02, -0.03, 0.07)
    best = compared(0.3, 0.2, 0.4, metric="accuracy")
    found = verdict([score()], [few, first, best], [])
    assert found.outcome == "undecided"
    assert found.headline == comparison_sentence(first)
    assert found.rest == "Of all 3 intervals: 2 above 0, 1 across 0."


def test_a_single_comparison_needs_no_count():
    assert verdict([score()], [compared(-0.1, -0.2, -0.05)], []).rest == ""


def test_without_a_score_the_verdict_says_so():
    """The reason is in the notes; where there is none, that is said too."""
    assert verdict([], [], ["No labels."]).headline == "There is no score; the notes say why."
    assert "no note that says why" in verdict([], [], []).headline


def test_scores_without_a_control_prove_nothing():
    assert "nothing here says whether pre-training helped" in verdict([score()], [], []).headline


# ---------------------------------------------------------------------------------------------------- on a console


def of_metric(init, metric, value, level="frame"):
    return Score(
        protocol="linear", init=init, dataset="demo", label_fraction=0.5, metric=metric, level=level,
        value=value, low=value - 0.1, high=value + 0.1,
    )  # fmt: skip


def test_metrics_are_columns_and_the_first_has_its_interval():
    """Four metrics in rows of their own are twenty-four lines, and nobody finds the one that counts."""
    scores = [of_metric("cmsc", "auroc", 0.8), of_metric("random", "auroc", 0.7), of_metric("cmsc", "f1", 0.5)]
    headings, rows = wide_score_rows(scores)
    assert headings == ("protocol", "weights", "labels", "level", "auroc", "95 % interval", "f1")
    assert rows == (
        ("linear", "cmsc", "0.5", "frame", "0.800", "[0.700, 0.900]", "0.500"),
        ("linear", "random", "0.5", "frame", "0.700", "[0.600, 0.800]", ""),
    )


def test_levels_have_lines_of_their_own():
    _, rows = wide_score_rows([of_metric("cmsc", "auroc", 0.8), of_metric("cmsc", "auroc", 0.9, level="record")])
    assert [row[3:5] for row in rows] == [("frame", "0.800"), ("record", "0.900")]


def test_the_headline_is_of_recordings_where_recordings_are_labelled():
    """Scores of frames come first in the list; a task of frames has no others."""
    frames = Comparison("m", "random", "linear", "d", 1.0, "auroc", "frame", 0.2, 0.1, 0.3)
    recordings = attrs.evolve(frames, level="record", difference=0.4, low=0.3, high=0.5)
    score = Score("linear", "m", "d", 1.0, "auroc", "frame", 0.8, 0.7, 0.9)
    few = attrs.evolve(recordings, label_fraction=0.25)
    assert "record level" in verdict([score], [few, frames, recordings], ()).headline
    assert "by 0.400" in verdict([score], [few, frames, recordings], ()).headline
    assert "frame level" in verdict([score], [frames], ()).headline


# ------------------------------------------------------------------------------------------------- lower is better


def test_of_an_error_the_smaller_one_is_better():
    """A method whose error is lower must not be called worse, in a sentence or in a colour."""
    lower = attrs.evolve(compared(-1.5, -2.0, -1.0, metric="mae"), better="lower")
    assert outcome(lower) == "above"
    assert comparison_sentence(lower) == (
        "m is better than random by 1.500 [1.000, 2.000] (linear, mae (lower is better), frame level, F = 1.0, one "
        "seed): the interval over patients excludes 0."
    )
    higher = attrs.evolve(lower, difference=1.5, low=1.0, high=2.0)
    assert outcome(higher) == "below"
    assert "m is worse than random by 1.500 [1.000, 2.000]" in comparison_sentence(higher)
    found = verdict([score()], [lower, higher, compared(0.3, 0.2, 0.4)], [])
    assert found.outcome == "above"
    assert found.rest == "Of all 3 intervals: 2 for the better, 1 for the worse."
