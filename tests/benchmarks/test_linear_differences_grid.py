"""The scores of some runs by both solvers, as a table with a line for each."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest
from linear_differences_grid import as_csv, main

from clocs_core.cli import main as clocs

QUICK = ["--device", "cpu", "--workers", "1", "--epochs", "1", "-o", "resamples=2", "-o", "permutations=0"]


def test_scores_that_runs_share_are_listed_once() -> None:
    rows = [
        {"run": "", "method": "random", "score": "0.5"},
        {"run": "a", "method": "cmsc", "score": "0.7"},
        {"run": "", "method": "random", "score": "0.5"},
    ]
    listed = as_csv(rows).splitlines()
    assert len(listed) == 3
    assert [line.split(",")[1] for line in listed] == ["method", "random", "cmsc"]


@pytest.mark.slow
def test_every_score_of_a_run_and_of_the_untrained_encoder_is_listed_by_both_solvers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_pictures: None
) -> None:
    run, data, out = tmp_path / "run", ["--data-root", str(tmp_path / "data")], tmp_path / "list.csv"
    wanted = ["run", "--plugin", "cmsc", "--dataset", "demo", "-o", "patients=80", "--label-fraction", "0.5,1"]
    assert clocs([*wanted, *QUICK, *data, "--out", str(run)]) == 0
    monkeypatch.setattr(sys, "argv", ["", str(run), "--label-fractions", "0.5,1", "--out", str(out)])
    assert main() == 0
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} == {"cmsc", "random"}
    assert len(rows) == 2 * 2 * 2 * 4  # encoders, label fractions, levels, metrics
    reported = json.loads((run / "report.json").read_text(encoding="utf-8"))["scores"]
    for row in rows:
        (score,) = [
            one["value"]
            for one in reported
            if (one["init"], one["level"], one["metric"]) == (row["method"], row["level"], row["metric"])
            and one["protocol"] == "linear"
            and one["label_fraction"] == float(row["label_fraction"])
        ]
        assert float(row["score"]) == pytest.approx(score, abs=1e-6)
        assert float(row["from_default"]) == pytest.approx(float(row["score"]) - float(row["default"]), abs=2e-6)
        assert abs(float(row["from_converged"])) < 1e-5
        assert (row["leads"], row["seed"]) == ("4", "0")
        assert row["run"] == {"cmsc": "run", "random": ""}[row["method"]]
