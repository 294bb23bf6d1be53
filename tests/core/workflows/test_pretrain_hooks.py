"""The hooks are called in the order that hookspecs.py promises, each as often as it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from fake_offers import offers
from fake_plugins import FakePoint, fake_module, fake_point, points

from clocs_core.artifacts.reports import Report
from clocs_core.artifacts.run_folder import RunFolder
from clocs_core.contracts import hookspecs
from clocs_core.plan.pretraining import resolve
from clocs_core.plugins.catalogue import build_catalogue
from clocs_core.plugins.host import load_plugins

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

Call = tuple[str, Any]


class Quiet:
    """A display that shows nothing, but keeps the warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def say(self, text: str) -> None: ...
    def stage(self, text: str) -> None: ...
    def tick(self, done: int, total: int) -> None: ...
    def epoch(self, done: object, epochs: int) -> None: ...

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def recording(calls: list[Call]) -> FakePoint:
    """A plugin that offers everything, listens to everything, and writes down when it was called, with what."""

    def noting(name: str, made: Callable[[], list[Any]]) -> Callable[[], list[Any]]:
        def hook() -> list[Any]:
            calls.append((name, None))
            return made()

        return hook

    events = {
        "clocs_run_started": lambda run: calls.append(("clocs_run_started", run)),
        "clocs_epoch_done": lambda run, epoch: calls.append(("clocs_epoch_done", (run, epoch))),
        "clocs_run_done": lambda run, done: calls.append(("clocs_run_done", (run, done))),
    }
    module = fake_module("recorder", **{name: noting(name, made) for name, made in offers().items()}, **events)
    return FakePoint("recorder", module)


def run(folder: Path, points: list[FakePoint], *assignments: str) -> tuple[Report, list[str]]:
    from clocs_core.artifacts.run_keeper import FolderKeeper
    from clocs_core.workflows.pretrain import pretrain_run
    from clocs_core.workflows.surroundings import Surroundings

    catalogue, host = build_catalogue(load_plugins(points))
    tables: dict[str, dict[str, object]] = {
        "run": {"method": "together", "dataset": "tiny", "embedding_dim": 8, "device": "cpu"},
        "data": {"data_root": str(folder / "data")},
        "evaluate": {"resamples": 5, "permutations": 5},
    }
    ticking = count()
    show = Quiet()
    plan = resolve(catalogue, tables, assignments)
    around = Surroundings(host, show, workers=1, clock=lambda: float(next(ticking)))
    report = pretrain_run(plan, FolderKeeper(folder / "run"), around).report
    return report, show.warnings


def test_a_run_calls_offers_then_events_each_in_its_order(tmp_path: Path) -> None:
    """Plugins build on it: whoever opens a file in `run_started` writes to it in `epoch_done`."""
    calls: list[Call] = []
    report, warnings = run(tmp_path, [recording(calls)], "epochs=2")
    assert [name for name, _ in calls] == [
        "clocs_datasets",
        "clocs_views",
        "clocs_perturbations",
        "clocs_encoders",
        "clocs_losses",
        "clocs_objectives",
        "clocs_methods",
        "clocs_metrics",
        "clocs_protocols",
        "clocs_report_sections",
        "clocs_listeners",
        "clocs_grids",
        "clocs_executors",
        "clocs_run_started",
        "clocs_epoch_done",
        "clocs_epoch_done",
        "clocs_run_done",
    ]
    assert warnings == []
    started = calls[13][1]
    assert (started.method, started.dataset, started.first_epoch) == ("together", "tiny", 1)
    assert [calls[place][1][1].epoch for place in (14, 15)] == [1, 2]
    assert [calls[place][1][1].last for place in (14, 15)] == [False, True]
    done = calls[16][1][1]
    assert (done.epochs_run, done.scores) == (report.epochs_run, report.scores)
    assert report.scores
    # A listener keeps its file by the run it was told of.
    runs = [calls[13][1], calls[14][1][0], calls[15][1][0], calls[16][1][0]]
    assert all(one == runs[0] for one in runs)
    assert runs[0].folder == tmp_path / "run"


def test_the_hookspecs_stand_in_calling_order() -> None:
    """The file is read from top to bottom as the story of a run; the recorded order above is the truth."""
    named = [name for name in vars(hookspecs) if name.startswith("clocs_")]
    assert named == [
        *offers(),
        "clocs_commands",
        "clocs_run_started",
        "clocs_epoch_done",
        "clocs_run_stopped",
        "clocs_run_done",
        "clocs_evaluation_done",
    ]


def test_what_an_event_tells_of_is_on_disk(tmp_path: Path) -> None:
    """A listener may read the metrics of the epoch it hears of, and the report of the run that is done."""
    seen: list[str] = []

    def epoch_done(run: Any, epoch: Any) -> None:
        folder = RunFolder(run.folder)
        last = json.loads(folder.metrics.read_text(encoding="utf-8").splitlines()[-1])
        assert last["epoch"] == epoch.epoch
        assert folder.checkpoint.exists()
        assert not folder.report.exists()
        seen.append("epoch")

    def run_done(run: Any) -> None:
        assert RunFolder(run.folder).report.exists()
        assert RunFolder(run.folder).page.exists()
        seen.append("run")

    watcher = fake_point("watcher", clocs_epoch_done=epoch_done, clocs_run_done=run_done)
    _, warnings = run(tmp_path, [fake_point("all", **offers()), watcher], "epochs=1")
    assert (seen, warnings) == (["epoch", "run"], [])


def test_listeners_that_fail_do_not_end_the_run(tmp_path: Path) -> None:
    """Not at its beginning, not in its middle, and not at its end."""

    def fail() -> None:
        raise RuntimeError("no space left")

    events = ["clocs_run_started", "clocs_epoch_done", "clocs_run_done"]
    points = [fake_point("all", **offers()), fake_point("bad", **dict.fromkeys(events, fail))]
    report, warnings = run(tmp_path, points, "epochs=1")
    assert report.epochs_run == 1
    assert warnings == [f"plugin 'bad' (fakes 1.0) failed in {hook}: RuntimeError: no space left" for hook in events]


def test_a_data_set_without_labels_ends_with_a_reason_instead_of_a_score(tmp_path: Path) -> None:
    calls: list[Call] = []
    report, _ = run(tmp_path, [recording(calls)], "epochs=1", "labelled=false")
    assert (report.scores, report.task) == ((), None)
    assert "There is no score: tiny has no labels." in report.notes
    assert calls[-1][0] == "clocs_run_done"


def test_a_listener_with_options_and_a_section_belong_to_the_run(tmp_path: Path) -> None:
    """The diary has every second epoch, and the page the table of patients, escaped."""
    _, warnings = run(tmp_path, points(), "epochs=4", "diary.every=2", "patients.most=1")
    assert warnings == []
    lines = (tmp_path / "run" / "diary.txt").read_text().splitlines()
    assert lines[:3] == ["started at 1", "epoch 2", "epoch 4"]
    assert lines[3].startswith("done with ")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "<h2>Some patients</h2>" in page
    assert "<h3>Patients &lt;b&gt;</h3>" in page
    assert "Patients <b>" not in page


def test_a_run_that_fails_tells_its_listeners(tmp_path: Path) -> None:
    """Whoever watches a run from afar should not wait for one that is dead."""

    def clocs_epoch_done(run: Any, epoch: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, points(clocs_epoch_done=clocs_epoch_done), "epochs=2", "diary.every=1")
    assert (tmp_path / "run" / "diary.txt").read_text().splitlines() == ["started at 1", "interrupted"]
