"""The hooks, in the order in which they are called. `docs/hooks.md` has one heading for each.

A plugin is a module named by an entry point of the group `clocs`. It marks functions of these names with
`clocs_core.hookimpl`; each may ask for fewer arguments than the spec has, never for others. It may say in `CLOCS_API`
for which version of them it was written.
"""

# mypy: disable-error-code="empty-body"
# A spec is a signature and a promise; pluggy never calls it, so it has nothing to return.

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

from clocs_core.contracts.offers import (
    Dataset,
    Encoder,
    Loss,
    Method,
    Metric,
    Objective,
    Perturbation,
    ViewGenerator,
)

if TYPE_CHECKING:
    import click

    from clocs_core.contracts.events import EpochDone, RunDone, RunStarted

PROJECT = "clocs"

API_VERSION = (1, 0)
"""(major, minor) of all that a plugin is written against: the hooks, the offers and the rest of the public names.

The minor rises when something is added, the major when a plugin has to change; `docs/stability.md` says what counts.
"""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin as the implementation of the hook that has its name."""


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
    """Offer objectives: what is minimised where it has state. Called once, after `clocs_losses`."""


@hookspec
def clocs_methods() -> Iterable[Method]:
    """Offer methods, put together from the offers above by name. Called once, after `clocs_objectives`."""


@hookspec
def clocs_metrics() -> Iterable[Metric]:
    """Offer metrics. Called once, after `clocs_methods`; every metric that suits a task is reported."""


# ------------------------------------------------------------------------------ the command line, as it is built


@hookspec
def clocs_commands(cli: click.Group) -> None:
    """Add commands to `clocs`. Called once, while the command line is built, before any argument is read."""


# ----------------------------------------------------------------------------------- events, in the order of a run


@hookspec
def clocs_run_started(run: RunStarted) -> None:
    """A run is about to train, or to go on. Called once per process that trains, before its first epoch."""


@hookspec
def clocs_epoch_done(run: RunStarted, epoch: EpochDone) -> None:
    """An epoch is over. Called after the epoch's metrics and checkpoint are safely on disk."""


@hookspec
def clocs_run_done(run: RunStarted, done: RunDone) -> None:
    """The report is written. Called once, last. A run that is killed and resumed calls it once."""
