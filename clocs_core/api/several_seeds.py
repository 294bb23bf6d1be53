"""Pre-train with several seeds from Python.

runs = clocs.pretrain_seeds(METHOD, data, seeds=5, epochs=50)
runs.summary; runs.verdict; runs.runs[3].encoder
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path

import attrs

from clocs_core.api.arguments import PRETRAIN, assignments_of, choose_workers, with_settings_in_signature
from clocs_core.api.display import open_display
from clocs_core.api.recordings import Data
from clocs_core.api.runs import Run, as_run, load_run, refuse_other_run
from clocs_core.api.tables import Table
from clocs_core.artifacts.run_folder import SEEDS, refuse_taken
from clocs_core.artifacts.several_seeds import (
    SeedsFolder,
    SeedsFolderKeeper,
    SeedsKeeper,
    SeedsReport,
    SeedsScore,
    all_tables,
    is_finished,
    list_seeds,
    open_seeds_folder,
)
from clocs_core.contracts.events import Listener
from clocs_core.contracts.scores import Comparison
from clocs_core.errors import ClocsWarning, RunFolderError
from clocs_core.plan.pretraining import Plan, resolve
from clocs_core.plugins.session import installed_session
from clocs_core.report.several_seeds import wide_seeds_rows
from clocs_core.report.tables import verdict
from clocs_core.workflows.several_seeds import pretrain_seeds as make_seeds
from clocs_core.workflows.surroundings import Surroundings


@attrs.frozen(eq=False, slots=False, repr=False)
class SeedRuns:
    """The finished runs of several seeds, by seed, and their scores together.

    path: the folder with a run folder for each; None where nothing was kept. failed: errors of other seeds.
    """

    path: Path | None
    runs: Mapping[int, Run]
    record: SeedsReport
    failed: Mapping[int, Exception] = attrs.field(factory=dict)

    @cached_property
    def scores(self) -> Table:
        """A row for each classifier, metric and level: values by seed, mean, sd, and the 95 % interval of the mean."""
        return Table.of_records(self.record.scores, SeedsScore)

    @cached_property
    def comparisons(self) -> Table:
        """Mean differences to the untrained control, with their 95 % intervals over seeds and patients."""
        return Table.of_records(self.record.comparisons, Comparison)

    @property
    def summary(self) -> Table:
        """A row for each classifier and level: mean ± sd of all metrics, the first with its interval."""
        return Table(*wide_seeds_rows(self.record)) if self.record.scores else Table((), ())

    @property
    def verdict(self) -> str:
        """The sentence to read first: whether pre-training helped, over seeds and patients."""
        return verdict(self.record.scores, self.record.comparisons, self.record.notes).headline

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader of the scores must know."""
        return self.record.notes

    def __repr__(self) -> str:
        return "\n".join([self.verdict, *([repr(self.summary)] if self.record.scores else []), *self.notes])

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        table = self.summary._repr_html_() if self.record.scores else ""
        return f"<p><b>{escape(self.verdict)}</b></p>{table}" + (f"<ul>{notes}</ul>" if notes else "")


@with_settings_in_signature(PRETRAIN, "method", "dataset", "task", "root")
def pretrain_seeds(
    method: str,
    data: Data,
    *,
    seeds: int = 5,
    out: str | Path | None = None,
    progress: bool = True,
    listeners: Sequence[Listener] = (),
    workers: int | None = None,
    **settings: object,
) -> SeedRuns:
    """Pre-train as `pretrain` does, with several seeds, and summarise their scores.

    seeds: how many; the first is the setting `seed`. out: a folder for a run folder of each seed, and the summary. What
    is missing there is made, what is finished is opened; None keeps nothing. The other arguments are those of
    `pretrain`. On a GPU the runs are trained at the same time; every result is that of the same run alone.

    A seed that ends with an error costs a warning, and is in `failed`. Raises the error where no seed is finished.
    """
    given = assignments_of(PRETRAIN, data, {**settings, "method": method})
    session = data.add_to(installed_session())
    plan = resolve(session.catalogue, {}, given)
    asked = list_seeds(plan.run.seed, seeds)
    path = None if out is None else Path(out)
    keeper = SeedsKeeper() if path is None else _keeper(plan, asked, path)
    if keeper is None:
        assert path is not None
        return _load(SeedsFolder(path), asked, {})
    around = Surroundings(session.host, workers=choose_workers(data, workers), listeners=tuple(listeners))
    with open_display(progress) as show:
        around = attrs.evolve(around, show=show, announces=path is not None)
        done = make_seeds(plan, asked, keeper, around)
    if done.report is None:
        raise next(iter(done.failed.values()))
    for seed, problem in done.failed.items():
        warnings.warn(f"Seed {seed} ended with an error: {problem}", ClocsWarning, stacklevel=2)
    if path is not None:
        return _load(SeedsFolder(path), done.report.seeds, done.failed)
    return SeedRuns(None, {seed: as_run(one, None) for seed, one in done.runs.items()}, done.report, done.failed)


def _keeper(plan: Plan, seeds: range, path: Path) -> SeedsKeeper | None:
    """Choose the keeper of several seeds; None where the folder already holds them, finished."""
    if not (path / SEEDS).exists():
        refuse_taken(path)
        return SeedsFolderKeeper(path)
    folder, tables, there = open_seeds_folder(path)
    if there != seeds:
        raise RunFolderError(
            f"{path} holds seeds {there[0]} to {there[-1]}, and {seeds[0]} to {seeds[-1]} are asked for. Choose "
            "another folder with `out=...`."
        )
    refuse_other_run(path, tables, plan)
    return None if is_finished(folder, seeds) else SeedsFolderKeeper(path, all_tables(tables, seeds))


def _load(folder: SeedsFolder, seeds: Sequence[int], failed: Mapping[int, Exception]) -> SeedRuns:
    runs = {seed: load_run(folder.run(seed).path) for seed in seeds}
    return SeedRuns(folder.path, runs, folder.read_report(), failed)
