"""Where the time of a step goes."""

import json

import pytest
import torch

from clocs_core.cli import main
from clocs_core.train.profiling import STEPS, StepProfiler


def test_the_shares_of_a_step_add_up_and_name_what_takes_most(tmp_path):
    seen = []
    with StepProfiler(tmp_path / "profile", torch.device("cpu"), lambda step, steps: seen.append(step)) as profiler:
        large = torch.randn(400, 400)
        for step in range(1, 20):
            large @ large
            profiler.tick(step, 19)
    assert seen == list(range(1, 20))
    assert sum(row.share for row in profiler.shares) == pytest.approx(1.0)
    assert profiler.shares[0].name == "aten::mm"
    (trace,) = (tmp_path / "profile").glob("*.pt.trace.json")
    steps = {event["name"] for event in json.loads(trace.read_text())["traceEvents"] if "ProfilerStep" in event["name"]}
    assert len(steps) == STEPS


@pytest.mark.slow
def test_a_run_can_be_profiled_and_ends_as_one_that_was_not(tmp_path, capsys):
    """Looking must not change what is seen: the same weights come out."""
    small = ("--plugin", "cmsc", "--dataset", "demo", "-o", "patients=30", "--epochs", "4", "--batch-size", "16")
    weights = []
    for name, more in (("plain", ()), ("profiled", ("--profile",))):
        where = ("--out", str(tmp_path / name), "--data-root", str(tmp_path / "data"), "-o", "resamples=10")
        assert main(["run", *small, *where, *more]) == 0
        weights.append((tmp_path / name / "encoder.safetensors").read_bytes())
    assert weights[0] == weights[1]
    shown = " ".join(capsys.readouterr().err.split())
    assert "a step takes" in shown
    assert "everything else" in shown
    assert list((tmp_path / "profiled" / "profile").glob("*.pt.trace.json"))


def test_a_run_of_few_steps_says_that_there_was_nothing_to_profile(tmp_path, capsys):
    small = ("--plugin", "cmsc", "--dataset", "demo", "-o", "patients=12", "--epochs", "1", "-o", "resamples=10")
    where = ("--out", str(tmp_path / "run"), "--data-root", str(tmp_path / "data"))
    assert main(["run", *small, *where, "--profile"]) == 0
    assert "too few steps to profile" in " ".join(capsys.readouterr().err.split())
