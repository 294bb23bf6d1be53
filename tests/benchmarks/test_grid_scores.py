"""The scores of grids as one table."""

import csv

import attrs
import grid_scores
from grid.cells import GridCell, Pretraining
from grid_folders import write_evaluation, write_run

from clocs_core.contracts.scores import Score

RUN = Pretraining(method="cmsc", dataset="ptbxl", options=("epochs=2",))


def write(out, seed, method="cmsc", error=""):
    about = {
        "dataset": "cardiology",
        "label_fraction": 0.5,
        "metric": "auroc",
        "level": "frame",
        "low": 0.0,
        "high": 1.0,
    }
    scores = (
        Score(protocol="finetune", init=method, value=0.7 + seed / 100, **about),
        Score(protocol="finetune", init="random", value=0.6 + seed / 100, **about),
        Score(protocol="prior", init="random", value=0.5, **about),
    )
    cell = GridCell(
        pretraining=attrs.evolve(RUN, method=method, seed=seed), downstream="cardiology", protocol="finetune"
    )
    write_evaluation(out, [cell], scores, commit="abc", error=error)


def test_each_encoder_has_a_line_a_score_and_the_untrained_one_is_told_once(tmp_path, capsys):
    """Evaluations of two methods score the same untrained encoder; what failed, and pre-trainings, have no score."""
    write(tmp_path, 0)
    write(tmp_path, 1)
    write(tmp_path, 0, "simclr")
    write(tmp_path, 2, error="Error: broke")
    write_run(tmp_path, RUN)
    assert grid_scores.main([str(tmp_path), "--out", str(tmp_path / "scores.csv")]) == 0
    with (tmp_path / "scores.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    told = sorted((row["method"], row["pretraining"], row["seed"], row["score"]) for row in rows)
    assert told == [
        ("cmsc epochs=2", "ptbxl", "0", "0.700000"),
        ("cmsc epochs=2", "ptbxl", "1", "0.710000"),
        ("random", "", "0", "0.600000"),
        ("random", "", "1", "0.610000"),
        ("simclr epochs=2", "ptbxl", "0", "0.700000"),
    ]
    assert "5 scores" in capsys.readouterr().out
