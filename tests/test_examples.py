"""The example plugins as strangers meet them: their wheels and that of clocs, in an environment without a checkout."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh_environment import installed, run

ROOT = Path(__file__).parents[1]
EXAMPLES = {path.parent.name: path.parent for path in sorted((ROOT / "docs" / "examples").glob("*/pyproject.toml"))}
SMALL = ("--device", "cpu", "--workers", "1", "-o", "resamples=50", "--data-root", "data")


def test_every_example_is_short_and_is_told_of() -> None:
    """The API is too narrow where a plugin needs more than 150 lines."""
    page = (ROOT / "docs" / "plugin-examples.md").read_text(encoding="utf-8")
    assert set(EXAMPLES) == {"sleep", "forecast", "recall", "vote", "diary", "bedside"}
    for name, folder in EXAMPLES.items():
        files = sorted(folder.glob(f"clocs_{name}/*.py"))
        assert sum(file.read_text(encoding="utf-8").count("\n") for file in files) <= 150, name
        assert all(file.relative_to(ROOT / "docs").as_posix() in page for file in files)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with clocs and all examples, each built by its own build system."""
    wheels = tmp_path_factory.mktemp("wheels")
    for source in (ROOT, *EXAMPLES.values()):
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", wheels, cwd=source)
    return installed(tmp_path_factory.mktemp("home"), sorted(wheels.glob("*.whl")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def clocs(python: Path, folder: Path, *words: str | Path) -> str:
    return run(python, "-m", "clocs_core", *words, cwd=folder)


def report_of(run_folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run_folder / "report.json").read_text(encoding="utf-8"))
    return found


def inits(scores: list[dict[str, Any]]) -> set[str]:
    """The weights that are scored, each score with an interval."""
    assert all(one["value"] is None or one["low"] <= one["high"] for one in scores)
    return {one["init"] for one in scores if one["protocol"] != "prior"}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_check_passes(python: Path, folder: Path, name: str) -> None:
    said = clocs(python, folder, "plugins", "test", EXAMPLES[name])
    assert ", 0 failed, 0 skipped." in said


@pytest.mark.slow
@pytest.mark.parametrize(("task", "metric"), [("stage", "auroc"), ("arousal", "auroc"), ("age", "mae")])
def test_sleep_is_scored_by_epoch_and_by_age(python: Path, folder: Path, task: str, metric: str) -> None:
    """Stages and arousals are labels of epochs; the age is a number, and its error is small where it is lower."""
    words = ("--plugin", "cmsc", "--dataset", "sleep", "--task", task, "--epochs", "2", "--out", task)
    clocs(python, folder, "run", *words, *SMALL)
    report = report_of(folder / task)
    assert metric in {one["metric"] for one in report["scores"]}
    assert inits(report["scores"]) == {"cmsc", "random"}
    level = {"record"} if task == "age" else {"frame"}
    assert {one["level"] for one in report["scores"]} >= level
    if task == "arousal":  # 6 bursts of 12 s in 12 epochs: neither all nor none of the epochs has one
        labels = np.load(folder / task / "predictions.npz")["label"]
        assert labels.shape[1] == 2
        assert 0.2 < labels.mean() < 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("method", "few"), [("forecast", {}), ("recall", {"layers": 2})])
def test_a_strangers_method_resumes_bit_for_bit(python: Path, folder: Path, method: str, few: dict[str, int]) -> None:
    """Predictive methods with a sequence, a teacher and random numbers of their own. few: options of the encoder."""
    small = [word for name, value in few.items() for word in ("-o", f"{name}={value}")]
    words = ("run", "--plugin", method, "--dataset", "demo", "-o", "patients=16", "--seed", "3", *SMALL, *small)
    clocs(python, folder, *words, "--epochs", "3", "--out", f"{method}-whole")
    report = report_of(folder / f"{method}-whole")
    assert inits(report["scores"]) == {method, "random"}
    program = (
        "import clocs_core as clocs\n"
        "class Stop(clocs.Listener):\n"
        "    def epoch_done(self, run, epoch):\n"
        "        if epoch.epoch == 1: raise KeyboardInterrupt\n"
        f"data = clocs.dataset('demo', data_root='data', patients=16)\n"
        f"asked = dict(epochs=3, seed=3, device='cpu', resamples=50, workers=1, progress=False, out='{method}-part')\n"
        f"asked |= {few}\n"
        "try:\n"
        f"    clocs.pretrain('{method}', data, listeners=[Stop()], **asked)\n"
        "except KeyboardInterrupt:\n"
        f"    clocs.pretrain('{method}', data, **asked)\n"
    )
    run(python, "-c", program, cwd=folder)
    whole, part = (folder / f"{method}-{which}" / "metrics.jsonl" for which in ("whole", "part"))
    losses = [[json.loads(line)["train_loss"] for line in file.read_text().splitlines()] for file in (whole, part)]
    assert losses[0] == losses[1]


@pytest.mark.slow
def test_a_strangers_protocol_has_controls_and_intervals_and_a_strangers_tracker_its_options(
    python: Path, folder: Path
) -> None:
    words = ("run", "--plugin", "cmsc", "--dataset", "demo", "-o", "patients=24", "--epochs", "4", *SMALL)
    clocs(python, folder, *words, "-o", "diary.file=diary.jsonl", "-o", "diary.every=2", "--out", "told")
    told = [json.loads(line) for line in (folder / "diary.jsonl").read_text().splitlines()]
    assert [one.get("epoch") for one in told if one["event"] == "epoch"] == [2, 4]
    assert [one["event"] for one in told if one["event"] != "epoch"] == ["started", "done"]
    given = ("--protocol", "vote", "-o", "ks=1,3", "-o", "resamples=50", "--device", "cpu", "--out", "voted")
    clocs(python, folder, "evaluate", "told", *given)
    report = report_of(folder / "voted")
    votes = [one for one in report["scores"] if one["protocol"] == "vote"]
    assert inits(votes) == {"cmsc", "random"}
    assert {one["chosen"]["k"] for one in report["cells"] if one["protocol"] == "vote"} <= {"1", "3"}
    assert {(one["a"], one["b"]) for one in report["comparisons"]} == {("cmsc", "random")}


@pytest.mark.slow
def test_two_modalities_have_an_encoder_each_and_both_are_scored_and_used(python: Path, folder: Path) -> None:
    words = ("--plugin", "ecg-and-pulse", "--dataset", "bedside", "--epochs", "2", "--out", "both")
    said = clocs(python, folder, "run", *words, *SMALL)
    assert "Encoder pulse: resnet1d on PLETH" in said
    report = report_of(folder / "both")
    (pulse,) = report["other_encoders"]
    for scores in (report["scores"], pulse["scores"]):
        assert inits(scores) == {"ecg-and-pulse", "random"}
    for file, channels in (("encoder.safetensors", {"all"}), ("encoder-pulse.safetensors", {"PLETH"})):
        clocs(python, folder, "embed", f"both/{file}", "--device", "cpu", "--out", "rows.npz")
        assert set(np.load(folder / "rows.npz")["channel"]) == channels
