"""Make the plan of a run: resolve every name to an offer and every table to a record, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from clocs_core.contracts.offers import (
    Dataset,
    Encoder,
    Loss,
    Method,
    Needs,
    Objective,
    Offer,
    Perturbation,
    Reader,
    ViewGenerator,
)
from clocs_core.contracts.records import Framing, Task
from clocs_core.contracts.result_offers import Metric
from clocs_core.contracts.returned import returned
from clocs_core.errors import SettingsError, UnknownName
from clocs_core.plan.data import (
    Chosen,
    DataPlan,
    default_tables,
    framing_of,
    inherit_data,
    refuse_idle_constant,
    settle,
)
from clocs_core.plan.extras import Extras, choose_extras, offered_extras
from clocs_core.plan.frame_seconds import set_seconds, take_seconds
from clocs_core.plan.layers import Assignment, Layers, as_assignments
from clocs_core.plan.method import add_presets, choose_method
from clocs_core.plan.metrics import choose_metrics
from clocs_core.plan.parts import with_parts
from clocs_core.plugins.catalogue import Catalogue, Shelf
from clocs_core.settings.options import plain, structure
from clocs_core.settings.sections import DataSettings, RunSettings, ScoringSettings, TrainSettings
from clocs_core.settings.toml_file import Tables


@attrs.frozen
class EncoderPart:
    """One encoder of a run, and the part of a frame that it reads.

    name: that of its reader; empty for the encoder of a method without readers. inputs: channels that it reads at once.
    average: it reads means of so many adjacent samples.
    """

    name: str = ""
    encoder: Chosen[Encoder] = attrs.field(kw_only=True)
    channels: tuple[str, ...] = ()
    inputs: int = 1
    average: int = 1


@attrs.frozen(kw_only=True)
class Plan:
    """The offers and settings of one run, resolved. Can be pickled if the offers' functions are at module level."""

    run: RunSettings
    data: DataSettings
    train: TrainSettings
    evaluate: ScoringSettings
    pretrain_framing: Framing
    evaluate_framing: Framing
    method: Method
    dataset: Chosen[Dataset]
    views: Chosen[ViewGenerator]
    encoder: Chosen[Encoder]
    readers: tuple[Chosen[Encoder], ...] = ()  # the architecture of each reader of `needs`
    loss: Chosen[Loss] | None
    objective: Chosen[Objective] | None
    perturbations: tuple[Chosen[Perturbation], ...]
    metrics: tuple[Metric, ...]
    task: Task
    fit: int = attrs.field(default=0, eq=False)  # as in DataPlan; 0 once the recordings are known
    extras: Extras = attrs.field(factory=Extras, eq=False)

    @property
    def recordings(self) -> DataPlan:
        """The part of the plan that preparing recordings needs."""
        columns = self.needs.columns + (() if self.objective is None else self.objective.offer.columns)
        return DataPlan(self.dataset, self.data, self.task, fit=self.fit, columns=columns)

    @property
    def needs(self) -> Needs:
        """The instances that the method needs, and the input of its encoders."""
        return _needs_of(self.views.offer, self.views.options)

    def encoder_parts(self, channels: tuple[str, ...]) -> tuple[EncoderPart, ...]:
        """Return the encoders that are evaluated and what each reads, of these chosen channels."""
        needs = self.needs
        if not needs.readers:
            own = needs.of_first(channels)
            inputs = len(own) if needs.encoder_channels == "all" else 1
            return (EncoderPart(encoder=self.encoder, channels=own, inputs=inputs),)
        spans = [channels[slice(*reader.channels)] for reader in needs.readers]
        return tuple(
            EncoderPart(reader.name, own, len(own), reader.average, encoder=encoder)
            for reader, encoder, own in zip(needs.readers, self.readers, spans, strict=True)
        )

    def tables(self) -> Tables:
        """Return the effective settings as plain tables; `resolve` makes the same plan from them."""
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
        names = self.run.perturbations or ()  # as they were asked for, perhaps with a distribution in front
        parts |= {name: chosen.options for name, chosen in zip(names, self.perturbations, strict=True)}
        return {name: plain(part) for name, part in parts.items()} | self.extras.tables


def _needs_of(views: ViewGenerator, options: Any) -> Needs:
    return returned(views.needs(options), Needs, views, "needs")


def resolve(catalogue: Catalogue, tables: Tables, assignments: Sequence[str | Assignment] = ()) -> Plan:
    """Make a plan from settings tables and settings by name ("temperature=0.05" or "loss.temperature=0.05")."""
    seconds, given = take_seconds(as_assignments(assignments))
    if "data" in tables:
        tables = {**tables, "data": inherit_data(tables["data"], {}, given)}
    run, method, dataset, presets = choose_method(catalogue, tables, given)
    offers = _choose_parts(catalogue, run, method, dataset)
    layers = Layers(presets, default_tables(dataset), tables, given)
    classes: dict[str, type[Any]] = {
        "run": RunSettings,
        **_CORE,
        **{name: offer.options for name, offer in offers.items()},
    }
    extras = offered_extras(catalogue, classes)
    layers = layers.checked(classes, {name: item.offer.options for name, item in extras.items()})
    add_presets(layers, catalogue.encoders.get(run.encoder).offer, classes)
    options = {name: layers.table(name, offer.options) for name, offer in offers.items()}
    needs = _needs_of(catalogue.views.get(method.views).offer, options["views"])
    layers.defaults["pretrain_framing"] = plain(framing_of(dataset, needs.segments))
    layers.defaults["evaluate_framing"] = plain(framing_of(dataset, 1))
    layers = set_seconds(layers, seconds, _FRAMINGS)
    fit = 0 if _asks_for_framing(layers) else max(2, needs.segments)
    core = {name: layers.table(name, cls) for name, cls in _CORE.items()}
    core["data"], task = settle(dataset, core["data"])
    refuse_idle_constant(core["data"], given)
    refuse_too_few(method, needs, core["data"].channels, dataset)
    _refuse_alike(method, needs, run.perturbations or (), catalogue)
    _refuse_contrast_batch(method, core["train"], run, offers.get("objective"))
    for name in {reader.encoder or run.encoder for reader in needs.readers} or {run.encoder}:
        _refuse_no_sequence(method, offers.get("objective"), name, catalogue)
    _same_frame_length(core["pretrain_framing"], core["evaluate_framing"])

    def chosen(name: str) -> Any:
        owner = catalogue.encoders.get(run.encoder).owner if name == "encoder" else ""
        return Chosen(offers[name], options[name], owner) if name in offers else None

    return Plan(
        run=run,
        **core,
        method=method,
        **{name: chosen(name) for name in ("dataset", "views", "encoder", "loss", "objective")},
        readers=_choose_readers(method, needs, chosen("encoder"), catalogue),
        perturbations=tuple(chosen(name) for name in run.perturbations or ()),
        metrics=choose_metrics(catalogue, core["evaluate"].metrics, task),
        task=task,
        fit=fit,
        extras=choose_extras(extras, layers),
    )


def _choose_readers(
    method: Method, needs: Needs, own: Chosen[Encoder], catalogue: Catalogue
) -> tuple[Chosen[Encoder], ...]:
    """Return the architecture of each reader of a method: the one that it names, or that of the run."""

    def choose(reader: Reader) -> Chosen[Encoder]:
        if not reader.encoder:
            return own
        try:
            item = catalogue.encoders.get(reader.encoder)
        except UnknownName as problem:
            raise UnknownName(
                f"Method {method.name!r} reads {reader.name!r} with an encoder that is not there. {problem}"
            ) from None
        options = structure(item.offer.options, reader.options, f"encoder of {reader.name}")
        return Chosen(item.offer, options, item.owner)

    return tuple(map(choose, needs.readers))


def _asks_for_framing(layers: Layers) -> bool:
    """Return whether the user set the length or the time scale of frames, by a settings file or by name."""
    ways = ("frame_samples", "sampling_rate", "source_samples", "frames_per_record")
    given = any(one.name in ways and one.table in ("", *_FRAMINGS) for one in layers.given)
    return given or any(name in layers.tables for name in _FRAMINGS)


_FRAMINGS = ("pretrain_framing", "evaluate_framing")


def _choose_parts(catalogue: Catalogue, run: RunSettings, method: Method, dataset: Dataset) -> dict[str, Offer]:
    """Return the offers that a run uses, by the table of their options."""
    offers: dict[str, Offer] = {
        "dataset": dataset,
        "views": _part_of(method, catalogue.views, method.views),
        "encoder": catalogue.encoders.get(run.encoder).offer,
    }
    if method.loss is not None:
        offers["loss"] = _part_of(method, catalogue.losses, method.loss)
    if method.objective is not None:
        objective = _part_of(method, catalogue.objectives, method.objective)
        assert isinstance(objective, Objective)  # each kind has its own shelf
        offers["objective"] = with_parts(objective, catalogue)
    for name in run.perturbations or ():
        if name in _PARTS:
            raise SettingsError(
                f"The perturbation {name!r} cannot be used: its options would stand in the table [{name}], which is "
                "taken. Its plugin must give it another name."
            )
        offers[name] = catalogue.perturbations.get(name).offer
    return offers


_CORE: dict[str, type[Any]] = {
    "data": DataSettings,
    "train": TrainSettings,
    "evaluate": ScoringSettings,
    "pretrain_framing": Framing,
    "evaluate_framing": Framing,
}


_PARTS = {"run", *_CORE, "dataset", "views", "encoder", "loss", "objective"}
"""The tables of a settings file that do not depend on the perturbations."""


def _part_of(method: Method, shelf: Shelf[Any], name: str) -> Offer:
    try:
        offer: Offer = shelf.get(name).offer
    except UnknownName as problem:
        raise UnknownName(f"Method {method.name!r} uses a part that is not installed. {problem}") from None
    return offer


def _refuse_alike(method: Method, needs: Needs, names: tuple[str, ...], catalogue: Catalogue) -> None:
    """Raise SettingsError where the perturbations of a run make identical views."""
    random = [item.offer.name for item in catalogue.perturbations if item.offer.random]
    if needs.perturbations == "some" and not names:
        raise SettingsError(
            f"Method {method.name!r} is about perturbations, and the run has none; name some with "
            "`perturbations=...`, or leave the method its own."
        )
    if needs.perturbations == "random" and not set(names) & set(random):
        same = f"{', '.join(names)} makes the same of both" if names else "without perturbations both are the same"
        raise SettingsError(
            f"Method {method.name!r} contrasts two copies of a signal, and {same}; add a "
            f"perturbation that draws at random ({', '.join(random) or 'none is installed'}) with "
            "`perturbations=...`, or have one copy perturbed only, where the method's views have an option for it."
        )


def _refuse_contrast_batch(method: Method, train: TrainSettings, run: RunSettings, objective: Offer | None) -> None:
    """Raise SettingsError where a contrast over several batches is impossible or useless."""
    if train.contrast_batch is None:
        return
    if isinstance(objective, Objective) and not objective.of_embeddings:
        raise SettingsError(
            f"Method {method.name!r} cannot contrast {train.contrast_batch} instances a batch at a time: its objective "
            f"{method.objective!r} reads more of the signals than their embeddings. Leave out `contrast_batch`."
        )
    if train.contrast_batch < train.batch_size:
        raise SettingsError(
            f"A contrast of {train.contrast_batch} instances is smaller than the batches of {train.batch_size} that "
            "it would be made of; use a smaller `batch_size`."
        )
    if run.step == "captured":
        raise SettingsError("`step='captured'` and `contrast_batch` do not go together; leave one of them out.")


def _refuse_no_sequence(method: Method, objective: Offer | None, encoder: str, catalogue: Catalogue) -> None:
    """Raise SettingsError where an objective reads the encoder's sequence, and the encoder has none."""
    if not isinstance(objective, Objective) or not objective.sequence:
        return
    if not catalogue.encoders.get(encoder).offer.sequence:
        able = sorted(item.offer.name for item in catalogue.encoders if item.offer.sequence)
        if method.encoder in able:  # an objective may need more than a sequence, and the method's own encoder has it
            able = [method.encoder]
        instead = " or ".join(f"`encoder={name!r}`" for name in able) or "a plugin that offers such an encoder"
        raise SettingsError(
            f"Method {method.name!r} reads an encoder's sequence over time, and the encoder {encoder!r} has none; "
            f"use {instead}."
        )


def refuse_too_few(method: Method, needs: Needs, channels: tuple[str, ...], dataset: Dataset) -> None:
    """Raise SettingsError where a method needs more channels than chosen; no channels chosen: only files know them."""
    least = needs.channels_at_least
    if channels and len(channels) < least:
        more = not dataset.channels or len(dataset.channels) >= least
        way_out = "name more with `channels=...`, or choose" if more else f"{dataset.name} has no more, so choose"
        raise SettingsError(
            f"Method {method.name!r} needs at least {least} channels, got {len(channels)} ({', '.join(channels)}); "
            f"{way_out} another method."
        )


def _same_frame_length(pretrain: Framing, evaluate: Framing) -> None:
    if pretrain.frame_samples != evaluate.frame_samples:
        raise SettingsError(
            f"Frames are {pretrain.frame_samples} samples long in pre-training and {evaluate.frame_samples} in "
            "evaluation, but one encoder reads both; `frame_samples=...` sets them together."
        )
