"""The whole story, at full length: the demonstration keeps its promise, and real recordings go all the way."""

import json
import re

import pytest
from doc_commands import ROOT

from clocs_core.cli import main

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200), pytest.mark.usefixtures("no_pictures")]


def report_of(tmp_path, *arguments):
    out = tmp_path / "run"
    assert main(["run", *arguments, "--out", str(out), "--data-root", str(tmp_path / "data")]) == 0
    return json.loads((out / "report.json").read_text())


def test_on_the_demonstration_the_method_beats_the_random_encoder_and_the_interval_excludes_zero(tmp_path):
    """What `make demo` shows a newcomer, for five seeds, on frames and on recordings."""
    out = tmp_path / "runs"
    (demo,) = re.findall(r"clocs (run .*--dataset demo.*)", (ROOT / "Makefile").read_text())
    assert main([*demo.split(), "--data-root", str(tmp_path / "data"), "--seeds", "5", "--out", str(out)]) == 0
    reports = [json.loads(file.read_text()) for file in sorted(out.glob("*/report.json"))]
    assert len(reports) == 5
    for report in reports:
        gains = [one for one in report["comparisons"] if one["metric"] == "auroc"]
        assert [(one["a"], one["b"]) for one in gains] == [("cmsc", "random")] * 2
        assert {one["level"]: one["low"] > 0 for one in gains} == {"frame": True, "record": True}
        prior = [one["value"] for one in report["scores"] if (one["protocol"], one["metric"]) == ("prior", "auroc")]
        assert prior == [0.5, 0.5]


@pytest.mark.parametrize(
    ("dataset", "place", "more"),
    [
        ("physionet2020", "physionet2020", ()),
        ("physionet2017", "physionet2017/sample2017", ()),
        ("cardiology", "cardiology", ("--batch-size", "256")),
        ("chapman", "chapman", ()),
        ("chapman", "cinc2021_snomed", ()),
        ("ptbxl", "ptbxl", ("--epochs", "1", "--leads", "II", "--task", "superclass")),
    ],
)
def test_real_recordings_go_from_the_download_to_the_report(tmp_path, test_data, dataset, place, more):
    """Every reader, its framing, its labels and its split, in one short run each."""
    report = report_of(
        tmp_path, "--plugin", "cmsc", "--dataset", dataset, "--root", str(test_data / place),
        "--epochs", "2", "-o", "resamples=20", *more,
    )  # fmt: skip
    assert report["epochs_run"] >= 1
    assert report["split"]["shared_patients"] == 0
    assert report["scores"] or report["notes"]
    assert all(0 <= score["value"] <= 1 for score in report["scores"] if score["value"] is not None)
