"""The protocol of an evaluation with its settings: its classifiers, its sentence, and what its controls depend on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import attrs

from clocs_core.artifacts.predictions import Classifier
from clocs_core.contracts.kinds import kind_of
from clocs_core.contracts.records import Task
from clocs_core.contracts.result_offers import FINETUNE, IDENTIFICATION, Metric, Protocol
from clocs_core.contracts.scores import CHANCE, PRIOR, RANDOM
from clocs_core.plan.data import Chosen
from clocs_core.settings.options import plain
from clocs_core.settings.sections import FinetuneSettings, ScoringSettings


@attrs.frozen(kw_only=True)
class ChosenProtocol(ABC):
    """A protocol with its settings. learns: whether it learns from labels."""

    offer: Protocol
    learns: ClassVar[bool] = True

    @property
    def doing(self) -> str:
        """The evaluation in words, with {} in place of the encoder's name."""
        return f"{self.offer.name} on {{}}"

    @abstractmethod
    def sentence(self, task: Task, share: str, part: str) -> str:
        """Describe the protocol for a reader of the report. share: the labels that it learns from, in words."""

    def classifiers(self, inits: Sequence[str], fractions: Sequence[float]) -> list[Classifier]:
        """List all classifiers in the order of the report: at each F every init, then the class prior."""
        name = self.offer.name
        return [
            key
            for fraction in fractions
            for key in (*((name, init, fraction) for init in inits), (PRIOR, RANDOM, fraction))
        ]

    def trains(self, key: Classifier) -> bool:
        """Return whether a classifier is a network of its own, which is kept."""
        return False

    def say(self, key: Classifier) -> str:
        """Describe a classifier for the display."""
        protocol, init, fraction = key
        return f"{'class prior' if protocol == PRIOR else self.doing.format(init)}, F = {fraction:g}"

    def tables(self) -> dict[str, Any]:
        """Return its settings by the name of their table."""
        return {}

    def facts(self, metrics: Sequence[Metric], step: str) -> dict[str, Any]:
        """Return what a classifier of an untrained encoder depends on, beside the encoder and the labels.

        metrics: the metrics of the evaluation; the first that fits scores the validation part. step: how a network is
        trained, plain or captured.
        """
        return {}


@attrs.frozen(kw_only=True)
class LinearProtocol(ChosenProtocol):
    """A linear model on the embeddings of the frozen encoder. C: inverse strength of its penalty."""

    C: float | Literal["auto"]

    @property
    def doing(self) -> str:
        """The evaluation in words, with {} in place of the encoder's name."""
        return "linear evaluation of recordings by {}" if self.offer.rows == "record" else "linear evaluation of {}"

    def sentence(self, task: Task, share: str, part: str) -> str:
        """Describe the protocol for a reader of the report."""
        its = "its standardised representations"
        if self.offer.rows == "record":
            its = "the standardised means of its representations of each recording"
        penalty = "C by the scores of validation patients" if self.C == "auto" else f"C = {self.C:g}"
        return (
            f"The encoder is frozen, in eval mode; a {kind_of(task).linear} (L2, {penalty}) on {its} is fitted to "
            f"{share}."
        )

    def facts(self, metrics: Sequence[Metric], step: str) -> dict[str, Any]:
        """Return what a classifier of an untrained encoder depends on, beside the encoder and the labels."""
        return {"C": self.C} | ({"metrics": [metric.name for metric in metrics]} if self.C == "auto" else {})


@attrs.frozen(kw_only=True)
class FinetuneProtocol(ChosenProtocol):
    """All weights and a new linear head are trained."""

    settings: FinetuneSettings

    @property
    def doing(self) -> str:
        """The evaluation in words, with {} in place of the encoder's name."""
        return "fine-tuning {}"

    def trains(self, key: Classifier) -> bool:
        """Return whether a classifier is a network of its own, which is kept; the class prior is none."""
        return key[0] == self.offer.name

    def sentence(self, task: Task, share: str, part: str) -> str:
        """Describe the protocol for a reader of the report."""
        how, loss = self.settings, kind_of(task).loss
        by_layer = f", times {how.layer_decay:g} from each block to the one before it" if how.layer_decay != 1 else ""
        return (
            f"All weights and a new linear head are trained on {share}: {loss}, {how.sentence()}{by_layer}, "
            f"batches of {how.batch_size}, BatchNorm and dropout in training mode, at most {how.epochs} epochs, until "
            f"more than {how.patience} have not lowered the loss of the whole validation part. The best weights are "
            "scored."
        )

    def tables(self) -> dict[str, Any]:
        """Return its settings by the name of their table."""
        return {"finetune": self.settings}

    def facts(self, metrics: Sequence[Metric], step: str) -> dict[str, Any]:
        """Return what a classifier of an untrained encoder depends on, beside the encoder and the labels."""
        return {"finetune": plain(self.settings), "step": step, "metrics": [metric.name for metric in metrics]}


@attrs.frozen(kw_only=True)
class IdentificationProtocol(ChosenProtocol):
    """Patients are found by another recording of theirs, without labels; chance takes the place of the class prior."""

    learns: ClassVar[bool] = False

    @property
    def doing(self) -> str:
        """The evaluation in words, with {} in place of the encoder's name."""
        return "patient identification by {}"

    def sentence(self, task: Task, share: str, part: str) -> str:
        """Describe the protocol for a reader of the report."""
        return (
            "The encoder is frozen, in eval mode. A recording is the mean of its representations. The first "
            f"recording of each {part} patient, by name, is in a gallery; their others are searched in it by the "
            "cosine. No label is used."
        )

    def classifiers(self, inits: Sequence[str], fractions: Sequence[float]) -> list[Classifier]:
        """List all classifiers in the order of the report; there are no label fractions."""
        return [*((self.offer.name, init, 1.0) for init in inits), (CHANCE, CHANCE, 1.0)]

    def say(self, key: Classifier) -> str:
        """Describe a classifier for the display."""
        return CHANCE if key[1] == CHANCE else self.doing.format(key[1])


@attrs.frozen(kw_only=True)
class OfferedProtocol(ChosenProtocol):
    """The protocol of a plugin, with its options. owner: the plugin, for messages."""

    options: Any
    owner: str = attrs.field(default="", eq=False)

    def sentence(self, task: Task, share: str, part: str) -> str:
        """Describe the protocol for a reader of the report."""
        options = ", ".join(f"{name} = {value}" for name, value in plain(self.options).items())
        return f"{self.offer.summary.rstrip('.')}{f' ({options})' if options else ''}; it learns from {share}."

    def tables(self) -> dict[str, Any]:
        """Return its settings by the name of their table."""
        return {"protocol": self.options}

    def facts(self, metrics: Sequence[Metric], step: str) -> dict[str, Any]:
        """Return what a classifier of an untrained encoder depends on, beside the encoder and the labels."""
        return {"options": {"owner": self.owner, **plain(self.options)}}


def choose_protocol(chosen: Chosen[Protocol], scoring: ScoringSettings, finetune: FinetuneSettings) -> ChosenProtocol:
    """Give a protocol the settings that it reads; all options of a plugin's protocol are its own."""
    offer = chosen.offer
    if offer.predict is not None:
        return OfferedProtocol(offer=offer, options=chosen.options, owner=chosen.owner)
    if offer.name == FINETUNE:
        return FinetuneProtocol(offer=offer, settings=finetune)
    if offer.name == IDENTIFICATION:
        return IdentificationProtocol(offer=offer)
    return LinearProtocol(offer=offer, C=scoring.C)
