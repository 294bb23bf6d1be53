"""The scores of grids as one table."""

import csv
import io

import attrs
import pytest
from grid_folders import write_evaluation, write_run

from clocs_core.contracts.grids import Condition
from clocs_core.contracts.scores import Score
from clocs_core.errors import RunFolderError
from clocs_core.grids.cells import GridCell, Pretraining
from clocs_core.grids.definition import Grid, save_grid
from clocs_core.grids.export import as_csv, score_rows
from clocs_core.grids.presets import Preset

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


def test_each_encoder_has_a_line_a_score_and_the_untrained_one_is_told_once(tmp_path):
    """Evaluations of two methods score the same untrained encoder; what failed, and pre-trainings, have no score."""
    write(tmp_path, 0)
    write(tmp_path, 1)
    write(tmp_path, 0, "simclr")
    write(tmp_path, 2, error="Error: broke")
    write_run(tmp_path, RUN)
    named = Condition(method="cmsc", pretraining="ptbxl", downstream="cardiology", protocol="finetune", name="short")
    preset = Preset(name="p", title="P", conditions=(attrs.evolve(named, options=RUN.options),))
    save_grid(Grid(presets=(preset,)), tmp_path)
    rows = list(csv.DictReader(io.StringIO(as_csv(score_rows([tmp_path])))))
    assert [row["name"] for row in rows if row["seed"] == "0"] == ["short", "random", ""]  # simclr is in no grid
    told = sorted((row["method"], row["pretraining"], row["seed"], row["score"]) for row in rows)
    assert told == [
        ("cmsc epochs=2", "ptbxl", "0", "0.700000"),
        ("cmsc epochs=2", "ptbxl", "1", "0.710000"),
        ("random", "", "0", "0.600000"),
        ("random", "", "1", "0.610000"),
        ("simclr epochs=2", "ptbxl", "0", "0.700000"),
    ]


def test_a_report_that_cannot_be_read_is_not_left_out_in_silence(tmp_path):
    """An export is all that is kept of a grid elsewhere."""
    write(tmp_path, 0)
    (report,) = tmp_path.glob("evaluated/*/*/report.json")
    report.write_text(report.read_text()[:100])
    with pytest.raises(RunFolderError, match=r"report\.json cannot be read"):
        score_rows([tmp_path])
