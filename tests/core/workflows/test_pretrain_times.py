"""Where the time of a run went: every stage and every part, by a clock that only they move."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import fake_clock
import pytest
from fake_offers import offers
from fake_plugins import FakePoint, fake_module

from clocs_core.artifacts.run_keeper import FolderKeeper, RunKeeper
from clocs_core.contracts.events import Listener
from clocs_core.plan.pretraining import Plan, resolve
from clocs_core.plugins.catalogue import build_catalogue
from clocs_core.plugins.host import Host, load_plugins
from clocs_core.progress import Display
from clocs_core.workflows.pretrain import pretrain_run
from clocs_core.workflows.surroundings import Surroundings

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

SLOW = {
    "clocs_core.workflows.training.get_cohort": 2.0,
    "clocs_core.workflows.training.certified_audit": 3.0,
    "clocs_core.train.loop.weighted_mean": 0.25,
    "clocs_core.train.validation.weighted_mean": 0.25,
    "clocs_core.train.loop.validate": 5.0,
    "clocs_core.train.health.measure": 7.0,
    "clocs_core.evaluation.embedded_rows.embed": 11.0,  # two encoders, three parts
    "clocs_core.evaluation.linear._predict": 13.0,  # two encoders
    "clocs_core.evaluation.own_encoder.patient_distances": 17.0,  # two encoders
    "clocs_core.evaluation.own_encoder.score_predictions": 19.0,
    "clocs_core.evaluation.own_encoder.clinical_results": 1.5,
    "clocs_core.workflows.pretrain.summarise_retrieval": 23.0,
    "clocs_core.workflows.pretrain._done": 29.5,  # waits for pictures
    "clocs_core.workflows.pretrain.render": 31.0,
}
EXPECTED = {
    "prepare": 5.0,
    "prepare/audit": 3.0,
    "pretrain": 2 * 12.5,
    "pretrain/training": 2 * 0.25,
    "pretrain/validation": 2 * 12.25,
    "evaluate": 169.5,
    "evaluate/embed": 66.0,
    "evaluate/distances": 34.0,
    "evaluate/fit": 26.0,
    "evaluate/bootstrap": 19.0,
    "evaluate/classes": 1.5,
    "evaluate/retrieval": 23.0,
    "report": 29.5,
}


class Said(Display):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


class Slow(Listener):
    """Takes 37 s to write down that a run is over; or stops it after an epoch."""

    def __init__(self, stop_after: int = 0) -> None:
        self.stop_after = stop_after

    def epoch_done(self, run: object, epoch: Any) -> None:
        if epoch.epoch == self.stop_after:
            raise KeyboardInterrupt

    def run_done(self, run: object, done: object) -> None:
        fake_clock.advance(37)


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each of these functions take its time, and everything else none."""

    def slower(work: Callable[..., Any], seconds: float) -> Callable[..., Any]:
        def taking_its_time(*arguments: Any, **named: Any) -> Any:
            fake_clock.advance(seconds)
            return work(*arguments, **named)

        return taking_its_time

    for name, seconds in SLOW.items():
        module, _, function = name.rpartition(".")
        work = getattr(import_module(module), function)
        monkeypatch.setattr(name, slower(work, seconds))


@pytest.fixture
def asked(tmp_path: Path) -> tuple[Plan, Host]:
    catalogue, host = build_catalogue(load_plugins([FakePoint("fake", fake_module("fake", **offers()))]))
    tables: dict[str, dict[str, object]] = {
        "run": {"method": "together", "dataset": "tiny", "embedding_dim": 8, "device": "cpu"},
        "data": {"data_root": str(tmp_path / "data")},
        "evaluate": {"resamples": 5, "permutations": 5},
    }
    return resolve(catalogue, tables, ["epochs=2"]), host


def around(host: Host, show: Display, *listeners: Listener, began: float | None = None) -> Surroundings:
    return Surroundings(host, show, clock=fake_clock.now, listeners=listeners, began=began)


def test_every_stage_and_part_of_a_run_has_its_time(asked: tuple[Plan, Host]) -> None:
    plan, host = asked
    show = Said()
    report = pretrain_run(plan, RunKeeper(), around(host, show, Slow(), began=fake_clock.now() - 41)).report
    assert report.seconds == {"start": 41.0, **EXPECTED}
    assert list(report.seconds) == ["start", *EXPECTED]
    assert show.lines[-1].splitlines() == [
        "time of each stage:",
        "  start     41.0 s",
        "  prepare   5.0 s (audit 3.0 s)",
        "  pretrain  25.0 s (training 0.5 s, validation 24.5 s)",
        "  evaluate  2 min 50 s (embed 1 min 06 s, distances 34.0 s, fit 26.0 s, bootstrap 19.0 s, classes 1.5 s, "
        "retrieval 23.0 s)",
        "  report    29.5 s",
        "  closing   1 min 08 s",
    ]


def test_times_of_a_resumed_run_are_added_up(asked: tuple[Plan, Host], tmp_path: Path) -> None:
    """The first process trains one epoch; the second prepares again, trains the other one and evaluates."""
    plan, host = asked
    path, began = tmp_path / "run", fake_clock.now
    with pytest.raises(KeyboardInterrupt):
        pretrain_run(plan, FolderKeeper(path), around(host, Display(), Slow(1), began=began() - 2))
    second = FolderKeeper(path, plan.tables())
    report = pretrain_run(plan, second, around(host, Display(), began=began() - 3)).report
    assert report.seconds == {"start": 5.0, **EXPECTED, "prepare": 10.0, "prepare/audit": 6.0}


def test_what_only_the_first_process_spent_is_kept(asked: tuple[Plan, Host], tmp_path: Path) -> None:
    """Python has imported everything before it resumes."""
    plan, host = asked
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        pretrain_run(plan, FolderKeeper(path), around(host, Display(), Slow(1), began=fake_clock.now() - 2))
    report = pretrain_run(plan, FolderKeeper(path, plan.tables()), around(host, Display())).report
    assert report.seconds["start"] == 2.0
