"""Several seeds from Python: runs and their scores together, in memory or in a folder that the same call resumes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from fake_runs import ARGUMENTS

import clocs_core as clocs

pytestmark = pytest.mark.usefixtures("no_pictures")


def test_seeds_in_memory_are_the_runs_alone(data: clocs.Recordings, run: clocs.Run) -> None:
    found = clocs.pretrain_seeds("cmsc", data, seeds=2, temperature=0.05, **ARGUMENTS)
    assert list(found.runs) == [0, 1]
    assert found.path is None
    assert found.runs[0].record.scores == run.record.scores
    assert found.scores["values"][0] == tuple(found.runs[seed].record.scores[0].value for seed in (0, 1))
    assert "interval over seeds and patients" in found.verdict
    assert found.verdict in repr(found)
    assert "±" in found._repr_html_()
    assert len(found.comparisons) == len(run.record.comparisons)
    assert found.runs[1].record.seed == 1
    compared = clocs.compare([found, run], progress=False).record.compared
    assert [one.seeds for one in compared] == [(0, 1, 0)], "the run alone is the same as seed 0"


def test_a_folder_is_resumed_and_opened_by_the_same_call(data: clocs.Recordings, tmp_path: Path) -> None:
    class Interrupt(clocs.Listener):
        def epoch_done(self, run: clocs.RunStarted, epoch: clocs.EpochDone) -> None:
            if run.settings["run"]["seed"] == 1:
                raise KeyboardInterrupt

    out = tmp_path / "s"
    with pytest.raises(KeyboardInterrupt):
        clocs.pretrain_seeds("cmsc", data, seeds=2, out=out, listeners=[Interrupt()], **ARGUMENTS)
    first = clocs.pretrain_seeds("cmsc", data, seeds=2, out=out, **ARGUMENTS)
    again = clocs.pretrain_seeds("cmsc", data, seeds=2, out=out, listeners=[Interrupt()], **ARGUMENTS)
    assert first.record == again.record
    assert again.runs[1].path == out / "seed1"
    with pytest.raises(clocs.RunFolderError, match="holds seeds 0 to 1, and 0 to 2 are asked for"):
        clocs.pretrain_seeds("cmsc", data, seeds=3, out=out, **ARGUMENTS)
    with pytest.raises(clocs.RunFolderError, match=r"train\.epochs is 2 there and 3 here"):
        clocs.pretrain_seeds("cmsc", data, seeds=2, out=out, **ARGUMENTS | {"epochs": 3})


def test_a_seed_that_fails_costs_a_warning_and_no_other_seed(data: clocs.Recordings) -> None:
    class Full(clocs.Listener):
        def epoch_done(self, run: clocs.RunStarted, epoch: clocs.EpochDone) -> None:
            if run.settings["run"]["seed"] == 0:
                raise OSError(28, "No space left on device")

    with pytest.warns(clocs.ClocsWarning, match="Seed 0 ended with an error: .*No space left"):
        found = clocs.pretrain_seeds("cmsc", data, seeds=2, listeners=[Full()], **ARGUMENTS)
    assert list(found.runs) == [1]
    assert list(found.failed) == [0]
    with pytest.raises(OSError, match="No space left"):
        clocs.pretrain_seeds("cmsc", data, seeds=1, listeners=[Full()], **ARGUMENTS)


def test_a_number_of_seeds_that_makes_no_sense_is_refused(data: clocs.Recordings) -> None:
    with pytest.raises(clocs.SettingsError, match=r"`seeds=0` is the number of seeds to run"):
        clocs.pretrain_seeds("cmsc", data, seeds=0, **ARGUMENTS)


def test_seeds_of_a_number_are_summarised_though_a_control_has_no_rank(data: clocs.Recordings, tmp_path: Path) -> None:
    """The control without a signal predicts one number for all, whose rank correlation is not defined."""
    ages = [40.0 + 10 * (int(patient) % 3) for patient in range(len(data))]
    numbers = clocs.Recordings(
        data._samples, patients=data.patients, labels=ages, sampling_rate=100, channels=data.channels, numbers=True
    )
    found = clocs.pretrain_seeds("cmsc", numbers, seeds=2, out=tmp_path / "s", **ARGUMENTS)
    spread = {(one.protocol, one.metric): one.sd for one in found.record.scores if one.level == "record"}
    assert math.isnan(spread["prior", "spearman"])
    assert spread["linear", "mae"] >= 0
    assert "n/a" in (tmp_path / "s" / "summary.html").read_text()
