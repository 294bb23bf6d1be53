"""Frames whose length is given in seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from clocs_core.cli import main
from clocs_core.errors import SettingsError
from clocs_core.plan.evaluation import resolve_evaluation
from clocs_core.plan.pretraining import Plan, resolve
from clocs_core.plugins.session import open_session

CMSC = ["run.method=cmsc", "run.dataset=arrays"]


def plan_of(*given: str) -> Plan:
    return resolve(open_session().catalogue, {}, [*CMSC, *given])


def test_seconds_are_the_rate_at_which_a_frame_lasts_so_long() -> None:
    plan = plan_of("frame_seconds=5")
    for framing in (plan.pretrain_framing, plan.evaluate_framing):
        assert (framing.frame_samples, framing.sampling_rate, framing.source_samples) == (2500, 500.0, None)
    assert plan.fit == 0, "a length that was asked for is used as it is"
    again = resolve(open_session().catalogue, plan.tables())
    assert again.pretrain_framing == plan.pretrain_framing


def test_the_samples_of_a_frame_stay_what_was_asked_for() -> None:
    framing = plan_of("frame_seconds=2.5", "frame_samples=1000").pretrain_framing
    assert (framing.frame_samples, framing.sampling_rate) == (1000, 400.0)


def test_seconds_replace_the_windows_of_a_data_set() -> None:
    """Cardiology cuts windows of some samples by itself."""
    plan = resolve(open_session().catalogue, {}, ["run.method=cmsc", "run.dataset=cardiology", "frame_seconds=10"])
    assert (plan.pretrain_framing.source_samples, plan.pretrain_framing.sampling_rate) == (None, 250.0)


def test_an_evaluation_takes_seconds_too() -> None:
    given = ["dataset=arrays", "encoder=cnn", "frame_seconds=5"]
    assert resolve_evaluation(open_session().catalogue, None, {}, given).framing.sampling_rate == 500.0


@pytest.mark.parametrize("other", ["source_samples=250", "frames_per_record=1", "pretrain_framing.sampling_rate=100"])
def test_two_time_scales_are_refused(other: str) -> None:
    with pytest.raises(SettingsError, match=r"`frame_seconds=\.\.\.` and `.*` both set the time scale of a frame"):
        plan_of("frame_seconds=5", other)


@pytest.mark.parametrize("value", ["0", "-1", "inf", "nan", "long"])
def test_seconds_are_a_positive_number(value: str) -> None:
    with pytest.raises(SettingsError, match=f"must be a positive number of seconds, got {value}"):
        plan_of(f"frame_seconds={value}")


def test_recordings_of_two_rates_are_cut_into_frames_of_the_same_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rate in (100, 250):
        x = np.random.default_rng(rate).normal(size=(6, 1, 10 * rate))
        np.savez(tmp_path / f"x{rate}.npz", x=x, sampling_rate=rate)
        given = ["arrays", "--root", str(tmp_path / f"x{rate}.npz"), "--data-root", str(tmp_path), "--workers", "1"]
        assert main(["data", "prepare", *given, "--frame-seconds", "2"]) == 0
        out = capsys.readouterr().out
        assert "30 frames x 1 channels x 2500 samples at 1250 Hz" in out
    assert main(["data", "prepare", *given, "--frame-seconds", "2", "--source-samples", "100"]) == 2
    assert "give one of them" in capsys.readouterr().err
