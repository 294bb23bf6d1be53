"""`clocs tensorboard`: what TensorBoard reads of evaluations that are over."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata

from clocs_core.cli import main

SCORE = {"dataset": "d", "metric": "auroc", "level": "frame", "low": 0.5, "high": None}
POINT = {"train_loss": 2.0, "validation_loss": 3.0, "validation_score": 0.5}


def report_of(init: str = "near", **changes: object) -> dict[str, Any]:
    fine = {"protocol": "finetune", "label_fraction": 0.5}
    return {
        "schema": 1,
        "protocol": "finetune",
        "init": init,
        "dataset": "d",
        "seed": 2,
        "seconds": {"train": 60.0},
        "encoder": {"dataset": "before"},
        "settings": {"finetune": {"epochs": 2}, "evaluation": {"init": init, "encoder_sha256": "0"}},
        "scores": [
            {**SCORE, **fine, "init": init, "value": 0.75},
            {**SCORE, **fine, "init": "random", "value": None},
            {**SCORE, "protocol": "prior", "label_fraction": 1.0, "init": "random", "value": 0.5},
        ],
        "comparisons": [{**SCORE, **fine, "a": init, "b": "random", "difference": 0.25}],
        "curves": [
            {**fine, "init": init, "metric": "auroc", "values": [{"epoch": 1, **POINT}, {"epoch": 2, **POINT}]},
            {**fine, "init": "random", "metric": "auroc", "values": [{"epoch": 1, **POINT, "validation_score": None}]},
        ],
    } | changes


def write_report(folder: Path, report: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    return folder


def read(folder: Path) -> EventAccumulator:
    return EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0}).Reload()


def curve(folder: Path, tag: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in read(folder).Scalars(tag)]


def test_an_evaluation_has_the_scores_and_curves_of_its_report(tmp_path: Path) -> None:
    """Under the names that runs have, so that both can stand in one table."""
    folder = write_report(tmp_path / "run" / "evaluations" / "e", report_of())
    assert main(["tensorboard", str(tmp_path)]) == 0
    assert curve(folder, "final/finetune/auroc/frame/labels_0.5") == [(2, 0.75)]
    assert curve(folder, "gain_over_random/finetune/auroc/frame/labels_0.5") == [(2, 0.25)]
    assert curve(folder, "scores_of_controls/prior/auroc/frame") == [(2, 0.5)]
    ((_, missing),) = curve(folder, "scores_of_controls/finetune/random/auroc/frame/labels_0.5")
    assert math.isnan(missing)
    assert curve(folder, "finetune/validation_loss/labels_0.5") == [(1, 3.0), (2, 3.0)]
    assert curve(folder, "finetune_of_controls/random/train_loss/labels_0.5") == [(1, 2.0)]
    assert "finetune_of_controls/random/validation_score/labels_0.5" not in read(folder).Tags()["scalars"]


def test_an_evaluation_says_what_was_evaluated_and_how_long_it_took(tmp_path: Path) -> None:
    folder = write_report(tmp_path / "e", report_of())
    os.utime(folder / "report.json", (1000.0, 1000.0))
    assert main(["tensorboard", str(tmp_path)]) == 0
    found = read(folder)
    contents = {tag: found.SummaryMetadata(tag).plugin_data.content for tag in found.Tags()["tensors"]}
    start = metadata.parse_session_start_info_plugin_data(contents[metadata.SESSION_START_INFO_TAG])
    end = metadata.parse_session_end_info_plugin_data(contents[metadata.SESSION_END_INFO_TAG])
    assert (start.start_time_secs, end.end_time_secs) == (940.0, 1000.0)
    words = {name: value.string_value or value.number_value for name, value in start.hparams.items()}
    about = {"method": "near", "dataset": "d", "seed": "2", "stage": "finetune", "pretrained_on": "before"}
    assert words == about | {"finetune.epochs": 2}


def test_what_is_there_already_is_left_and_what_is_older_than_its_report_is_written_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command is repeated while a grid goes on; files that a server has open are not replaced for nothing."""
    folder = write_report(tmp_path / "a", report_of())
    write_report(tmp_path / "b", {"schema": 1, "method": "a run, which has its events already"})
    assert main(["tensorboard", str(tmp_path)]) == 0
    (file,) = folder.glob("*tfevents*")
    before = file.stat().st_mtime_ns
    assert main(["tensorboard", str(tmp_path)]) == 0
    assert file.stat().st_mtime_ns == before
    later = before / 1e9 + 10
    os.utime(folder / "report.json", (later, later))
    assert main(["tensorboard", str(tmp_path)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == [file.name, "report.json"]
    said = [line for line in capsys.readouterr().out.splitlines() if "finished" in line]
    ends = ["1 added, 0 were there.", "0 added, 1 were there.", "1 added, 0 were there."]
    assert said == [f"1 finished evaluations below {tmp_path}: {end}" for end in ends]


@pytest.mark.parametrize(
    ("report", "says"), [("[]", "schema 1"), ("{", "is no report: "), ('{"schema": 9}', "schema 1")]
)
def test_a_file_that_is_no_report_is_named(
    tmp_path: Path, report: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "report.json").write_text(report, encoding="utf-8")
    assert main(["tensorboard", str(tmp_path)]) == 2
    problem = capsys.readouterr().err
    assert str(tmp_path / "report.json") in problem
    assert says in problem


def test_a_folder_that_is_not_there_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tensorboard", str(tmp_path / "gone")]) == 2
    assert f"There is no folder {tmp_path / 'gone'};" in capsys.readouterr().err
