"""The hooks, in the order in which they are called. `docs/hooks.md` has one heading for each.

A plugin is a module named by an entry point of the group `clocs`. It marks functions of these names with
`clocs_core.hookimpl`. A function may take fewer arguments than the spec has, but no others. `CLOCS_API` in the module
may state the API version that the plugin was written for.
"""

# mypy: disable-error-code="empty-body"
# A spec is a signature and a promise; pluggy never calls it, so it has nothing to return.

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

from clocs_core.contracts.grids import GridOffer
from clocs_core.contracts.jobs import ExecutorOffer
from clocs_core.contracts.offers import (
    Dataset,
    Encoder,
    Loss,
    Method,
    Objective,
    Perturbation,
    ViewGenerator,
)
from clocs_core.contracts.result_offers import (
    Metric,
    Protocol,
    ReportSection,
    Tracker,
)

if TYPE_CHECKING:
    import click

    from clocs_core.contracts.events import EpochDone, EvaluationDone, RunDone, RunStarted, RunStopped

PROJECT = "clocs"

API_VERSION = (1, 3)
"""(major, minor) version of the plugin API: the hooks, the offers and the other public names.

The minor rises with an addition, the major when plugins have to change; `docs/stability.md` gives the rules.
"""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a plugin's function as the implementation of the hook of the same name."""


# ------------------------------------------------------------------ offers: once per process, for the catalogue


@hookspec
def clocs_datasets() -> Iterable[Dataset]:
    """Offer data sets. Called once, before anything else, when a command first needs the catalogue."""


@hookspec
def clocs_views() -> Iterable[ViewGenerator]:
    """Offer view generators. Called once, after `clocs_datasets`."""


@hookspec
def clocs_perturbations() -> Iterable[Perturbation]:
    """Offer perturbations of signals. Called once, after `clocs_views`."""


@hookspec
def clocs_encoders() -> Iterable[Encoder]:
    """Offer encoders. Called once, after `clocs_perturbations`."""


@hookspec
def clocs_losses() -> Iterable[Loss]:
    """Offer losses: pure functions of embeddings and patient ids. Called once, after `clocs_encoders`."""


@hookspec
def clocs_objectives() -> Iterable[Objective]:
    """Offer objectives: losses that have state. Called once, after `clocs_losses`."""


@hookspec
def clocs_methods() -> Iterable[Method]:
    """Offer methods, which combine the offers above by name. Called once, after `clocs_objectives`."""


@hookspec
def clocs_metrics() -> Iterable[Metric]:
    """Offer metrics. Called once, after `clocs_methods`; every metric that suits a task is reported."""


@hookspec
def clocs_protocols() -> Iterable[Protocol]:
    """Offer protocols: ways to evaluate an encoder on labels. Called once, after `clocs_metrics`."""


@hookspec
def clocs_report_sections() -> Iterable[ReportSection]:
    """Offer sections of the report of a run. Called once, after `clocs_protocols`."""


@hookspec
def clocs_listeners() -> Iterable[Tracker]:
    """Offer listeners that have options. Called once, after `clocs_report_sections`."""


@hookspec
def clocs_grids() -> Iterable[GridOffer]:
    """Offer grids of experiments by name. Called once, after `clocs_listeners`."""


@hookspec
def clocs_executors() -> Iterable[ExecutorOffer]:
    """Offer executors, which run the jobs of a grid, such as on a cluster. Called once, after `clocs_grids`."""


# ------------------------------------------------------------------- the command line, while it is being built


@hookspec
def clocs_commands(cli: click.Group) -> None:
    """Add commands to `clocs`. Called once, while the command line is built, before any argument is read."""


# ----------------------------------------------------------------------------------- events, in the order of a run


@hookspec
def clocs_run_started(run: RunStarted) -> None:
    """React to a run that starts or resumes. Called once per process that trains, before its first epoch."""


@hookspec
def clocs_epoch_done(run: RunStarted, epoch: EpochDone) -> None:
    """React to a finished epoch. Called after the epoch's metrics and checkpoint are on disk."""


@hookspec
def clocs_run_stopped(run: RunStarted, stopped: RunStopped) -> None:
    """React to a run that fails or is interrupted after it has started. Called once, instead of `clocs_run_done`."""


@hookspec
def clocs_run_done(run: RunStarted, done: RunDone) -> None:
    """React to a finished run. Called once, after the report is written, also for a run that was resumed."""


@hookspec
def clocs_evaluation_done(done: EvaluationDone) -> None:
    """React to a finished evaluation of `clocs evaluate`. Called once, after its report is written."""
