"""A table on a console: a line for each classifier, and all metrics beside each other."""

from __future__ import annotations

from clocs_core.contracts.scores import Score
from clocs_core.report.tables import wide_score_rows


def score(init, metric, value, level="frame"):
    return Score(
        protocol="linear", init=init, dataset="demo", label_fraction=0.5, metric=metric, level=level,
        value=value, low=value - 0.1, high=value + 0.1,
    )  # fmt: skip


def test_metrics_are_columns_and_the_first_has_its_interval():
    """Four metrics in rows of their own are twenty-four lines, and nobody finds the one that counts."""
    scores = [score("cmsc", "auroc", 0.8), score("random", "auroc", 0.7), score("cmsc", "f1", 0.5)]
    headings, rows = wide_score_rows(scores)
    assert headings == ("protocol", "weights", "labels", "level", "auroc", "95 % interval", "f1")
    assert rows == (
        ("linear", "cmsc", "0.5", "frame", "0.800", "[0.700, 0.900]", "0.500"),
        ("linear", "random", "0.5", "frame", "0.700", "[0.600, 0.800]", ""),
    )


def test_levels_have_lines_of_their_own():
    _, rows = wide_score_rows([score("cmsc", "auroc", 0.8), score("cmsc", "auroc", 0.9, level="record")])
    assert [row[3:5] for row in rows] == [("frame", "0.800"), ("record", "0.900")]
