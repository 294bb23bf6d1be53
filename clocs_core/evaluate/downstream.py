"""From names and tables to what `clocs evaluate` does: the encoder, the data set that it is tried on, the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal

import attrs

from clocs_core.data.records import Framing, Task
from clocs_core.errors import SettingsError
from clocs_core.evaluate.pretrained import RANDOM, Pretrained
from clocs_core.extend.catalogue import Catalogue
from clocs_core.extend.layers import Assignment, Layers, overlaid, split_assignment
from clocs_core.extend.offers import Dataset, Encoder, Metric
from clocs_core.extend.recordings import Chosen, Recordings, default_tables, inherit_data, settle
from clocs_core.options import field_types, option, plain, structure
from clocs_core.settings import DataSettings, EvaluateSettings, Tables, TrainSettings, dump_tables

__all__ = [
    "Downstream",
    "EvaluationSettings",
    "FinetuneSettings",
    "refuse_other_channels",
    "refuse_other_length",
    "resolve_downstream",
]

_positive = (lambda value: 0 < value < float("inf"), "be positive")


@attrs.frozen
class EvaluationSettings:
    """What is evaluated, on what, and how."""

    dataset: str = option("", "the data set, by name; the one of the encoder's run if not given")
    protocol: Literal["linear", "finetune"] = option("linear", "fit a linear model on the frozen encoder, or train all")
    fraction_of: Literal["frames", "patients"] = option("frames", "of what the share of labels is one")
    encoder: str = option("", "the architecture of an encoder that nobody has trained, by name")
    embedding_dim: int = option(128, "dimension E of its representation", check=_positive)
    seed: int = option(
        0, "seeds head, order, dropout and untrained weights", check=(lambda n: n >= 0, "not be negative")
    )
    device: Literal["auto", "cpu", "cuda"] = option("auto", "where to compute")
    step: Literal["auto", "plain", "captured"] = option("auto", "steps one by one, or captured once as CUDA graphs")


@attrs.frozen
class FinetuneSettings:
    """How all weights are trained. The paper gives batch size and learning rate; the rest is as released."""

    epochs: int = option(400, "at most so many epochs", check=_positive)
    batch_size: int = option(256, "frames per step", check=_positive)
    learning_rate: float = option(1e-4, "of Adam", check=_positive)
    patience: int = option(15, "stop after more than so many epochs without a better validation loss", check=_positive)

    def for_training(self) -> TrainSettings:
        """The same as the training loop reads it."""
        return TrainSettings(
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            patience=self.patience,
        )


@attrs.frozen(kw_only=True, eq=False)
class Downstream:
    """All that an evaluation is made of."""

    asked: EvaluationSettings
    data: DataSettings
    finetune: FinetuneSettings
    evaluate: EvaluateSettings
    framing: Framing
    dataset: Chosen[Dataset]
    encoder: Pretrained
    task: Task
    metrics: tuple[Metric, ...]

    @property
    def recordings(self) -> Recordings:
        """The half that the data path needs."""
        run = self.encoder.run_channels if self.encoder.dataset == self.dataset.offer.name else ()
        return Recordings(self.dataset, self.data, self.task, run)

    @property
    def inits(self) -> tuple[str, ...]:
        """Whose weights are evaluated; the last is the control, which is always there."""
        return (self.encoder.init, RANDOM) if self.encoder.weights else (RANDOM,)

    def sentence(self) -> str:
        """The protocol, spelled out for a reader of the report."""
        of = self.asked.fraction_of
        share = f"a share F of the labelled training {of}"
        if self.asked.protocol == "linear":
            return (
                f"The encoder is frozen, in eval mode; a logistic regression (L2, C = 1) on its standardised "
                f"representations is fitted to {share}."
            )
        loss = "softmax cross-entropy" if self.task.kind == "one_of" else "binary cross-entropy, mean over classes"
        how = self.finetune
        return (
            f"All weights and a new linear head are trained on {share}: {loss}, Adam at {how.learning_rate:g}, "
            f"batches of {how.batch_size}, BatchNorm and dropout in training mode, at most {how.epochs} epochs, until "
            f"more than {how.patience} have not lowered the loss of the whole validation part. The best weights are "
            "scored."
        )

    def tables(self) -> Tables:
        """The effective settings as plain tables. The encoder is named by the hash of its file, wherever it lies."""
        encoder = self.encoder
        parts: dict[str, Any] = {"evaluation": self.asked, "data": self.data, "evaluate": self.evaluate}
        if self.asked.protocol == "finetune":
            parts["finetune"] = self.finetune
        parts |= {"framing": self.framing, "dataset": self.dataset.options, "encoder": encoder.encoder.options}
        made = {name: plain(part) for name, part in parts.items()}
        made["evaluation"] |= {"init": encoder.init, "encoder_sha256": encoder.sha256}
        return made

    @property
    def name(self) -> str:
        """Short, and another one for other settings: what its folder is called."""
        digest = sha256(dump_tables(self.tables()).encode()).hexdigest()[:8]
        return f"{self.dataset.offer.name}-{self.asked.protocol}-{digest}"


def resolve_downstream(
    catalogue: Catalogue, opened: Pretrained | None, tables: Tables, assignments: Sequence[str] = ()
) -> Downstream:
    """Make it of an encoder (None: an untrained one, by name), settings tables and `-o` assignments.

    Later layers win: the data set's own defaults, where it is the data set of the run what the run has, tables, `-o`.
    """
    given = [split_assignment(text) for text in assignments]
    asked = _asked(opened, tables, given)
    if not asked.dataset:
        raise SettingsError("An evaluation needs a data set (`--dataset NAME`). `clocs data list` has them all.")
    dataset = catalogue.datasets.get(asked.dataset).offer
    untrained = None if opened is not None else _architecture(catalogue, asked)
    classes: dict[str, type[Any]] = {"evaluation": EvaluationSettings, **_CORE, "dataset": dataset.options}
    if asked.protocol == "linear":
        _refuse_training(tables, given)
        del classes["finetune"]
    if untrained is not None:
        classes["encoder"] = untrained.options
    layers = Layers({}, _defaults(dataset, opened, tables.get("data", {}), given), tables, given)
    layers.refuse_unknown(classes)
    if untrained is not None:
        chosen = Chosen(untrained, layers.table("encoder", untrained.options))
        opened = Pretrained(init=RANDOM, encoder=chosen, embedding_dim=asked.embedding_dim)
    assert opened is not None
    core = {name: layers.table(name, cls) for name, cls in _CORE.items()}
    core["data"], task = settle(dataset, core["data"])
    refuse_other_channels(opened.together, core["data"].channels)
    refuse_other_length(opened.frame_samples, core["framing"])
    return Downstream(
        asked=attrs.evolve(asked, encoder=opened.encoder.offer.name, embedding_dim=opened.embedding_dim),
        **core,
        dataset=Chosen(dataset, layers.table("dataset", dataset.options)),
        encoder=opened,
        task=task,
        metrics=tuple(item.offer for item in catalogue.metrics),
    )


_CORE: dict[str, type[Any]] = {
    "data": DataSettings,
    "finetune": FinetuneSettings,
    "evaluate": EvaluateSettings,
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
                f"Leave out {' and '.join(fixed)}, or use `--random` to evaluate an untrained one."
            )
        values = {"dataset": opened.dataset, "seed": opened.tables.get("run", {}).get("seed", 0), **values}
    return structure(EvaluationSettings, values, "evaluation")


def _architecture(catalogue: Catalogue, asked: EvaluationSettings) -> Encoder:
    if not asked.encoder:
        raise SettingsError("An untrained encoder needs its architecture (`--encoder NAME`); `clocs plugins` has them.")
    return catalogue.encoders.get(asked.encoder).offer


def _defaults(
    dataset: Dataset, opened: Pretrained | None, data: Mapping[str, object], given: Sequence[Assignment]
) -> Tables:
    """What the data set asks for; above it, what the encoder fixes, and on its own data set the run's settings.

    The last is not a convenience: with another split, test patients would be among those that it was trained on.
    data, given: what the user says now of the recordings, which may take the place of a place of the run.
    """
    ours = default_tables(dataset)
    made: Tables = {"data": ours["data"], "finetune": ours["train"], "framing": plain(dataset.framing(1))}
    if opened is None:
        return made
    if opened.dataset == dataset.name:
        run = opened.tables
        read = {**run.get("data", {}), "channels": list(opened.channels)}  # not those of the run's other encoders
        made["data"] = {**made["data"], **inherit_data(read, data, given)}
        made["dataset"] = dict(run.get("dataset", {}))
        made["framing"] = dict(run.get("evaluate_framing", made["framing"]))
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


def _refuse_training(tables: Tables, given: Sequence[Assignment]) -> None:
    kinds = field_types(FinetuneSettings)
    named = [*tables.get("finetune", {}), *(one.name for one in given if one.name in kinds)]
    if named:
        raise SettingsError(
            f"Linear evaluation trains no network, so {' and '.join(named)} would do nothing; leave it out, or ask for "
            "`--protocol finetune`."
        )


def refuse_other_channels(together: tuple[str, ...], channels: tuple[str, ...]) -> None:
    """An encoder that reads several channels knows them by their place: it needs the same ones in the same order.

    together: the channels that it reads at once; none where it reads one at a time.
    """
    if not together or channels == together:
        return
    raise SettingsError(
        f"The encoder reads the channels {', '.join(together)} at once, in this order, got {', '.join(channels)}; "
        f"write `--channels {','.join(together)}`, or nothing: it is the default."
    )


def refuse_other_length(frame_samples: int | None, framing: Framing) -> None:
    """An encoder that was trained has read frames of one length; None: of one that was not."""
    if frame_samples not in (None, framing.frame_samples):
        raise SettingsError(
            f"The encoder reads frames of {frame_samples} samples, got frame_samples = {framing.frame_samples}; leave "
            "it out, or pre-train on frames of that length."
        )
