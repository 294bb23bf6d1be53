"""The card of a network: the description inside an encoder or classifier file, as a record and as JSON.

One class writes and reads each card, so that the two cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args

import attrs

from clocs_core.artifacts.documents import as_plain, structure_record
from clocs_core.contracts.records import Framing, Normalisation, Task
from clocs_core.contracts.scores import Score
from clocs_core.errors import RunFolderError
from clocs_core.settings.options import plain, structure
from clocs_core.settings.toml_file import SCHEMA, Tables


def _must_be(expected: str, fits: Callable[[Any], bool]) -> dict[str, Any]:
    """Return the metadata of a field with a rule for the value in a file, for `_refuse_other_types`."""
    return {"must be": (expected, fits)}


def _is_table(value: object, holds: type[Any] = object) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(isinstance(key, str) and isinstance(one, holds) for key, one in value.items())


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf")


_text = _must_be("text", lambda value: isinstance(value, str))
_names = _must_be("a list of names", lambda value: all(isinstance(name, str) for name in value))
_count = _must_be("a positive whole number", lambda value: type(value) is int and 0 < value < 2**31)
_rate = _must_be("a positive number, or null", lambda value: value is None or _is_number(value))
_share = _must_be("a number above 0 and up to 1", lambda value: _is_number(value) and value <= 1)
_NORMALISATIONS = get_args(Normalisation)
_normalisation = _must_be(f"one of {', '.join(_NORMALISATIONS)}", lambda value: value in _NORMALISATIONS)
_options = _must_be("a table", _is_table)
_texts = _must_be("a table of texts", lambda value: _is_table(value, str))
_tables = _must_be("a table of tables", lambda value: _is_table(value, Mapping))


@attrs.frozen(kw_only=True)
class NetworkCard:
    """How to build an encoder, which signals it reads, and where it comes from.

    channels: the channels that it was trained on, in order. run_channels: those of all encoders of its run.
    average: it reads means of so many adjacent samples of a frame.
    input_channels: 1 for an encoder that reads each channel by itself, else the number of `channels`.
    framing: how recordings were cut into frames when it was evaluated.
    frame_rate: samples of a frame per second, in Hz; None where recordings of several rates were cut at their own rate,
    or recordings of several lengths were stretched to a number of frames.
    says_rate: whether the file has a frame rate at all.
    constant: divisor of its signals in their unit, where `normalise` is "constant"; else None.
    settings: settings tables of the run or evaluation that made it.
    command, date: the command line that made it, and when; empty where the file does not say.
    """

    what: ClassVar[str] = "network"
    """The word for it in error messages."""

    dataset: str = attrs.field(metadata=_text)
    encoder: str = attrs.field(metadata=_text)
    options: Mapping[str, object] = attrs.field(metadata=_options)
    input_channels: int = attrs.field(metadata=_count)
    frame_samples: int = attrs.field(metadata=_count)
    average: int = attrs.field(default=1, metadata=_count)
    embedding_dim: int = attrs.field(metadata=_count)
    channels: tuple[str, ...] = attrs.field(metadata=_names)
    unit: str = attrs.field(metadata=_text)
    modality: str = attrs.field(metadata=_text)
    normalise: str = attrs.field(metadata=_normalisation)
    constant: float | None = attrs.field(default=None, metadata=_rate)
    framing: Framing
    frame_rate: float | None = attrs.field(metadata=_rate)
    says_rate: bool = True
    task: Task
    split_hash: str = attrs.field(metadata=_text)
    settings: Tables = attrs.field(metadata=_tables)
    versions: Mapping[str, str] = attrs.field(metadata=_texts)
    run_channels: tuple[str, ...] = attrs.field(default=(), metadata=_names)
    licence: str = attrs.field(default="", metadata=_text)  # licence of the recordings that it was trained on
    command: str = attrs.field(default="", metadata=_text)
    date: str = attrs.field(default="", metadata=_text)

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

    method: str = attrs.field(metadata=_text)
    count: int = attrs.field(metadata=_count)
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
                **_rate_of(self),
                "pretrain_framing": plain(self.pretrain_framing),
                "evaluate_framing": plain(self.framing),
            },
            **_origin(self),
        }
        if self.scores:
            description["scores"] = [as_plain(attrs.asdict(score)) for score in self.scores]
        return description


@attrs.frozen(kw_only=True)
class ClassifierCard(NetworkCard):
    """The card of a classifier file; `task` names its classes.

    init: the weights that fine-tuning began with. fraction: the label fraction F that it was trained on.
    recorded: all channels of its recordings, read or not; empty where the file does not say.
    encoder_sha256: checksum of the encoder file that it began with; empty for an untrained one.
    """

    what: ClassVar[str] = "classifier"

    init: str = attrs.field(metadata=_text)
    fraction: float = attrs.field(metadata=_share)
    protocol: str = attrs.field(default="finetune", metadata=_text)
    recorded: tuple[str, ...] = attrs.field(default=(), metadata=_names)
    encoder_sha256: str = attrs.field(default="", metadata=_text)

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
            "head": {"features": self.embedding_dim, "classes": len(self.task.outputs)},
            "signal": {
                **_rate_of(self),
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


Card = TypeVar("Card", EncoderCard, ClassifierCard)


def encoder_card(description: Mapping[str, Any], file: Path) -> EncoderCard:
    """Read the card of an encoder file. Raises RunFolderError where it is none, or is damaged."""
    if "encoder" not in description or "head" in description:
        raise RunFolderError(
            f"{file} is no encoder: it holds {_held(description)}. Give a folder that `pretrain` made, or its "
            "encoder.safetensors."
        )

    def read() -> EncoderCard:
        return EncoderCard(
            **_fields(description),
            method=description["method"],
            count=description["encoder"]["count"],
            pretrain_framing=_framing(_table(description, "signal"), "pretrain_framing"),
            scores=tuple(
                structure_record(row, Score, "a score") for row in _items(description.get("scores", []), "scores")
            ),
        )

    return _checked(read, description, file)


def classifier_card(description: Mapping[str, Any], file: Path) -> ClassifierCard:
    """Read the card of a classifier file. Raises RunFolderError where it is none, or is damaged."""
    if "head" not in description:
        raise RunFolderError(
            f"{file} is no classifier: it holds {_held(description)}. `evaluate(..., protocol='finetune')` trains one."
        )

    def read() -> ClassifierCard:
        return ClassifierCard(
            **_fields(description),
            init=description["init"],
            fraction=description["label_fraction"],
            protocol=description.get("protocol", "finetune"),
            recorded=_items(_table(description, "signal").get("recorded", []), "recorded"),
            encoder_sha256=description.get("encoder_sha256", ""),
        )

    return _checked(read, description, file)


def _held(description: Mapping[str, Any]) -> str:
    """Say what a file holds that is not what was expected."""
    kinds = {"head": "a classifier", "encoder": "an encoder", "progress": "a checkpoint of training"}
    return next((kind for key, kind in kinds.items() if key in description), "something else")


def _checked(read: Callable[[], Card], description: Mapping[str, Any], file: Path) -> Card:
    """Read a card and compare its fields with those that it would write. Raises RunFolderError where they differ."""
    try:
        card = read()
        _refuse_other_types(card)
        _refuse_unknown(description, {"scores": [], **card.describe()}, "")
    except KeyError as problem:
        raise RunFolderError(f"The description in {file} is damaged: it has no {problem}.") from None
    except (TypeError, ValueError, RunFolderError) as problem:  # SettingsError is a ValueError
        raise RunFolderError(f"The description in {file} is damaged: {str(problem).rstrip('.')}.") from None
    return card


def _refuse_other_types(card: NetworkCard) -> None:
    """Raise ValueError where a field of a card that was read does not hold what it must be."""
    for field in attrs.fields(type(card)):
        expected, fits = field.metadata.get("must be", ("", lambda _: True))
        if not fits(value := getattr(card, field.name)):
            raise ValueError(f"{field.name} is {value!r:.80}, expected {expected}")


def _refuse_unknown(found: Mapping[str, Any], known: Mapping[str, Any], where: str) -> None:
    """Raise ValueError where a table has a field that no card of this version has."""
    for key, value in found.items():
        if key not in known:
            raise ValueError(f"it has a field {where + key!r} that this version of clocs does not know")
        if key in ("encoder", "signal", "head"):
            _refuse_unknown(_table(found, key), known[key], f"{key}.")
        if key == "head" and value != known[key]:
            raise ValueError(f"head is {value!r:.80}, expected {known[key]!r}")


def _table(place: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a table inside a table. Raises KeyError where it is missing, ValueError where it is something else."""
    if not isinstance(place[name], Mapping):
        raise ValueError(f"{name} is {place[name]!r:.80}, expected a table")
    found: Mapping[str, Any] = place[name]
    return found


def _framing(signal: Mapping[str, Any], name: str) -> Framing:
    return structure(Framing, _table(signal, name), name, arguments=False)


def _task(held: Mapping[str, Any]) -> Task:
    held["classes"]  # a KeyError where a card lacks them: the record has a default
    return structure(Task, held, "task", arguments=False)


def _constant(signal: Mapping[str, Any]) -> float:
    if not _is_number(signal["constant"]):
        raise ValueError(f"constant is {signal['constant']!r:.80}, expected a positive number")
    return float(signal["constant"])


def _items(value: Any, name: str) -> tuple[Any, ...]:
    """Return a list as a tuple. Raises ValueError where it is none; text would become its letters."""
    if not isinstance(value, list):
        raise ValueError(f"{name} is {value!r:.80}, expected a list")
    return tuple(value)


def _architecture(card: NetworkCard) -> dict[str, object]:
    coarse = {"average": card.average} if card.average != 1 else {}  # earlier versions read a file without it
    return {
        "name": card.encoder,
        "options": dict(card.options),
        "input_channels": card.input_channels,
        "frame_samples": card.frame_samples,
        **coarse,
        "embedding_dim": card.embedding_dim,
    }


def _signal(card: NetworkCard) -> dict[str, object]:
    scale = {"constant": card.constant} if card.normalise == "constant" else {}
    return {"unit": card.unit, "modality": card.modality, "normalise": card.normalise, **scale}


def _origin(card: NetworkCard) -> dict[str, object]:
    return {
        "task": card.task.table(),
        "split_hash": card.split_hash,
        "settings": card.settings,
        "licence_of_the_data": card.licence,
        "versions": dict(card.versions),
        **({"command": card.command} if card.command else {}),  # Python has none
        **({"date": card.date} if card.date else {}),  # nor has a file of an earlier version
    }


def _rate_of(card: NetworkCard) -> dict[str, object]:
    return {"frame_rate": card.frame_rate} if card.says_rate else {}


def _fields(description: Mapping[str, Any]) -> dict[str, Any]:
    """Read the fields of a NetworkCard. Raises KeyError, TypeError or ValueError where the card is damaged."""
    encoder, signal = _table(description, "encoder"), _table(description, "signal")
    channels = signal["channels"]
    return {
        "dataset": description["dataset"],
        "encoder": encoder["name"],
        **{name: encoder[name] for name in ("options", "input_channels", "frame_samples", "embedding_dim")},
        "average": encoder.get("average", 1),
        "run_channels": _items(channels, "channels"),
        "channels": _items(signal.get("first_channels", channels), "first_channels"),  # default: all channels
        **{name: signal[name] for name in ("unit", "modality", "normalise")},
        "constant": _constant(signal) if signal["normalise"] == "constant" else None,
        "framing": _framing(signal, "framing" if "framing" in signal else "evaluate_framing"),
        "frame_rate": signal.get("frame_rate"),
        "says_rate": "frame_rate" in signal,
        "task": _task(_table(description, "task")),
        **{name: description[name] for name in ("split_hash", "settings", "versions")},
        "licence": description["licence_of_the_data"],
        **{name: description.get(name, "") for name in ("command", "date")},
    }
