"""Several runs on one GPU at the same time: each is, to the last bit, the same run alone, and frames are there once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from killed_runs import contents_of

from clocs_core.artifacts.run_keeper import FolderKeeper
from clocs_core.cli import main
from clocs_core.data import store
from clocs_core.plan.pretraining import Plan, resolve
from clocs_core.plugins.session import installed_session
from clocs_core.workflows.pretrain import pretrain_run
from clocs_core.workflows.several import PlannedRun, pretrain_several
from clocs_core.workflows.surroundings import Surroundings

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("no_pictures"), pytest.mark.timeout(300)]

SMALL = ("patients=60", "epochs=4", "batch_size=32", "resamples=20", "permutations=20", "device=cuda")
METHODS = ("cmsc", "cmsc", "cmlc", "simclr", "byol", "mt-ssl", "supervised")
"""The first two differ in their seed; all have dropout, and batches whose last one is smaller."""


def plan_of(folder: Path, seed: int, method: str = "cmsc", *more: str) -> Plan:
    run: dict[str, object] = {"method": method, "dataset": "demo", "seed": seed}
    tables = {"run": run, "data": {"data_root": str(folder / "data")}}
    return resolve(installed_session().catalogue, tables, (*SMALL, *more))


def make_alone(plan: Plan, folder: Path) -> dict[str, Any]:
    pretrain_run(plan, FolderKeeper(folder), Surroundings(installed_session().host))
    return contents_of(folder)


def make_several(plans: list[Plan], folder: Path, at_once: int | None = None) -> list[dict[str, Any]]:
    runs = [PlannedRun(f"run {n}", plan, FolderKeeper(folder / str(n))) for n, plan in enumerate(plans)]
    outcomes = pretrain_several(runs, Surroundings(installed_session().host), at_once)
    assert [one.problem for one in outcomes] == [None] * len(plans)
    return [contents_of(folder / str(n)) for n in range(len(plans))]


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


@pytest.mark.parametrize("step", ["captured", "plain"])
def test_seeds_and_methods_on_one_gpu_are_bit_identical_to_the_same_runs_alone(tmp_path: Path, step: str) -> None:
    """If the first assertion fails, the GPU itself does not repeat a run, and the second says nothing."""
    plans = [plan_of(tmp_path, number % 2, method, f"step={step}") for number, method in enumerate(METHODS)]
    alone = [make_alone(plan, tmp_path / "alone" / str(number)) for number, plan in enumerate(plans)]
    again = [make_alone(plan, tmp_path / "again" / str(number)) for number, plan in enumerate(plans)]
    assert [differing(*both) for both in zip(alone, again, strict=True)] == [[]] * len(plans)
    several = make_several(plans, tmp_path / "several")
    assert [differing(*both) for both in zip(alone, several, strict=True)] == [[]] * len(plans)


def test_more_runs_than_are_trained_at_once_are_all_made(tmp_path: Path) -> None:
    """A thread makes one run after the other, with new graphs on its old stream."""
    plans = [plan_of(tmp_path, seed) for seed in range(5)]
    several = make_several(plans, tmp_path / "several", at_once=2)
    for number in (0, 4):
        assert differing(several[number], make_alone(plans[number], tmp_path / "alone" / str(number))) == []


def test_frames_are_copied_to_the_gpu_once_for_all_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[str] = []
    real = store._move
    monkeypatch.setattr(store, "_move", lambda *given: moved.append(given[0].fingerprint) or real(*given))
    plans = [plan_of(tmp_path, seed) for seed in range(3)]
    make_several(plans, tmp_path / "several")
    assert len(moved) == len(set(moved)) <= 2, "one set to train on, and one to evaluate on where it is another"


def test_default_generators_are_as_before_and_random_numbers_go_on(tmp_path: Path) -> None:
    torch.cuda.manual_seed(5)
    expected = torch.rand(3, device="cuda").tolist()
    torch.cuda.manual_seed(5)
    make_several([plan_of(tmp_path, seed) for seed in range(2)], tmp_path / "several")
    assert torch.rand(3, device="cuda").tolist() == expected


def test_seeds_of_the_command_line_that_are_resumed_on_a_gpu_equal_undisturbed_ones(tmp_path: Path) -> None:
    words = f"run --plugin cmsc --dataset demo --data-root {tmp_path / 'data'} --device cuda --seeds 3 --batch-size 32"
    words += " -o patients=60 --epochs 4 -o resamples=20 -o permutations=20"
    for name in ("whole", "stopped"):
        assert main([*words.split(), "--out", str(tmp_path / name)]) == 0
    for left in ("report.json", "checkpoint.safetensors"):  # as if killed in the first epoch
        (tmp_path / "stopped" / "seed1" / left).unlink()
    (tmp_path / "stopped" / "summary.json").unlink()
    assert main(["run", "--resume", str(tmp_path / "stopped")]) == 0
    for seed in range(3):
        one, other = (contents_of(tmp_path / name / f"seed{seed}") for name in ("whole", "stopped"))
        assert [name for name in differing(one, other) if not name.startswith("events")] == []
