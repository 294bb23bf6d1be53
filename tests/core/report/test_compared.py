"""Rows of a comparison, for a terminal."""

from __future__ import annotations

import statistics

import pytest

from clocs_core.report.compared import Compared, ComparedScore, Compares, SettingRow, score_table, setting_rows


def side(letter):
    return Compares(
        letter=letter,
        folders=("f",),
        kind="run",
        weights="m",
        protocol="linear",
        dataset="d",
        task="t",
        part="test",
        seeds=(0,),
    )


def score(letter, *values, **other):
    fields = {"weights": "own", "label_fraction": 0.5, "metric": "auroc", "level": "frame"}
    return ComparedScore(letter=letter, values=values, **fields | other)


def test_one_seed_has_an_interval_and_several_have_a_spread():
    assert score("A", 0.8, low=0.7, high=0.9).shown() == "0.800 [0.700, 0.900]"
    several = score("A", 0.5, 0.7, 0.9)
    assert several.sd == pytest.approx(statistics.stdev((0.5, 0.7, 0.9)))
    assert several.shown() == "0.700 ± 0.200"


def test_a_side_without_a_score_has_a_dash():
    scores = (score("A", 0.8, low=0.7, high=0.9), score("B", 0.6, low=0.5, high=0.7, metric="f1"))
    found = Compared(compared=(side("A"), side("B")), settings=(), scores=scores, differences=(), refused=(), notes=())
    headings, rows = score_table(found)
    assert headings[-2:] == ("A", "B")
    assert rows == (
        ("0.5", "auroc", "frame", "own", "0.800 [0.700, 0.900]", "–"),
        ("0.5", "f1", "frame", "own", "–", "0.600 [0.500, 0.700]"),
    )


def test_values_of_a_setting_are_listed_side_by_side():
    rows = setting_rows([SettingRow(name="train.epochs", values=((3,), (5, 6), ()))])
    assert rows == (("train.epochs", "3", "5 | 6", "–"),)
