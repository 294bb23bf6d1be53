"""From names and tables to a plan: every name resolved to an offer, every table to a record, before anything runs.

Later layers win: defaults < the method's presets < the data set's defaults < a settings file and flags < `-o`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import attrs

from clocs_core.data.records import Framing, Task
from clocs_core.errors import SettingsError, UnknownName, neighbours
from clocs_core.extend.catalogue import Catalogue
from clocs_core.extend.offers import (
    Dataset,
    Encoder,
    Loss,
    Method,
    Metric,
    Needs,
    Objective,
    Offer,
    Perturbation,
    ViewGenerator,
)
from clocs_core.options import field_types, from_text, plain, structure
from clocs_core.settings import DataSettings, EvaluateSettings, RunSettings, Tables, TrainSettings

__all__ = ["Chosen", "Plan", "resolve"]

O = TypeVar("O", bound=Offer)  # noqa: E741  O for offer


@attrs.frozen
class Chosen(Generic[O]):
    """An offer with the options it will be used with."""

    offer: O
    options: Any


@attrs.frozen(kw_only=True)
class Plan:
    """All that a run is made of. It can be pickled, as long as the offers' functions are at module level."""

    run: RunSettings
    data: DataSettings
    train: TrainSettings
    evaluate: EvaluateSettings
    pretrain_framing: Framing
    evaluate_framing: Framing
    method: Method
    dataset: Chosen[Dataset]
    views: Chosen[ViewGenerator]
    encoder: Chosen[Encoder]
    loss: Chosen[Loss] | None
    objective: Chosen[Objective] | None
    perturbations: tuple[Chosen[Perturbation], ...]
    metrics: tuple[Metric, ...]
    task: Task

    @property
    def needs(self) -> Needs:
        """What one instance of the method is."""
        return self.views.offer.needs(self.views.options)

    def tables(self) -> Tables:
        """The effective settings as plain tables; `resolve` makes the same plan of them."""
        parts: dict[str, Any] = {
            "run": self.run,
            "data": self.data,
            "train": self.train,
            "evaluate": self.evaluate,
            "pretrain_framing": self.pretrain_framing,
            "evaluate_framing": self.evaluate_framing,
            "dataset": self.dataset.options,
            "views": self.views.options,
            "encoder": self.encoder.options,
        }
        if self.loss is not None:
            parts["loss"] = self.loss.options
        if self.objective is not None:
            parts["objective"] = self.objective.options
        parts |= {chosen.offer.name: chosen.options for chosen in self.perturbations}
        return {name: plain(part) for name, part in parts.items()}


def resolve(catalogue: Catalogue, tables: Tables, assignments: Sequence[str] = ()) -> Plan:
    """Make a plan of settings tables and `-o` assignments ("temperature=0.05" or "loss.temperature=0.05")."""
    given = [_split_assignment(text) for text in assignments]
    run_given = [one for one in given if one.table == "run" or (not one.table and one.name in field_types(RunSettings))]
    run = structure(RunSettings, _overlaid(RunSettings, tables.get("run", {}), run_given), "run")
    if not run.method or not run.dataset:
        missing = "a method (`--plugin NAME`)" if not run.method else "a data set (`--dataset NAME`)"
        raise SettingsError(f"A run needs {missing}. `clocs plugins` lists what is installed.")

    method = catalogue.methods.get(run.method).offer
    dataset = catalogue.datasets.get(run.dataset).offer
    run = attrs.evolve(
        run,
        encoder=run.encoder or method.encoder,
        perturbations=method.perturbations if run.perturbations is None else run.perturbations,
    )
    offers: dict[str, Offer] = {
        "dataset": dataset,
        "views": catalogue.views.get(method.views).offer,
        "encoder": catalogue.encoders.get(run.encoder).offer,
    }
    if method.loss is not None:
        offers["loss"] = catalogue.losses.get(method.loss).offer
    if method.objective is not None:
        offers["objective"] = catalogue.objectives.get(method.objective).offer
    for name in run.perturbations or ():
        if name in _PARTS:
            raise SettingsError(
                f"The perturbation {name!r} cannot be used: its options would stand in the table [{name}], which is "
                "taken. Its plugin must give it another name."
            )
        offers[name] = catalogue.perturbations.get(name).offer

    layers = _Layers(method, _default_tables(dataset), tables, given)
    classes: dict[str, type[Any]] = {"run": RunSettings, **_CORE}
    classes |= {name: offer.options for name, offer in offers.items()}
    layers.refuse_unknown(classes)
    options = {name: layers.table(name, offer.options) for name, offer in offers.items()}
    needs = catalogue.views.get(method.views).offer.needs(options["views"])
    layers.defaults["pretrain_framing"] = plain(dataset.framing(needs.segments))
    layers.defaults["evaluate_framing"] = plain(dataset.framing(1))
    core = {name: layers.table(name, cls) for name, cls in _CORE.items()}
    task = _task_of(dataset, core["data"].task)
    channels = _channels_of(dataset, core["data"].channels)
    _refuse_too_few(method, needs, channels)
    core["data"] = attrs.evolve(core["data"], task=task.name, channels=channels)
    _same_frame_length(core["pretrain_framing"], core["evaluate_framing"])

    def chosen(name: str) -> Any:
        return Chosen(offers[name], options[name]) if name in offers else None

    return Plan(
        run=run,
        **core,
        method=method,
        **{name: chosen(name) for name in ("dataset", "views", "encoder", "loss", "objective")},
        perturbations=tuple(chosen(name) for name in run.perturbations or ()),
        metrics=tuple(item.offer for item in catalogue.metrics),
        task=task,
    )


_CORE: dict[str, type[Any]] = {
    "data": DataSettings,
    "train": TrainSettings,
    "evaluate": EvaluateSettings,
    "pretrain_framing": Framing,
    "evaluate_framing": Framing,
}


_PARTS = {"run", *_CORE, "dataset", "views", "encoder", "loss", "objective"}
"""The tables of a settings file that are there whatever is perturbed."""


@attrs.frozen
class _Assignment:
    table: str
    name: str
    text: str


@attrs.frozen
class _Layers:
    """Where the values of a table come from, lowest first."""

    method: Method
    defaults: Tables
    tables: Tables
    given: list[_Assignment]

    def table(self, name: str, cls: type[Any]) -> Any:
        low = {**self.method.presets.get(name, {}), **self.defaults.get(name, {}), **self.tables.get(name, {})}
        mine = [one for one in self.given if one.table in ("", name) and one.name in field_types(cls)]
        return structure(cls, _overlaid(cls, low, mine), name)

    def refuse_unknown(self, classes: Mapping[str, type[Any]]) -> None:
        """Every table of the file and every assignment must belong to exactly one class of this run."""
        for name in self.tables:
            if name not in classes:
                raise SettingsError(
                    f"The settings have a table [{name}] that this run has no use for.{neighbours(name, classes)}"
                )
        for one in self.given:
            holders = [name for name, cls in classes.items() if one.name in field_types(cls)]
            if one.table and one.table not in classes:
                raise SettingsError(
                    f"-o {one.table}.{one.name}: this run has no part {one.table!r}.{neighbours(one.table, classes)}"
                )
            if one.table and one.table not in holders:
                raise SettingsError(
                    f"-o {one.table}.{one.name}: {one.table!r} has no option {one.name!r}."
                    f"{neighbours(one.name, field_types(classes[one.table]))}"
                )
            if not holders:
                known = [field for cls in classes.values() for field in field_types(cls)]
                raise SettingsError(
                    f"-o {one.name}: no part of this run has an option {one.name!r}.{neighbours(one.name, known)}"
                )
            # Tables of one class, such as the two framings, are set together.
            if not one.table and len({classes[name] for name in holders}) > 1:
                ways = " or ".join(f"-o {name}.{one.name}=…" for name in holders)
                raise SettingsError(f"-o {one.name} is ambiguous: write {ways}.")


def _split_assignment(text: str) -> _Assignment:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise SettingsError(f"-o {text}: expected NAME=VALUE or PART.NAME=VALUE.")
    table, _, field = name.strip().rpartition(".")
    return _Assignment(table, field, value.strip())


def _overlaid(cls: type[Any], low: Mapping[str, object], given: Sequence[_Assignment]) -> dict[str, object]:
    kinds = field_types(cls)
    return {**low, **{one.name: from_text(kinds[one.name], one.text) for one in given if one.name in kinds}}


def _default_tables(dataset: Dataset) -> Tables:
    ours = dataset.defaults
    channels = [part.strip() for part in ours.channels.split(",") if part.strip()]
    return {
        "data": {"split": ours.split, "normalise": ours.normalise, "channels": channels},
        "train": {"batch_size": ours.batch_size, "learning_rate": ours.learning_rate, "epochs": ours.epochs},
    }


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


def _refuse_too_few(method: Method, needs: Needs, channels: tuple[str, ...]) -> None:
    if channels and len(channels) < needs.least_channels:
        raise SettingsError(
            f"Method {method.name!r} needs at least {needs.least_channels} channels, got {', '.join(channels)}; "
            "name more with `--channels`, or choose another method."
        )


def _same_frame_length(pretrain: Framing, evaluate: Framing) -> None:
    if pretrain.frame_samples != evaluate.frame_samples:
        raise SettingsError(
            f"Frames are {pretrain.frame_samples} samples long in pre-training and {evaluate.frame_samples} in "
            "evaluation, but one encoder reads both; `-o frame_samples=…` sets them together."
        )
