"""Many runs on one page: sides, scores, paired differences with their intervals, and settings that differ."""

from __future__ import annotations

import attrs

from clocs_core.contracts.scores import Comparison
from clocs_core.report.compared import Compared, ComparedScore, Compares, Refusal, SettingRow
from clocs_core.report.compared_page import render_compared

EVIL = "<script>alert(1)</script>"
SIDE = Compares(
    letter="A",
    folders=("runs/a",),
    kind="run",
    weights="cmsc",
    protocol="linear",
    dataset="d",
    task="t",
    part="test",
    seeds=(0,),
)
SCORE = ComparedScore(
    letter="A", weights="own", label_fraction=1.0, metric="auroc", level="record", values=(0.8,), low=0.7, high=0.9
)
DIFFERENCE = Comparison("A (cmsc)", "B (byol)", "linear", "d", 1.0, "auroc", "record", 0.05, 0.01, 0.09, p=0.0123)


def compared(**changes):
    sides = (SIDE, attrs.evolve(SIDE, letter="B", weights="byol", folders=("runs/b",)))
    found = Compared(
        compared=sides,
        settings=(SettingRow(name="run.method", values=(("cmsc",), ("byol",))),),
        scores=(SCORE, attrs.evolve(SCORE, letter="B", values=(0.75,))),
        differences=(DIFFERENCE,),
        refused=(Refusal(a="A", b="C", level="frame", reason="other patients"),),
        notes=(EVIL,),
    )
    return attrs.evolve(found, **changes)


def test_everything_that_the_terminal_shows_is_on_the_page():
    page = render_compared(compared())
    for text in (
        "Comparison of A (cmsc), B (byol)",
        "0.800 [0.700, 0.900]",
        "A (cmsc) is above B (byol) by 0.050 [0.010, 0.090]",
        '<td class="above-text">excludes 0</td>',
        '<td class="">0.012</td>',
        "Permutation test over patients: p = 0.012.",
        "A and C are not paired at the frame level: other patients.",
        '<td class="">run.method</td>',
        "runs/b",
    ):
        assert text in page, text
    assert EVIL not in page


def test_equal_settings_and_no_difference_are_said():
    page = render_compared(compared(settings=(), differences=(), scores=()))
    assert "Their settings are all the same." in page
    assert 'id="scores"' not in page
