"""Choose the recordings of a run: a data set with its options, the general data settings, and the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import attrs

from clocs_core.contracts.offers import Dataset, Defaults, Offer
from clocs_core.contracts.records import Column, Framing, Task
from clocs_core.contracts.returned import returned
from clocs_core.errors import SettingsError, UnknownName, neighbours
from clocs_core.plan.layers import Assignment, Layers, as_assignments
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.settings.sections import DataSettings
from clocs_core.settings.toml_file import Tables

O = TypeVar("O", bound=Offer)  # noqa: E741  O for offer


@attrs.frozen
class Chosen(Generic[O]):
    """An offer and its options. owner: the plugin that offers it, for messages."""

    offer: O
    options: Any
    owner: str = attrs.field(default="", eq=False)


@attrs.frozen
class DataPlan:
    """A data set with its settings and its task. Channels and task are resolved.

    names: names that an earlier run gave all channels, for files that only number them.
    fit: number of frames that the shortest recording must have, where nobody asked for a framing; 0: cut as asked.
    columns: facts about recordings that the method needs.
    """

    dataset: Chosen[Dataset]
    data: DataSettings
    task: Task
    names: tuple[str, ...] = attrs.field(default=(), eq=False)  # does not select channels
    fit: int = attrs.field(default=0, eq=False)
    columns: tuple[Column, ...] = attrs.field(default=(), eq=False)

    @property
    def name(self) -> str:
        """The data set's name."""
        return self.dataset.offer.name


def resolve_data(
    catalogue: Catalogue, name: str, tables: Tables, assignments: Sequence[str | Assignment] = ()
) -> DataPlan:
    """Resolve the recordings of a data set from its name and the tables [data] and [dataset]."""
    dataset = catalogue.datasets.get(name).offer
    classes: dict[str, type[Any]] = {"data": DataSettings, "dataset": dataset.options}
    layers = Layers({}, default_tables(dataset), tables, as_assignments(assignments))
    layers = layers.checked(classes)
    chosen = Chosen(dataset, layers.table("dataset", dataset.options))
    data, task = settle(dataset, layers.table("data", DataSettings))
    return DataPlan(chosen, data, task)


def settle(dataset: Dataset, data: DataSettings) -> tuple[DataSettings, Task]:
    """Replace presets and defaults by the names they stand for; return the settings and the task.

    The constant of an earlier run is left out where it is not used: it is inherited with the table [data].
    """
    task = _task_of(dataset, data.task)
    constant = data.constant if data.normalise == "constant" else None
    return attrs.evolve(data, task=task.name, channels=_channels_of(dataset, data.channels), constant=constant), task


def refuse_idle_constant(data: DataSettings, given: Sequence[Assignment]) -> None:
    """Raise SettingsError where a constant is given that the normalisation does not use."""
    if data.normalise != "constant" and any(one.name == "constant" and one.value is not None for one in given):
        raise SettingsError(
            f"`constant=...` is the divisor of `normalise='constant'`, and this is normalise={data.normalise}; add "
            "`normalise='constant'`, or leave `constant` out."
        )


def default_tables(dataset: Dataset) -> Tables:
    """Return the default settings of a data set that differ from the usual ones; the others are left to the method."""
    ours, usual = dataset.defaults, Defaults()
    channels = [part.strip() for part in ours.channels.split(",") if part.strip()]
    tables = {"data": ("split", "normalise"), "train": ("batch_size", "learning_rate", "epochs")}
    found = {
        table: {name: getattr(ours, name) for name in names if getattr(ours, name) != getattr(usual, name)}
        for table, names in tables.items()
    }
    return {**found, "data": {**found["data"], **({"channels": channels} if channels else {})}}


def inherit_data(
    kept: Mapping[str, object], given: Mapping[str, object], named: Sequence[Assignment] = ()
) -> dict[str, object]:
    """Merge `given` into the table [data] of an earlier run; `named` are the `-o` assignments beside it.

    A data root given now wins over the earlier `root` of the data set; else the old recordings would be read silently.
    """
    moved = "data_root" in given or any(one.table in ("", "data") and one.name == "data_root" for one in named)
    return {**{name: value for name, value in kept.items() if not (moved and name == "root")}, **given}


def framing_of(dataset: Dataset, segments: int) -> Framing:
    """Return how a data set cuts its recordings for a method that contrasts `segments` segments."""
    return returned(dataset.framing(segments), Framing, dataset, "framing")


def _task_of(dataset: Dataset, name: str) -> Task:
    tasks = {task.name: task for task in dataset.tasks}
    if not name:
        return dataset.tasks[0]
    if name not in tasks:
        raise UnknownName(f"Data set {dataset.name!r} has no task {name!r}.{neighbours(name, tasks)}")
    return tasks[name]


def _channels_of(dataset: Dataset, asked: tuple[str, ...]) -> tuple[str, ...]:
    if len(asked) == 1 and asked[0] in dataset.presets:
        return dataset.presets[asked[0]]
    names = asked or dataset.channels
    for name in names:
        if dataset.channels and name not in dataset.channels:
            known = [*dataset.presets, *dataset.channels]
            raise UnknownName(f"Data set {dataset.name!r} has no channel {name!r}.{neighbours(name, known)}")
    if len(set(names)) < len(names):
        raise SettingsError(f"A channel is named twice in {', '.join(names)}.")
    return names
