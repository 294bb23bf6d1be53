"""`clocs run --dry-run`: what would be read, trained and written, and about how long; nothing is written."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import numpy as np
import pytest

from clocs_core.cli import main
from clocs_core.data.cohort import get_cohort
from clocs_core.plan.pretraining import resolve
from clocs_core.plugins.session import open_session
from clocs_core.workflows.preview import preview_run

SMALL = ["--dataset", "demo", "--method", "cmsc", "--embedding-dim", "8", "--device", "cpu", "--workers", "1"]


def test_a_preview_counts_what_the_run_will_count(tmp_path: Path):
    asked = ["run.method=cmsc", "run.dataset=demo", "patients=40", "epochs=5", "batch_size=16", "embedding_dim=8"]
    plan = resolve(open_session().catalogue, {}, [*asked, f"data_root={tmp_path}"])
    stages: list[str] = []
    found = preview_run(plan, Path("runs/a"), 1, iter(range(10**6)).__next__, stage=stages.append)
    assert stages == ["listing recordings", "trying a few recordings"]
    assert found.patients == {"train": 24, "validation": 8, "test": 8}
    assert found.epochs == 5
    assert found.steps == -(-found.instances // 16)
    assert found.seconds_of_frame == pytest.approx(5.0)
    assert found.preparing > 0
    assert found.training > 0
    assert found.evaluating > 0
    assert not list(tmp_path.iterdir())


def test_the_room_that_frames_take_is_that_of_a_run(tmp_path: Path):
    """Whoever has no room for them wants to know before."""
    asked = ["run.method=cmsc", "run.dataset=demo", "patients=40", "epochs=1", "batch_size=16", "embedding_dim=8"]
    plan = resolve(open_session().catalogue, {}, [*asked, f"data_root={tmp_path}"])
    found = preview_run(plan, Path("runs/a"), 1, iter(range(10**6)).__next__)
    cohort = get_cohort(plan.recordings, plan.pretrain_framing, plan.evaluate_framing, 1, lambda done, total: None)
    sets = {one.folder: one.frames.nbytes for one in (cohort.pretrain, cohort.evaluate)}
    assert found.stored == pytest.approx(sum(sets.values()), rel=0.2)
    assert found.held == pytest.approx(cohort.pretrain.frames.nbytes, rel=0.2)
    assert "; training holds" not in " ".join(found.lines())
    assert "; training holds " in " ".join(attrs.evolve(found, device="cuda:0").lines())


@pytest.mark.parametrize("more", [["method=supervised"], ["normalise=constant"], ["method=simclr", "instances=20"]])
def test_every_kind_of_run_has_a_preview(tmp_path: Path, more: list[str]):
    """A classifier needs the task, a constant is measured by the run, and instances may be limited."""
    asked = ["run.method=cmsc", "run.dataset=demo", "patients=12", "epochs=2", "batch_size=16", "embedding_dim=8"]
    plan = resolve(open_session().catalogue, {}, [*asked, *more, f"data_root={tmp_path}"])
    found = preview_run(plan, Path("runs/a"), 1, iter(range(10**6)).__next__)
    assert found.training > 0
    assert found.instances <= (plan.train.instances or found.instances)


def test_the_command_says_it_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    assert main(["run", *SMALL, "-o", "patients=12", "--epochs", "2", "--out", "here", "--dry-run"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"Would read \d+ recordings of 12 patients \(7 to train, 2 to validation, 3 to test\)", said)
    assert re.search(r"at most 2 epochs on cpu: about [\d.]+ s", said)
    assert re.search(r"Would evaluate the encoder and its untrained control: about [\d.]+ s, and some seconds", said)
    assert re.search(r"Prepared frames take about [\d.]+ [kM]B in .*data, where [\d.]+ [MG]B are free\.", said)
    assert "Would write here: " in said
    assert said.endswith("Nothing was written.")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--frame-seconds", "8"], "contrasts 2 frames in a row of 2500 samples, and no recording has them"),
        (["--channels", "II,X"], "Channel 'X' was asked for, but the recordings of 'arrays' have II, V1."),
    ],
)
def test_what_the_run_would_refuse_is_refused(tmp_path: Path, monkeypatch, capsys, more: list[str], said: str):
    """Frames longer than half a recording, and a channel that no recording has."""
    x = np.random.default_rng(0).normal(size=(12, 2, 1000))
    np.savez(tmp_path / "x.npz", x=x, sampling_rate=100, channels=np.array(["II", "V1"]))
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    given = ["run", "--dataset", "arrays", "--root", str(tmp_path / "x.npz"), *SMALL[2:], *more, "--dry-run"]
    assert main(given) == 2
    assert said in capsys.readouterr().err


def test_its_lines_name_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(0).normal(size=(20, 600)), sampling_rate=100)
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    given = ["run", "--dataset", "arrays", "--root", str(tmp_path / "x.npz"), *SMALL[2:], "--dry-run"]
    assert main(given) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "No patients were given (`-o patients=FILE`): each recording counts as one patient." in said


def test_a_run_that_is_resumed_has_nothing_to_preview(capsys):
    assert main(["run", "--resume", "runs/a", "--dry-run"]) == 2
    assert "leave out --dry-run" in capsys.readouterr().err
