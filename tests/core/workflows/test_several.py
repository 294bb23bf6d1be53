"""Several runs in one process are, to the last bit, what each is alone: by threads that take turns, or in a row."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
import torch
from fake_offers import FlatOptions, offers
from fake_plugins import fake_point
from killed_runs import contents_of
from no_pictures import without_pictures
from torch import Tensor, nn

from clocs_core import Encoder, EpochDone, Listener, RunStarted, RunStopped
from clocs_core.artifacts.metrics import EpochRow
from clocs_core.artifacts.run_keeper import FolderKeeper, RunKeeper
from clocs_core.data import cohort
from clocs_core.errors import OutOfMemory
from clocs_core.plan.pretraining import Plan, resolve
from clocs_core.plugins.catalogue import build_catalogue
from clocs_core.plugins.host import load_plugins
from clocs_core.progress import Display
from clocs_core.turns import waiting
from clocs_core.workflows import several
from clocs_core.workflows.pretrain import pretrain_run
from clocs_core.workflows.several import PlannedRun, pretrain_several
from clocs_core.workflows.surroundings import Surroundings

pytestmark = [pytest.mark.usefixtures("no_pictures"), pytest.mark.timeout(60)]


class Forgetful(nn.Module):
    """An encoder with dropout that gives its turn away between drawing and using random numbers."""

    def __init__(self, inputs: int, dim: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(inputs, dim), nn.Dropout(0.3))

    def forward(self, signal: Tensor) -> Tensor:
        noise = torch.rand(()) if self.training else torch.zeros(())
        with waiting():
            pass
        z: Tensor = self.layers(signal)
        return z * (1 + noise)


def build(_options: Any, channels: int, samples: int, embedding_dim: int) -> nn.Module:
    return Forgetful(channels * samples, embedding_dim)


def forgetful() -> list[Encoder]:
    return [Encoder(name="forgetful", summary="Draws, waits, draws.", build=build, options=FlatOptions)]


POINTS: list[Any] = [fake_point("all", **offers()), fake_point("more", clocs_encoders=forgetful)]
CATALOGUE, HOST = build_catalogue(load_plugins(POINTS))
SMALL = ("epochs=2", "batch_size=8", "resamples=10", "permutations=10", "device=cpu", "encoder=forgetful")


def plan_of(folder: Path, seed: int, method: str = "together") -> Plan:
    run: dict[str, object] = {"method": method, "dataset": "tiny", "seed": seed}
    return resolve(CATALOGUE, {"run": run, "data": {"data_root": str(folder / "data")}}, SMALL)


def planned(folder: Path, plans: Sequence[Plan]) -> list[PlannedRun]:
    return [PlannedRun(f"run {n}", plan, FolderKeeper(folder / f"run{n}")) for n, plan in enumerate(plans)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs, each made alone: two seeds, and another method."""
    folder = tmp_path_factory.mktemp("several")
    with without_pictures():
        for one in planned(folder / "alone", plans_in(folder)):
            pretrain_run(one.plan, one.keeper, Surroundings(HOST))
    return folder


def plans_in(folder: Path) -> list[Plan]:
    return [plan_of(folder, 0), plan_of(folder, 1), plan_of(folder, 0, "leads")]


class Told(Display):
    """A display that keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.warned.append(text)


@pytest.mark.parametrize("at_once", [1, 2])
def test_seeds_and_methods_are_bit_identical_to_the_same_runs_alone(
    world: Path, tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned: list[object] = []
    real: Callable[..., Any] = cohort.scan
    monkeypatch.setattr(cohort, "scan", lambda asked: scanned.append(asked) or real(asked))
    random, show = torch.get_rng_state(), Told()
    outcomes = pretrain_several(planned(tmp_path, plans_in(world)), Surroundings(HOST, show), at_once)
    assert [(one.name, one.problem) for one in outcomes] == [(f"run {number}", None) for number in range(3)]
    for number in range(3):
        assert contents_of(tmp_path / f"run{number}") == contents_of(world / "alone" / f"run{number}")
    if at_once > 1:
        assert torch.equal(torch.get_rng_state(), random)
    assert len(scanned) == 2, "the seeds share their recordings"
    assert len([text for text in show.said if "recordings of 10 patients" in text]) == 2
    assert sorted(text[:5] for text in show.said if "trained for" in text) == ["run 0", "run 1", "run 2"]


def in_memory(folder: Path, epochs: int = 2) -> list[PlannedRun]:
    plans = [plan_of(folder, seed) for seed in range(2)]
    long = [attrs.evolve(one, train=attrs.evolve(one.train, epochs=epochs, patience=epochs)) for one in plans]
    return [PlannedRun(f"run {number}", plan, RunKeeper()) for number, plan in enumerate(long)]


class Failing(Listener):
    """Fails one run, as a full disk would: errors of other kinds only cost a listener a warning."""

    def epoch_done(self, run: RunStarted, epoch: EpochDone) -> None:
        if run.settings["run"]["seed"] == 0:
            raise OSError(28, "No space left on device")


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_run_that_fails_leaves_the_others_alone(tmp_path: Path, at_once: int) -> None:
    """Nothing is prepared before: threads that prepare the same frames would wait for each other's lock."""
    show = Told()
    first, second = pretrain_several(in_memory(tmp_path), Surroundings(HOST, show, listeners=(Failing(),)), at_once)
    assert isinstance(first.problem, OSError)
    assert first.finished is None
    assert second.problem is None
    assert second.finished is not None
    assert second.finished.report.seed == 1
    assert [text for text in show.warned if text.startswith("run 0: it ended with an error, and the others go on: ")]


class Crowded(FolderKeeper):
    """Has too little memory in the second epoch; not again when it goes on."""

    def __init__(self, path: Path, problem: Exception) -> None:
        super().__init__(path)
        self.problem = problem

    def keep_epoch(self, row: EpochRow) -> None:
        super().keep_epoch(row)
        if row.epoch == 2:
            raise self.problem


@pytest.mark.parametrize("kind", [OutOfMemory, torch.OutOfMemoryError])
def test_a_run_without_memory_beside_others_goes_on_alone(world: Path, tmp_path: Path, kind: type[Exception]) -> None:
    """Training words the error of torch anew. Where a run builds or embeds, torch's own one ends it."""
    plans = plans_in(world)[:2]
    first, second = planned(tmp_path, plans)
    show = Told()
    crowded = attrs.evolve(first, keeper=Crowded(tmp_path / "run0", kind("The GPU has too little memory.")))
    outcomes = pretrain_several([crowded, second], Surroundings(HOST, show), at_once=2)
    assert [one.problem for one in outcomes] == [None, None]
    assert contents_of(tmp_path / "run0") == contents_of(world / "alone" / "run0")
    assert "run 0: it is made again, now that the others no longer need the memory" in show.warned
    assert "run 0: resuming after epoch 1" in show.said


def test_recordings_without_memory_are_read_again_for_the_run_alone(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What all runs share is read before they begin, and fills the memory as well."""
    real: Callable[..., Any] = several.certified_audit
    problems = [torch.OutOfMemoryError("CUDA out of memory.")]

    def audit(*asked: Any) -> Any:
        if problems:
            raise problems.pop()
        return real(*asked)

    monkeypatch.setattr(several, "certified_audit", audit)
    show = Told()
    outcomes = pretrain_several(in_memory(world), Surroundings(HOST, show), at_once=2)
    assert [one.problem for one in outcomes] == [None, None]
    assert "run 0: it is made again, now that the others no longer need the memory" in show.warned


class Interrupting(Listener):
    """Presses Ctrl-C after the second epoch of a run, and notes how runs stop."""

    def __init__(self) -> None:
        self.stopped: list[str] = []

    def epoch_done(self, run: RunStarted, epoch: EpochDone) -> None:
        if run.settings["run"]["seed"] == 0 and epoch.epoch == 2:
            signal.raise_signal(signal.SIGINT)

    def run_stopped(self, run: RunStarted, stopped: RunStopped) -> None:
        self.stopped.append(stopped.reason)


@pytest.mark.parametrize(("at_once", "begun"), [(1, 1), (2, 2)])
def test_ctrl_c_stops_all_runs(world: Path, at_once: int, begun: int) -> None:
    heard = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        pretrain_several(in_memory(world, epochs=5000), Surroundings(HOST, listeners=(heard,)), at_once)
    assert heard.stopped == ["interrupted"] * begun


def test_recordings_that_cannot_be_read_end_their_own_run_only(world: Path) -> None:
    first, second = in_memory(world)
    nowhere = attrs.evolve(first.plan, data=attrs.evolve(first.plan.data, channels=("middle",)))
    lost, kept = pretrain_several([attrs.evolve(first, plan=nowhere), second], Surroundings(HOST), at_once=2)
    assert "Channel 'middle' was asked for" in str(lost.problem)
    assert kept.problem is None
