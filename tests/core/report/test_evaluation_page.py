"""The page of an evaluation: the same facts as its report.json, escaped."""

from __future__ import annotations

from clocs_core.artifacts.curves import CurvePoint
from clocs_core.artifacts.reports import CellSummary, Curve, EncoderSummary, EvaluationReport, SplitSummary
from clocs_core.contracts.records import DropReport
from clocs_core.contracts.scores import Comparison, Score
from clocs_core.report.evaluation_page import render_evaluation

EVIL = "<script>alert(1)</script>"
WHICH = {"protocol": "finetune", "init": "cmsc", "label_fraction": 1.0}
SCORE = Score("finetune", "cmsc", "d", 1.0, "auroc", "record", 0.8, 0.7, 0.9)


def report(**changes):
    parts = ({"train": 6, "validation": 2, "test": 2},) * 3
    held = {
        "protocol": "finetune",
        "how": "All weights are trained.",
        "init": "cmsc",
        "encoder": EncoderSummary(name="cnn", dataset="demo", inputs=1, frame_samples=8, embedding_dim=8, sha256=""),
        "dataset": "d",
        "task": "t",
        "part": "test",
        "seed": 0,
        "settings": {"data": {"root": EVIL, "channels": None}},
        "split": SplitSummary("c0ffee", "60/20/20", 7, *parts, 0, 0),
        "environment": {"python": "3.11"},
        "scores": (SCORE,),
        "comparisons": (
            Comparison("cmsc", "random", "finetune", "d", 1.0, "auroc", "record", -0.2, -0.3, -0.1, p=0.0123),
        ),
        "cells": (CellSummary(**WHICH, epochs=3, frames=1200, seconds=65.0),),
        "curves": (Curve(**WHICH, metric="auroc", values=(CurvePoint(1, 0.5, 0.6, 0.7),)),),
        "drops": DropReport({"flat": 2}, {"flat": (EVIL,)}),
        "form": "files",
        "seconds": {"train": 60.0},
        "command": "clocs evaluate runs/a --protocol finetune",
        "date": "2026-11-16 07:00 UTC",
    }
    return EvaluationReport(**{**held, **changes})


def test_every_fact_of_the_report_is_on_the_page():
    page = render_evaluation(report())
    for text in (
        "cmsc is below random by 0.200",
        "All weights are trained.",
        ">0.012<",
        "0.800",
        "[0.700, 0.900]",
        "1,200",
        "1 min 05 s",
        "validation auroc",
        "Command: clocs evaluate runs/a --protocol finetune",
        "2026-11-16 07:00 UTC",
        "# channels is not set",
        "hash c0ffee",
        "flat",
    ):
        assert text in page, text
    assert EVIL not in page
    assert 'class="verdict below"' in page


def test_an_evaluation_without_scores_says_so():
    page = render_evaluation(report(scores=(), comparisons=(), cells=(), curves=(), notes=("nobody is labelled",)))
    assert "There is no score; the notes say why." in page
    assert "nobody is labelled" in page
