"""Run a plan with several seeds, and summarise their scores: means, their spread, and intervals.

An interval is over seeds and patients: it says what to expect of another seed and of other patients. It is computed
from the stored predictions, over the same bootstrap samples of the test patients for every seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs
import numpy as np
import torch

from clocs_core import seeds as seed_numbers
from clocs_core.artifacts.documents import read_text
from clocs_core.artifacts.predictions import PredictedRows, read_rows_of
from clocs_core.artifacts.reports import Report, read_report
from clocs_core.artifacts.several_seeds import SeedsFolderKeeper, SeedsKeeper, SeedsReport, SeedsScore, notes_of_seeds
from clocs_core.contracts.scores import Comparison, Score
from clocs_core.errors import ClocsError, RunFolderError
from clocs_core.evaluation.bootstrap import Interval, bootstrap_all
from clocs_core.evaluation.over_seeds import difference_over_seeds, mean_over_seeds
from clocs_core.evaluation.pairing import predictions_at
from clocs_core.plan.pretraining import Plan
from clocs_core.progress import COMMAND, Display, Stopwatch, Tick
from clocs_core.report.several_seeds import render_seeds
from clocs_core.report.times import time_lines
from clocs_core.train.build import choose_device, choose_epochs, refuse_lone_instances
from clocs_core.workflows.environment import now
from clocs_core.workflows.pretrain import FinishedRun
from clocs_core.workflows.several import PlannedRun, pretrain_several
from clocs_core.workflows.summary import summarise_recordings
from clocs_core.workflows.surroundings import Surroundings
from clocs_core.workflows.training import find_recordings, prepare_run

T = TypeVar("T")


@attrs.frozen(eq=False)
class FinishedSeeds:
    """How several seeds ended.

    report: their summary; None where none is finished. runs: those that were finished now, by seed. failed: the errors
    of the others, by seed.
    """

    report: SeedsReport | None
    runs: dict[int, FinishedRun]
    failed: dict[int, Exception]


def pretrain_seeds(plan: Plan, seeds: Sequence[int], keeper: SeedsKeeper, around: Surroundings) -> FinishedSeeds:
    """Run a plan with each seed, or go on with what the keeper has of that, and summarise the runs that are finished.

    What a run of this plan would refuse is refused before anything is kept. A seed whose files are damaged is among the
    failed ones, and does not keep the others back.
    """
    show, watch = around.show, Stopwatch(around.clock)
    if around.began is not None:
        watch.add("start", around.clock() - around.began)
    with watch.part("prepare"):
        device = choose_device(plan.run.device)
        choose_epochs(plan, device, show.warn)  # fail before reading anything
        refuse_lone_instances(plan, device)
    with keeper.open():
        with watch.part("prepare"):
            found, cohort = find_recordings(plan, around, device)
            prepare_run(_with_seed(found, seeds[0]), attrs.evolve(around, show=Display()))
            keeper.begin(found.tables(), seeds, cohort.split, summarise_recordings(cohort))
        with watch.part("runs"):
            runs, failed = _make_runs(found, seeds, keeper, around)
        with watch.part("summarise"):
            ended = [seed for seed in seeds if seed not in failed]
            if ended:
                show.stage("summarising")
            done, damaged = _open_each(ended, lambda seed: _open(seed, keeper, runs), keeper, show)
            failed = _in_order(seeds, failed | damaged)
            report = _summarise(found, done, tuple(failed), device, show.tick) if done else None
        if report is not None:
            report = attrs.evolve(report, seconds=dict(watch.seconds))
            keeper.finish(report, render_seeds(report))
    show.say(time_lines(watch.seconds))
    return FinishedSeeds(report, runs, failed)


def _make_runs(
    plan: Plan, seeds: Sequence[int], keeper: SeedsKeeper, around: Surroundings
) -> tuple[dict[int, FinishedRun], dict[int, Exception]]:
    """Make the runs that are not finished. Returns those that are finished now, and the errors of others, by seed."""
    keepers, damaged = _open_each(seeds, keeper.of_run, keeper, around.show)
    left = {seed: one for seed, one in keepers.items() if one is not None}
    planned = [PlannedRun(f"seed {seed}", _with_seed(plan, seed), one) for seed, one in left.items()]
    outcomes = dict(zip(left, pretrain_several(planned, around), strict=True))
    runs = {seed: one.finished for seed, one in outcomes.items() if one.finished is not None}
    failed = {seed: one.problem for seed, one in outcomes.items() if one.problem is not None}
    return runs, failed | damaged


def _open_each(
    seeds: Sequence[int], opening: Callable[[int], T], keeper: SeedsKeeper, show: Display
) -> tuple[dict[int, T], dict[int, Exception]]:
    """Open what is kept of each seed. Returns what was opened, and the errors of the other seeds."""
    opened: dict[int, T] = {}
    failed: dict[int, Exception] = {}
    for seed in seeds:
        try:
            opened[seed] = opening(seed)
        except (ClocsError, OSError) as problem:
            failed[seed] = _with_advice(seed, keeper, problem)
            show.warn(f"seed {seed}: it ended with an error, and the others go on: {failed[seed]}")
    return opened, failed


def _with_advice(seed: int, keeper: SeedsKeeper, problem: Exception) -> Exception:
    """Return the error of a damaged file with what to do: to resume alone would meet the same file again.

    An error of the system stays as it is: the files may be whole, and readable another day.
    """
    if not isinstance(problem, ClocsError) or not isinstance(keeper, SeedsFolderKeeper):
        return problem
    folder, said = keeper.folder.run(seed).path, str(problem).rstrip(".")
    return RunFolderError(f"{said}. To have seed {seed} made again, remove the folder {folder} and resume.")


def _in_order(seeds: Sequence[int], failed: dict[int, Exception]) -> dict[int, Exception]:
    return {seed: failed[seed] for seed in seeds if seed in failed}


def _with_seed(plan: Plan, seed: int) -> Plan:
    return attrs.evolve(plan, run=attrs.evolve(plan.run, seed=seed))


@attrs.frozen(eq=False)
class _Done:
    """A finished run: its report, and its predictions if it has any."""

    report: Report
    rows: PredictedRows | None


def _open(seed: int, keeper: SeedsKeeper, runs: dict[int, FinishedRun]) -> _Done:
    """Open a finished run, from its folder or from memory."""
    if not isinstance(keeper, SeedsFolderKeeper):
        return _Done(runs[seed].report, runs[seed].predictions)
    folder = keeper.folder.run(seed)
    report = read_report(read_text(folder.report), str(folder.report))
    return _Done(report, read_rows_of(folder.predictions, report.predictions_sha256))


# -------------------------------------------------------------------------------------------------------------- summary


def _summarise(
    plan: Plan, done: dict[int, _Done], missing: tuple[int, ...], device: torch.device, tick: Tick
) -> SeedsReport:
    settings = plan.tables()
    settings["run"] = {name: value for name, value in settings["run"].items() if name != "seed"}
    drawn = _Drawn(tuple(done.values()), plan, device)
    lost = tuple(f"Seed {seed} is missing here: it ended with an error." for seed in missing)
    return SeedsReport(
        method=plan.method.name,
        dataset=plan.dataset.offer.name,
        task=drawn.runs[0].report.task,
        seeds=tuple(done),
        missing=missing,
        best_epochs=tuple(one.report.best_epoch for one in drawn.runs),
        settings=settings,
        scores=drawn.scores(tick),
        comparisons=drawn.comparisons(),
        notes=(*lost, *notes_of_seeds([(seed, one.report.notes) for seed, one in done.items()])),
        command=COMMAND.get(),
        date=now(),
    )


@attrs.frozen(eq=False)
class _Drawn:
    """The scores of several seeds on bootstrap samples of the test patients, each computed once."""

    runs: tuple[_Done, ...]
    plan: Plan
    device: torch.device
    _known: dict[tuple[str, str, float, str], list[dict[str, Interval]]] = attrs.field(factory=dict, init=False)

    def scores(self, tick: Tick) -> tuple[SeedsScore, ...]:
        """Average each score that all seeds have."""
        found, asked = [], self.runs[0].report.scores
        for number, one in enumerate(asked, start=1):
            each = self._intervals(one.protocol, one.init, one)
            tick(number, len(asked))
            if each:
                found.append(_average(one, each))
        return tuple(found)

    def comparisons(self) -> tuple[Comparison, ...]:
        """Average each difference from a control that all seeds have, seed by seed."""
        found = []
        for one in self.runs[0].report.comparisons:
            mine, control = (self._intervals(one.protocol, init, one) for init in (one.a, one.b))
            if mine and control:
                gain = difference_over_seeds(mine, control, paired=True)
                seeds, p = len(mine), one.p if len(mine) == 1 else None
                found.append(attrs.evolve(one, difference=gain.value, low=gain.low, high=gain.high, seeds=seeds, p=p))
        return tuple(found)

    def _intervals(self, protocol: str, init: str, about: Score | Comparison) -> list[Interval]:
        """Return the score of each seed with its draws; none where a seed has no predictions for it."""
        key = protocol, init, about.label_fraction, about.level
        if key not in self._known:
            self._known[key] = [self._draw(one, *key) for one in self.runs]
        each = [found.get(about.metric) for found in self._known[key]]
        return [one for one in each if one is not None] if None not in each else []

    def _draw(self, one: _Done, protocol: str, init: str, fraction: float, level: str) -> dict[str, Interval]:
        """Bootstrap all metrics of a classifier at once, by name: they share the weights of the draws."""
        rows = None if one.rows is None else predictions_at(one.rows, protocol, init, fraction, level)
        if one.rows is None or rows is None:
            return {}
        metrics = tuple(metric for metric in self.plan.metrics if one.rows.kind in metric.tasks)
        seed = seed_numbers.derive(self.plan.data.split_seed, "bootstrap")
        found = bootstrap_all(rows, metrics, self.plan.evaluate.resamples, seed, self.device)
        return {metric.name: interval for metric, interval in zip(metrics, found, strict=True)}


def _average(one: Score, each: Sequence[Interval]) -> SeedsScore:
    values, mean = tuple(found.value for found in each), mean_over_seeds(each)
    return SeedsScore(
        protocol=one.protocol,
        init=one.init,
        label_fraction=one.label_fraction,
        metric=one.metric,
        level=one.level,
        values=values,
        mean=mean.value,
        sd=float(np.std(values, ddof=1)) if len(values) > 1 else math.nan,  # NaN where a score is not defined
        low=mean.low,
        high=mean.high,
    )
