"""Resolve names and tables to the plan of an evaluation: the encoder, the data set and the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import attrs
from torch import Tensor

from clocs_core.contracts.offers import (
    Dataset,
    Encoder,
)
from clocs_core.contracts.records import Framing, Task
from clocs_core.contracts.result_offers import (
    FINETUNE,
    LINEAR,
    LINEAR_MODELS,
    Metric,
    Protocol,
)
from clocs_core.contracts.scores import RANDOM
from clocs_core.errors import SettingsError
from clocs_core.plan.chosen_protocol import ChosenProtocol, LinearProtocol, choose_protocol
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
from clocs_core.plan.layers import Assignment, Layers, as_assignments, overlaid
from clocs_core.plan.method import refuse_control_name
from clocs_core.plan.metrics import choose_metrics
from clocs_core.plan.pretrained import Pretrained
from clocs_core.plan.pretraining import EncoderPart, Plan
from clocs_core.plan.protocols import OWN, find_protocol, refuse_no_sequence, refuse_other_task
from clocs_core.plugins.catalogue import Catalogue, Offered
from clocs_core.settings.options import field_types, plain, structure
from clocs_core.settings.sections import DataSettings, EvaluationSettings, FinetuneSettings, ScoringSettings
from clocs_core.settings.toml_file import Tables, dump_tables


@attrs.frozen(kw_only=True, eq=False)
class EvaluationPlan:
    """The encoder, data set, task and settings of one evaluation, resolved."""

    settings: EvaluationSettings
    data: DataSettings
    protocol: ChosenProtocol
    scoring: ScoringSettings
    framing: Framing
    dataset: Chosen[Dataset]
    encoder: Pretrained
    task: Task
    metrics: tuple[Metric, ...]
    extras: Extras = attrs.field(factory=Extras)

    @property
    def recordings(self) -> DataPlan:
        """The part of the plan that preparing recordings needs."""
        run = self.encoder.run_channels if self.encoder.dataset == self.dataset.offer.name else ()
        return DataPlan(self.dataset, self.data, self.task, run)

    @property
    def inits(self) -> tuple[str, ...]:
        """The inits that are evaluated; the last is always the control `random`."""
        return (self.encoder.init, RANDOM) if self.encoder.weights else (RANDOM,)

    def sentence(self) -> str:
        """Describe the protocol for a reader of the report."""
        of = self.settings.fraction_of
        rows = "recordings" if (self.protocol.offer.rows, of) == ("record", "frames") else of
        share = f"a share F of the labelled training {rows}"
        return self.protocol.sentence(self.task, share, self.scoring.part)

    def tables(self) -> Tables:
        """Return the effective settings as plain tables. They name the encoder by its file's hash, not its path."""
        encoder = self.encoder
        parts: dict[str, Any] = {"evaluation": self.settings, "data": self.data, "evaluate": self.scoring}
        parts |= self.protocol.tables()
        parts |= {"framing": self.framing, "dataset": self.dataset.options, "encoder": encoder.encoder.options}
        made = {name: plain(part) for name, part in parts.items()}
        if not self.scoring.metrics:
            del made["evaluate"]["metrics"]  # earlier versions did not have it: their folders keep their names
        made["evaluation"] |= {"init": encoder.init, "encoder_sha256": encoder.sha256}
        if self.scoring.C == 1:
            del made["evaluate"]["C"]  # earlier versions did not have it: their folders keep their names
        if self.scoring.permutations == ScoringSettings().permutations:
            del made["evaluate"]["permutations"]  # as above
        del made["evaluate"]["pictures"]  # they change no result
        return made

    @property
    def name(self) -> str:
        """Folder name; ends in a hash of the settings."""
        digest = sha256(dump_tables(self.tables()).encode()).hexdigest()[:8]
        return f"{self.dataset.offer.name}-{self.protocol.offer.name}-{digest}"


def resolve_evaluation(
    catalogue: Catalogue, opened: Pretrained | None, tables: Tables, assignments: Sequence[str | Assignment] = ()
) -> EvaluationPlan:
    """Make a plan from an encoder (None: an untrained one, by name), settings tables and `-o` assignments.

    Later layers win: the data set's defaults; the run's settings, if it is the run's data set; tables; `-o`.
    """
    seconds, given = take_seconds(as_assignments(assignments))
    if opened is not None:
        refuse_control_name(opened.init)
    asked = _asked(opened, tables, given)
    if not asked.dataset:
        raise SettingsError("An evaluation needs a data set (`dataset=NAME`). `clocs data list` has them all.")
    dataset = catalogue.datasets.get(asked.dataset).offer
    untrained = None if opened is not None else _architecture(catalogue, asked)
    protocol = find_protocol(catalogue, asked.protocol)
    classes: dict[str, type[Any]] = {"evaluation": EvaluationSettings, **_CORE, "dataset": dataset.options}
    if protocol.offer.predict is not None:
        classes["protocol"] = protocol.offer.options
    if protocol.offer.name != FINETUNE:
        given = _to_protocol(protocol.offer, given)
        _refuse_training(protocol.offer, tables, given)
        del classes["finetune"]
    if protocol.offer.name not in LINEAR_MODELS:
        _refuse_penalty(protocol.offer, tables, given)
    if untrained is not None:
        classes["encoder"] = untrained.offer.options
    layers = Layers({}, _defaults(dataset, opened, tables.get("data", {}), given), tables, given)
    extras = offered_extras(catalogue, classes)
    layers = layers.checked(classes, {name: item.offer.options for name, item in extras.items()})
    layers = set_seconds(layers, seconds, ("framing",))
    if untrained is not None:
        encoder = Chosen(untrained.offer, layers.table("encoder", untrained.offer.options), untrained.owner)
        opened = Pretrained(init=RANDOM, encoder=encoder, embedding_dim=asked.embedding_dim)
    assert opened is not None
    core = {name: layers.table(name, cls) for name, cls in _CORE.items()}
    core["data"], task = settle(dataset, core["data"])
    refuse_idle_constant(core["data"], given)
    refuse_other_channels(opened.together, core["data"].channels)
    refuse_other_length(opened.frame_samples, core["framing"])
    with_options = Chosen(protocol.offer, layers.table("protocol", protocol.offer.options), protocol.owner)
    chosen = choose_protocol(with_options, core["evaluate"], core["finetune"])
    refuse_other_task(chosen, task)
    refuse_no_sequence(protocol.offer, opened.encoder.offer, catalogue)
    if not chosen.learns:
        _refuse_labels(asked, core["evaluate"])
    return EvaluationPlan(
        settings=attrs.evolve(asked, encoder=opened.encoder.offer.name, embedding_dim=opened.embedding_dim),
        data=core["data"],
        protocol=chosen,
        scoring=core["evaluate"],
        framing=core["framing"],
        dataset=Chosen(dataset, layers.table("dataset", dataset.options)),
        encoder=opened,
        task=task,
        metrics=choose_metrics(catalogue, core["evaluate"].metrics, task),
        extras=choose_extras(extras, layers),
    )


def own_evaluation(plan: Plan, part: EncoderPart, weights: dict[str, Tensor]) -> EvaluationPlan:
    """Plan the linear evaluation at the end of every run: its best encoder on its own data set, task and split.

    part: one encoder of the run, and what it reads. weights: its weights.
    """
    run, channels = plan.run, part.channels
    return EvaluationPlan(
        settings=EvaluationSettings(
            dataset=run.dataset,
            encoder=part.encoder.offer.name if part.name else run.encoder,
            embedding_dim=run.embedding_dim,
            seed=run.seed,
            device=run.device,
            step=run.step,
        ),
        data=attrs.evolve(plan.data, channels=channels),
        protocol=LinearProtocol(offer=OWN[LINEAR], C=plan.evaluate.C),
        scoring=plan.evaluate,
        framing=plan.evaluate_framing,
        dataset=plan.dataset,
        encoder=Pretrained(
            init=plan.method.name,
            encoder=part.encoder,
            inputs=part.inputs,
            frame_samples=plan.pretrain_framing.frame_samples,
            average=part.average,
            embedding_dim=run.embedding_dim,
            channels=channels,
            normalise=plan.data.normalise,
            constant=plan.data.constant,
            weights=weights,
            dataset=plan.dataset.offer.name,
        ),
        task=plan.task,
        metrics=plan.metrics,
    )


_CORE: dict[str, type[Any]] = {
    "data": DataSettings,
    "finetune": FinetuneSettings,
    "evaluate": ScoringSettings,
    "framing": Framing,
}


def _asked(opened: Pretrained | None, tables: Tables, given: Sequence[Assignment]) -> EvaluationSettings:
    kinds = field_types(EvaluationSettings)
    mine = [one for one in given if one.table in ("", "evaluation") and one.name in kinds]
    values = overlaid(EvaluationSettings, tables.get("evaluation", {}), mine)
    if opened is not None:
        fixed = [name for name in ("encoder", "embedding_dim") if name in values]
        if fixed:
            raise SettingsError(
                f"The encoder comes with the run: {opened.encoder.offer.name!r} of dimension {opened.embedding_dim}. "
                f"Leave out {' and '.join(fixed)}, or use `random=True` to evaluate an untrained one."
            )
        values = {"dataset": opened.dataset, "seed": opened.tables.get("run", {}).get("seed", 0), **values}
    return structure(EvaluationSettings, values, "evaluation")


def _architecture(catalogue: Catalogue, asked: EvaluationSettings) -> Offered[Encoder]:
    if not asked.encoder:
        raise SettingsError("An untrained encoder needs its architecture (`encoder=NAME`); `clocs plugins` has them.")
    return catalogue.encoders.get(asked.encoder)


def _defaults(
    dataset: Dataset, opened: Pretrained | None, data: Mapping[str, object], given: Sequence[Assignment]
) -> Tables:
    """Return the data set's defaults, overridden by what the encoder fixes and, on its own data set, by the run.

    The run's settings matter: with another split, the encoder would have been trained on test patients.
    data, given: settings of the user, which may override the run's data paths.
    """
    ours = default_tables(dataset)
    made: Tables = {"data": ours["data"], "finetune": ours["train"], "framing": plain(framing_of(dataset, 1))}
    if opened is None:
        return made
    if opened.dataset == dataset.name:
        run = opened.tables
        read = {**run.get("data", {}), "channels": list(opened.channels)}  # without those of the run's other encoders
        made["data"] = {**made["data"], **inherit_data(read, data, given)}
        made["dataset"] = dict(run.get("dataset", {}))
        made["framing"] = dict(run.get("evaluate_framing", made["framing"]))
    else:
        _keep_preparation(made, opened)
    made["framing"]["frame_samples"] = opened.frame_samples
    if opened.together:
        missing = [name for name in opened.together if dataset.channels and name not in dataset.channels]
        if missing:
            raise SettingsError(
                f"The encoder reads {', '.join(opened.together)} at once, and data set {dataset.name!r} has no "
                f"{' and no '.join(missing)} (it has {', '.join(dataset.channels)}). Evaluate an encoder that reads "
                "one channel at a time, or on recordings that have them all."
            )
        made["data"]["channels"] = list(opened.together)
    return made


def _keep_preparation(made: Tables, opened: Pretrained) -> None:
    """Filter and normalise other recordings as the encoder's own.

    Min-max and none follow the data set instead, as in the transfers of the paper; the notes of an evaluation say so.
    """
    framing = opened.tables.get("evaluate_framing", {})
    made["framing"] |= {name: framing[name] for name in ("band_pass", "notch") if name in framing}
    if opened.normalise in ("z-score", "constant"):
        made["data"] |= {"normalise": opened.normalise, "constant": opened.constant or "none"}


def _to_protocol(protocol: Protocol, given: Sequence[Assignment]) -> list[Assignment]:
    """Hand flags of fine-tuning, such as --epochs, to a protocol that has an option of this name."""
    own = field_types(protocol.options) if protocol.predict is not None else {}
    return [
        attrs.evolve(one, table="protocol") if one.table == "finetune" and one.name in own else one for one in given
    ]


def _refuse_training(protocol: Protocol, tables: Tables, given: Sequence[Assignment]) -> None:
    kinds = set(field_types(FinetuneSettings)) - set(field_types(protocol.options))
    named = [*tables.get("finetune", {}), *(one.name for one in given if one.name in kinds)]
    if named:
        what = "Linear evaluation trains no network"
        if protocol.name not in LINEAR_MODELS:
            what = f"Protocol {protocol.name!r} has no such option"
        raise SettingsError(
            f"{what}, so {' and '.join(named)} would do nothing; leave it out, or ask for `protocol='finetune'`."
        )


def _refuse_penalty(protocol: Protocol, tables: Tables, given: Sequence[Assignment]) -> None:
    who = "Fine-tuning" if protocol.name == FINETUNE else f"Protocol {protocol.name!r}"
    asked = any(one.name == "C" and one.table != "protocol" for one in given)
    if "C" in tables.get("evaluate", {}) or asked:
        raise SettingsError(f"{who} has no L2 penalty, so C would do nothing; leave it out.")


def _refuse_labels(asked: EvaluationSettings, scoring: ScoringSettings) -> None:
    """Raise SettingsError where patient identification is asked to use labels in some way."""
    idle = {
        "label_fraction": scoring.label_fraction != (1.0,),
        "fraction_of": asked.fraction_of != EvaluationSettings().fraction_of,
        "metrics": bool(scoring.metrics),
    }
    if any(idle.values()):
        named = " and ".join(f"`{name}`" for name, given in idle.items() if given)
        raise SettingsError(f"Patient identification uses no labels, so {named} would do nothing; leave it out.")


def refuse_other_channels(together: tuple[str, ...], channels: tuple[str, ...]) -> None:
    """Raise SettingsError unless an encoder of several channels gets the same ones in the same order.

    Such an encoder knows its channels by position. together: the channels that it reads at once; empty where it reads
    one at a time.
    """
    if not together or channels == together:
        return
    raise SettingsError(
        f"The encoder reads the channels {', '.join(together)} at once, in this order, got {', '.join(channels)}; "
        f"write `channels={list(together)}`, or nothing: it is the default."
    )


def refuse_other_length(frame_samples: int | None, framing: Framing) -> None:
    """Raise SettingsError where frames are not as long as in training. frame_samples: None for an untrained encoder."""
    if frame_samples not in (None, framing.frame_samples):
        raise SettingsError(
            f"The encoder reads frames of {frame_samples} samples, got frame_samples = {framing.frame_samples}; leave "
            "it out, or pre-train on frames of that length."
        )
