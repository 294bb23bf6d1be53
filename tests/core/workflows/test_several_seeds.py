"""Several seeds: each run is that of the seed alone, and the summary has the numbers that the runs have."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, stdev
from typing import Any

import attrs
import fake_clock
import pytest
from fake_offers import offers
from fake_plans import CATALOGUE, planned
from fake_plugins import fake_point
from killed_runs import contents_of
from no_pictures import without_pictures

from clocs_core import EpochDone, Listener, RunStarted
from clocs_core.artifacts.predictions import read_predicted_rows
from clocs_core.artifacts.reports import Report, read_report
from clocs_core.artifacts.run_keeper import FolderKeeper
from clocs_core.artifacts.several_seeds import (
    SeedsFolder,
    SeedsFolderKeeper,
    SeedsKeeper,
    SeedsReport,
    all_tables,
    open_seeds_folder,
)
from clocs_core.errors import SettingsError
from clocs_core.evaluation.bootstrap import bootstrap, compare
from clocs_core.evaluation.over_seeds import mean_over_seeds
from clocs_core.plan.pretraining import Plan, resolve
from clocs_core.plugins.host import load_plugins
from clocs_core.progress import Display
from clocs_core.seeds import derive
from clocs_core.workflows import several_seeds
from clocs_core.workflows.pretrain import pretrain_run
from clocs_core.workflows.several_seeds import pretrain_seeds
from clocs_core.workflows.surroundings import Surroundings

pytestmark = pytest.mark.usefixtures("no_pictures")

POINTS: list[Any] = [fake_point("all", **offers())]
HOST = load_plugins(POINTS)


def plan_in(folder: Path, *more: str) -> Plan:
    plan = planned("epochs=2", "people=20", "resamples=30", "permutations=10", "device=cpu", *more)
    return attrs.evolve(plan, data=attrs.evolve(plan.data, data_root=folder / "data"))


class FailOnce(Listener):
    """Fails one seed, as a full disk would."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def epoch_done(self, run: RunStarted, epoch: EpochDone) -> None:
        if run.settings["run"]["seed"] == self.seed:
            raise OSError(28, "No space left on device")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three seeds, of which one fails at first."""
    folder = tmp_path_factory.mktemp("seeds")
    with without_pictures():
        broken = Surroundings(HOST, listeners=(FailOnce(1),))
        done = pretrain_seeds(plan_in(folder), range(3), SeedsFolderKeeper(folder / "s"), broken)
        assert list(done.failed) == [1]
        assert done.report is not None
        assert (done.report.seeds, done.report.missing) == ((0, 2), (1,))
        assert "Seed 1 is missing here: it ended with an error." in done.report.notes
        assert SeedsFolder(folder / "s").read_report() == done.report
        again = resume(folder, Surroundings(HOST))
        assert again.seeds == (0, 1, 2)
    return folder


def resume(folder: Path, around: Surroundings) -> SeedsReport:
    _, tables, seeds = open_seeds_folder(folder / "s")
    keeper = SeedsFolderKeeper(folder / "s", all_tables(tables, seeds))
    done = pretrain_seeds(resolve(CATALOGUE, tables), seeds, keeper, around)
    assert done.report is not None
    return done.report


def reports(folder: Path) -> list[Report]:
    return [read_report((folder / "s" / f"seed{seed}" / "report.json").read_text()) for seed in range(3)]


def test_every_seed_is_a_whole_run_equal_to_the_same_run_alone(made: Path, tmp_path: Path) -> None:
    """Seed 1 failed after its first epoch, and was resumed."""
    plan = plan_in(made)
    for seed in (1, 2):
        alone = attrs.evolve(plan, run=attrs.evolve(plan.run, seed=seed))
        pretrain_run(alone, FolderKeeper(tmp_path / f"{seed}"), Surroundings(HOST))
        assert contents_of(made / "s" / f"seed{seed}") == contents_of(tmp_path / f"{seed}")


def test_the_summary_has_the_values_of_the_runs_with_their_mean_and_spread(made: Path) -> None:
    found, runs = SeedsFolder(made / "s").read_report(), reports(made)
    assert len(found.scores) == len(runs[0].scores) > 0
    assert found.best_epochs == tuple(run.best_epoch for run in runs)
    for number, one in enumerate(found.scores):
        values = [run.scores[number].value for run in runs]
        assert one.values == tuple(values)
        assert one.mean == pytest.approx(mean(values), abs=1e-12)
        assert one.sd == pytest.approx(stdev(values), abs=1e-12)
        assert one.low <= one.mean <= one.high


def test_differences_are_of_the_same_seed_over_the_same_draws_of_patients(made: Path) -> None:
    found, plan = SeedsFolder(made / "s").read_report(), plan_in(made)
    one = next(one for one in found.comparisons if one.level == "frame")
    assert (one.a, one.b, one.seeds, one.p) == ("together", "random", 3, None)
    metric = next(metric for metric in plan.metrics if metric.name == one.metric)
    gains = []
    for seed in range(3):
        held = read_predicted_rows(made / "s" / f"seed{seed}" / "predictions.npz").predicted
        sides = [held["linear", init, one.label_fraction] for init in (one.a, one.b)]
        drawn = [bootstrap(rows, metric, 30, derive(0, "bootstrap")) for rows in sides]
        gains.append(compare(*drawn))
    expected = mean_over_seeds(gains)
    assert (one.difference, one.low, one.high) == (expected.value, expected.low, expected.high)


def test_what_is_finished_is_not_made_again(made: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (made / "s").glob("seed*/*")}
    assert resume(made, Surroundings(HOST, listeners=(FailOnce(0),))).seeds == (0, 1, 2)
    assert {path: path.stat().st_mtime_ns for path in (made / "s").glob("seed*/*")} == before


def test_one_seed_in_memory_has_the_numbers_of_its_report(made: Path) -> None:
    done = pretrain_seeds(plan_in(made), range(1, 2), SeedsKeeper(), Surroundings(HOST))
    assert done.report is not None
    (run,) = done.runs.values()
    assert done.report.comparisons == run.report.comparisons
    assert [(one.low, one.mean, one.high) for one in done.report.scores] == [
        (one.low, one.value, one.high) for one in run.report.scores
    ]
    assert run.report.scores == reports(made)[1].scores


class Said(Display):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


SLOW = {"find_recordings": 2.0, "prepare_run": 3.0, "pretrain_several": 90.0, "_summarise": 7.0, "render_seeds": 11.0}


@pytest.mark.parametrize("start", [41.0, None])
def test_every_stage_of_all_seeds_has_its_time(
    made: Path, monkeypatch: pytest.MonkeyPatch, start: float | None
) -> None:
    """A run of one seed finds its recordings read, so that its own times do not have what all seeds wait for."""

    def slower(name: str, seconds: float) -> None:
        work = getattr(several_seeds, name)

        def taking_its_time(*arguments: Any) -> Any:
            fake_clock.advance(seconds)
            return work(*arguments)

        monkeypatch.setattr(several_seeds, name, taking_its_time)

    for name, seconds in SLOW.items():
        slower(name, seconds)
    show, began = Said(), None if start is None else fake_clock.now() - start
    around = Surroundings(HOST, show, clock=fake_clock.now, began=began)
    report = pretrain_seeds(plan_in(made), range(1), SeedsKeeper(), around).report
    assert report is not None
    stages = {"prepare": 5.0, "runs": 90.0, "summarise": 7.0}
    assert report.seconds == (stages if start is None else {"start": start, **stages})
    begun = () if start is None else ("  start      41.0 s",)
    rest = ("  prepare    5.0 s", "  runs       1 min 30 s", "  summarise  7.0 s")
    assert show.lines[-1].splitlines() == ["time of each stage:", *begun, *rest]


def test_a_seed_that_the_system_cannot_read_keeps_its_files_and_the_others_are_summarised(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such an error may be over tomorrow: nobody is told to remove anything."""
    real = several_seeds.read_rows_of

    def unreadable(path: Path, expected: str) -> Any:
        if path.parent.name == "seed1":
            raise OSError(5, "Input/output error")
        return real(path, expected)

    monkeypatch.setattr(several_seeds, "read_rows_of", unreadable)
    _, tables, seeds = open_seeds_folder(made / "s")
    keeper = SeedsFolderKeeper(made / "s", all_tables(tables, seeds))
    done = pretrain_seeds(resolve(CATALOGUE, tables), seeds, keeper, Surroundings(HOST))
    assert {seed: str(problem) for seed, problem in done.failed.items()} == {1: "[Errno 5] Input/output error"}
    assert done.report is not None
    assert (done.report.seeds, done.report.missing) == ((0, 2), (1,))
    monkeypatch.undo()
    assert resume(made, Surroundings(HOST)).seeds == (0, 1, 2)


def test_a_plan_that_one_run_would_refuse_is_refused_before_anything_is_kept(made: Path, tmp_path: Path) -> None:
    plan = plan_in(made, "batch_size=1")
    with pytest.raises(SettingsError, match="batch_size=1"):
        pretrain_seeds(plan, range(2), SeedsFolderKeeper(tmp_path / "s"), Surroundings(HOST))
    assert list(tmp_path.iterdir()) == []
