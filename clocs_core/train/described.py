"""What encoder and classifier files have in common: a description inside, and a network that is built from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from clocs_core.data.records import Framing, Task
from clocs_core.errors import RunFolderError, SettingsError, UnknownName
from clocs_core.extend.catalogue import Catalogue
from clocs_core.options import structure
from clocs_core.settings import SCHEMA, Tables

__all__ = ["NetworkCard", "build_encoders", "card_fields", "fit_weights", "read_described", "read_description"]


@attrs.frozen(kw_only=True)
class NetworkCard:
    """What such a file says of itself: how to build its encoder, what signal that reads, and where it comes from.

    channels: those that it was trained on, in their order. run_channels: those of other encoders of its run, too.
    input_channels: 1 for an encoder that reads each channel by itself, else as many as `channels`.
    framing: how recordings were cut for it when it was evaluated.
    frame_rate: Hz of the samples of a frame; None where recordings of several rates were cut at their own.
    says_rate: whether the file has it at all.
    settings: those of the run or the evaluation that made it, as tables.
    """

    what: ClassVar[str] = "network"
    """What an error calls it."""

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
    says_rate: bool
    task: Task
    split_hash: str
    settings: Tables
    versions: Mapping[str, str]
    run_channels: tuple[str, ...] = ()
    licence: str = ""  # of the recordings that it learnt from

    @property
    def others(self) -> tuple[str, ...]:
        """The channels of its run that other encoders read, and this one never did."""
        return tuple(name for name in self.run_channels if name not in self.channels)

    @property
    def written_with(self) -> str:
        """The distributions that it was made with, each once: "clocs 0.1.0, other 2.0"."""
        plugins = [version for name, version in self.versions.items() if name.startswith("plugin ")]
        return ", ".join(sorted({f"clocs {self.versions.get('clocs', '?')}", *plugins}))


def card_fields(about: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a NetworkCard. Raises KeyError, TypeError or SettingsError where the description is damaged."""
    encoder, signal = about["encoder"], about["signal"]
    return {
        "dataset": about["dataset"],
        "encoder": encoder["name"],
        **{name: encoder[name] for name in ("options", "input_channels", "frame_samples", "embedding_dim")},
        "run_channels": tuple(signal["channels"]),
        "channels": tuple(signal.get("first_channels", signal["channels"])),  # all, where the file does not say
        **{name: signal[name] for name in ("unit", "modality", "normalise")},
        "framing": structure(Framing, signal["framing" if "framing" in signal else "evaluate_framing"], "framing"),
        "frame_rate": signal.get("frame_rate"),
        "says_rate": "frame_rate" in signal,
        "task": structure(Task, about["task"], "task"),
        **{name: about[name] for name in ("split_hash", "settings", "versions")},
        "licence": about["licence_of_the_data"],
    }


def read_description(file: Path, what: str) -> dict[str, Any]:
    """The description in a file, without its weights. what: "encoder", for the error where it is of no such file."""
    return _read(file, what, with_weights=False)[1]


def read_described(file: Path, what: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The weights in a file and its description, both of one and the same reading of it."""
    return _read(file, what, with_weights=True)


def _read(file: Path, what: str, with_weights: bool) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safe_open(file, framework="pt") as held:
            about = json.loads((held.metadata() or {}).get("clocs", "{}"))
            names = held.keys() if with_weights else ()
            weights = {name: held.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError) as problem:
        raise RunFolderError(f"Cannot read {file}: {problem}.") from None
    if not isinstance(about, dict) or about.get("schema") != SCHEMA:
        says = isinstance(about, dict) and "schema" in about
        found = f"schema {about['schema']!r}, this one reads {SCHEMA}" if says else "it says nothing of itself"
        raise RunFolderError(f"{file} holds no {what} of this version of clocs: {found}.")
    return weights, about


def build_encoders(card: NetworkCard, count: int, catalogue: Catalogue, file: Path) -> list[nn.Module]:
    """So many encoders as a card describes them, with weights that are to be overwritten.

    Raises UnknownName where the plugin that offers them is missing, RunFolderError where it builds others today.
    """
    try:
        offer = catalogue.encoders.get(card.encoder).offer
    except UnknownName as problem:
        raise UnknownName(
            f"{file} holds an encoder {card.encoder!r} that is not installed here{_missing(card, catalogue)}. {problem}"
        ) from None
    try:
        options = structure(offer.options, card.options, "encoder")
        with torch.random.fork_rng(devices=[]):  # nobody's draws may shift by weights that are thrown away
            return [
                offer.build(options, card.input_channels, card.frame_samples, card.embedding_dim) for _ in range(count)
            ]
    except (SettingsError, ValueError) as problem:
        raise RunFolderError(
            f"The encoder {card.encoder!r} of {file} cannot be built by the plugin that is installed: {problem} "
            f"Install the version that wrote it ({card.written_with})."
        ) from None


def fit_weights(network: nn.Module, weights: Mapping[str, Tensor], card: NetworkCard, file: Path) -> None:
    """Give a network its weights. Raises RunFolderError where they do not fit."""
    try:
        network.load_state_dict(weights, strict=True)
    except RuntimeError as problem:
        first = " ".join(str(problem).split())[:300]
        raise RunFolderError(
            f"The weights in {file} do not fit the encoder {card.encoder!r} that is installed: {first} Install the "
            f"version that wrote it ({card.written_with})."
        ) from None


def _missing(card: NetworkCard, catalogue: Catalogue) -> str:
    """The plugins of the run that offer nothing here, with their distributions: one of them had the encoder."""
    here = {f"plugin {item.plugin.name}" for shelf in catalogue.shelves() for item in shelf}
    gone = {name: version for name, version in card.versions.items() if name.startswith("plugin ") and name not in here}
    told = ", ".join(f"{name.removeprefix('plugin ')} ({version})" for name, version in sorted(gone.items()))
    return f"; of the plugins that it was made with, these offer nothing here: {told}" if told else ""
