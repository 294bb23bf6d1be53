"""The card of a network: the description inside an encoder or classifier file, as a record and as JSON.

One class writes and reads each card, so that the two cannot differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs

from clocs_core.contracts.records import Framing, Task
from clocs_core.contracts.scores import Score
from clocs_core.errors import RunFolderError, SettingsError
from clocs_core.settings.options import plain, structure
from clocs_core.settings.toml_file import SCHEMA, Tables


@attrs.frozen(kw_only=True)
class NetworkCard:
    """How to build an encoder, which signals it reads, and where it comes from.

    channels: the channels that it was trained on, in order. run_channels: those of all encoders of its run.
    input_channels: 1 for an encoder that reads each channel by itself, else the number of `channels`.
    framing: how recordings were cut into frames when it was evaluated.
    frame_rate: samples of a frame per second, in Hz; None where recordings of several rates were cut at their own rate.
    says_rate: whether the file has a frame rate at all.
    settings: settings tables of the run or evaluation that made it.
    """

    what: ClassVar[str] = "network"
    """The word for it in error messages."""

    dataset: str
    encoder: str
    options: Mapping[str, object]
    input_channels: int
    frame_samples: int
    embedding_dim: int
    channels: tuple[str, ...]
    unit: str
    modality: str
    normalise: str
    framing: Framing
    frame_rate: float | None
    says_rate: bool = True
    task: Task
    split_hash: str
    settings: Tables
    versions: Mapping[str, str]
    run_channels: tuple[str, ...] = ()
    licence: str = ""  # licence of the recordings that it was trained on

    @property
    def others(self) -> tuple[str, ...]:
        """The channels of its run that only other encoders read."""
        return tuple(name for name in self.run_channels if name not in self.channels)

    @property
    def written_with(self) -> str:
        """List the distributions that made it, without repetition: "clocs 0.1.0, other 2.0"."""
        plugins = [version for name, version in self.versions.items() if name.startswith("plugin ")]
        return ", ".join(sorted({f"clocs {self.versions.get('clocs', '?')}", *plugins}))


@attrs.frozen(kw_only=True)
class EncoderCard(NetworkCard):
    """The card of an encoder file.

    count: how many encoders the file holds. pretrain_framing: how recordings were cut to train it; `framing`, to
    evaluate it. scores: the scores of its run, controls included; empty until they are known.
    """

    what: ClassVar[str] = "encoder"

    method: str
    count: int
    pretrain_framing: Framing
    scores: tuple[Score, ...] = ()

    def describe(self) -> dict[str, object]:
        """Return the card as JSON."""
        description: dict[str, object] = {
            "schema": SCHEMA,
            "method": self.method,
            "dataset": self.dataset,
            "encoder": {**_architecture(self), "count": self.count},
            "signal": {
                "channels": list(self.run_channels),
                "first_channels": list(self.channels),
                **_signal(self),
                "frame_rate": self.frame_rate,
                "pretrain_framing": plain(self.pretrain_framing),
                "evaluate_framing": plain(self.framing),
            },
            **_origin(self),
        }
        if self.scores:
            description["scores"] = [_score_row(score) for score in self.scores]
        return description


@attrs.frozen(kw_only=True)
class ClassifierCard(NetworkCard):
    """The card of a classifier file; `task` names its classes.

    init: the weights that fine-tuning began with. fraction: the label fraction F that it was trained on.
    recorded: all channels of its recordings, read or not; empty where the file does not say.
    encoder_sha256: checksum of the encoder file that it began with; empty for an untrained one.
    """

    what: ClassVar[str] = "classifier"

    init: str
    fraction: float
    protocol: str = "finetune"
    recorded: tuple[str, ...] = ()
    encoder_sha256: str = ""

    def describe(self) -> dict[str, object]:
        """Return the card as JSON."""
        origin = _origin(self)
        return {
            "schema": SCHEMA,
            "protocol": self.protocol,
            "init": self.init,
            "label_fraction": self.fraction,
            "dataset": self.dataset,
            "encoder": _architecture(self),
            "head": {"features": self.embedding_dim, "classes": len(self.task.classes)},
            "signal": {
                "frame_rate": self.frame_rate,
                "channels": list(self.channels),
                "recorded": list(self.recorded),
                **_signal(self),
                "framing": plain(self.framing),
            },
            "task": origin.pop("task"),
            "split_hash": origin.pop("split_hash"),
            "encoder_sha256": self.encoder_sha256,
            **origin,
        }


def encoder_card(description: Mapping[str, Any], file: Path) -> EncoderCard:
    """Read the card of an encoder file. Raises RunFolderError where it is none, or is damaged."""
    if "encoder" not in description or "head" in description:
        held = "a classifier" if "head" in description else "something else"
        raise RunFolderError(
            f"{file} is no encoder: it holds {held}. Give a folder that `clocs run` made, or its encoder.safetensors."
        )
    try:
        return EncoderCard(
            **_fields(description),
            method=description["method"],
            count=description["encoder"]["count"],
            pretrain_framing=structure(Framing, description["signal"]["pretrain_framing"], "pretrain_framing"),
            scores=tuple(_score(row) for row in description.get("scores", ())),
        )
    except (AttributeError, KeyError, TypeError, SettingsError) as problem:
        raise RunFolderError(f"The description in {file} is damaged: {problem!r}.") from None


def classifier_card(description: Mapping[str, Any], file: Path) -> ClassifierCard:
    """Read the card of a classifier file. Raises RunFolderError where it is none, or is damaged."""
    if "head" not in description:
        held = "an encoder" if "encoder" in description else "something else"
        raise RunFolderError(
            f"{file} is no classifier: it holds {held}. `clocs evaluate RUN --protocol finetune` trains one."
        )
    try:
        return ClassifierCard(
            **_fields(description),
            init=description["init"],
            fraction=description["label_fraction"],
            protocol=description.get("protocol", "finetune"),
            recorded=tuple(description["signal"].get("recorded", ())),
            encoder_sha256=description.get("encoder_sha256", ""),
        )
    except (AttributeError, KeyError, TypeError, SettingsError) as problem:
        raise RunFolderError(f"The description in {file} is damaged: {problem!r}.") from None


def _architecture(card: NetworkCard) -> dict[str, object]:
    return {
        "name": card.encoder,
        "options": dict(card.options),
        "input_channels": card.input_channels,
        "frame_samples": card.frame_samples,
        "embedding_dim": card.embedding_dim,
    }


def _signal(card: NetworkCard) -> dict[str, object]:
    return {"unit": card.unit, "modality": card.modality, "normalise": card.normalise}


def _origin(card: NetworkCard) -> dict[str, object]:
    return {
        "task": attrs.asdict(card.task),
        "split_hash": card.split_hash,
        "settings": card.settings,
        "licence_of_the_data": card.licence,
        "versions": dict(card.versions),
    }


def _fields(description: Mapping[str, Any]) -> dict[str, Any]:
    """Read the fields of a NetworkCard. Raises KeyError, TypeError or SettingsError where the card is damaged."""
    encoder, signal = description["encoder"], description["signal"]
    return {
        "dataset": description["dataset"],
        "encoder": encoder["name"],
        **{name: encoder[name] for name in ("options", "input_channels", "frame_samples", "embedding_dim")},
        "run_channels": tuple(signal["channels"]),
        "channels": tuple(signal.get("first_channels", signal["channels"])),  # default: all channels
        **{name: signal[name] for name in ("unit", "modality", "normalise")},
        "framing": structure(Framing, signal["framing" if "framing" in signal else "evaluate_framing"], "framing"),
        "frame_rate": signal.get("frame_rate"),
        "says_rate": "frame_rate" in signal,
        "task": structure(Task, description["task"], "task"),
        **{name: description[name] for name in ("split_hash", "settings", "versions")},
        "licence": description["licence_of_the_data"],
    }


def _score_row(score: Score) -> dict[str, object]:
    """Return a score as JSON; NaN, which JSON lacks, becomes null."""
    row: dict[str, object] = attrs.asdict(score)
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()
    }


def _score(row: Mapping[str, Any]) -> Score:
    fields: dict[str, Any] = {name: math.nan if value is None else value for name, value in row.items()}
    return Score(**fields)
