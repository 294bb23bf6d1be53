"""The encoder as one self-describing safetensors file: weights, and all that is needed to use them again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from clocs_core.data.records import Framing, Task
from clocs_core.data.splits import Split
from clocs_core.errors import RunFolderError, SettingsError, UnknownName
from clocs_core.extend.catalogue import Catalogue
from clocs_core.extend.plan import Plan
from clocs_core.options import plain, structure
from clocs_core.settings import SCHEMA, Tables
from clocs_core.train.checkpoint import read_tensors, save_tensors

__all__ = ["EncoderCard", "LoadedEncoder", "find_encoder", "load_encoder", "read_card", "save_encoder"]

FILE = "encoder.safetensors"  # what a run folder calls it


@attrs.frozen(kw_only=True)
class EncoderCard:
    """What an encoder file says of itself: how to build the encoder, what signal it reads, and where it comes from.

    input_channels: 1 for an encoder that reads each channel by itself, else as many as `channels`.
    count: how many encoders the file holds. settings: the effective settings of the run, as tables.
    """

    method: str
    dataset: str
    encoder: str
    options: Mapping[str, object]
    input_channels: int
    frame_samples: int
    embedding_dim: int
    count: int
    channels: tuple[str, ...]
    unit: str
    modality: str
    normalise: str
    pretrain_framing: Framing
    evaluate_framing: Framing
    task: Task
    split_hash: str
    settings: Tables
    licence: str
    versions: Mapping[str, str]


@attrs.frozen(eq=False)
class LoadedEncoder:
    """The encoders of a file in eval mode on a device, most often one, and what the file says of them."""

    modules: nn.ModuleList
    about: EncoderCard
    path: Path  # of the file itself

    @property
    def encoder(self) -> nn.Module:
        """The first encoder: the one that is evaluated."""
        return self.modules[0]


def save_encoder(
    weights: dict[str, Tensor],
    plan: Plan,
    channels: tuple[str, ...],
    unit: str,
    split: Split,
    versions: dict[str, str],
    path: Path,
) -> None:
    """Write the best weights with the settings, the signal they expect, label names and split hash inside.

    One encoder is written under its module's own names; of several, each has its number before them.
    """
    if plan.needs.encoders == 1:
        weights = {name.removeprefix("0."): tensor for name, tensor in weights.items()}
    about: dict[str, object] = {
        "schema": SCHEMA,
        "method": plan.method.name,
        "dataset": plan.dataset.offer.name,
        "encoder": {
            "name": plan.encoder.offer.name,
            "options": plain(plan.encoder.options),
            "input_channels": len(channels) if plan.needs.encoder_channels == "all" else 1,
            "frame_samples": plan.pretrain_framing.frame_samples,
            "embedding_dim": plan.run.embedding_dim,
            "count": plan.needs.encoders,
        },
        "signal": {
            "channels": list(channels),
            "unit": unit,
            "modality": plan.dataset.offer.modality,
            "normalise": plan.data.normalise,
            "pretrain_framing": plain(plan.pretrain_framing),
            "evaluate_framing": plain(plan.evaluate_framing),
        },
        "task": attrs.asdict(plan.task),
        "split_hash": split.hash,
        "settings": plan.tables(),
        "licence_of_the_data": plan.dataset.offer.licence,
        "versions": versions,
    }
    save_tensors(weights, about, path)


def find_encoder(path: Path) -> Path:
    """The encoder file of a run folder, or the file itself. Raises RunFolderError where there is none."""
    if path.is_file():
        return path
    if (path / FILE).is_file():
        return path / FILE
    if not path.exists():
        raise RunFolderError(f"{path} is not there. Give a folder that `clocs run` made, or its {FILE}.")
    if (path / "settings.toml").exists():
        raise RunFolderError(
            f"{path} has no {FILE}: the run is not finished. Go on with it: `clocs run --resume {path}`."
        )
    raise RunFolderError(f"{path} is not a run folder: it has no {FILE}. Give the folder that `clocs run` made.")


def read_card(path: Path) -> EncoderCard:
    """What the encoder file of a run says of itself; no weights are read. Raises RunFolderError as `load_encoder`."""
    file = find_encoder(path)
    try:
        with safe_open(file, framework="pt") as held:
            about = json.loads((held.metadata() or {}).get("clocs", "{}"))
    except (SafetensorError, OSError, ValueError) as problem:
        raise RunFolderError(f"Cannot read {file}: {problem}.") from None
    return _card(about, file)


def load_encoder(path: Path, catalogue: Catalogue, device: torch.device) -> LoadedEncoder:
    """Open the encoder of a run again: a run folder, or its file.

    Raises UnknownName where the plugin that offers the encoder is missing, and RunFolderError where there is no such
    file, where it is damaged or of another version, or where its weights do not fit what the plugin builds today.
    """
    file = find_encoder(path)
    weights, about = read_tensors(file)
    card = _card(about, file)
    modules = _build(card, catalogue, file)
    if card.count == 1:
        weights = {f"0.{name}": tensor for name, tensor in weights.items()}
    try:
        modules.load_state_dict(weights, strict=True)
    except RuntimeError as problem:
        first = " ".join(str(problem).split())[:300]
        raise RunFolderError(
            f"The weights in {file} do not fit the encoder {card.encoder!r} that is installed: {first} Install the "
            f"version that wrote it ({_written_with(card)})."
        ) from None
    return LoadedEncoder(modules.to(device).eval(), card, file)


def _build(card: EncoderCard, catalogue: Catalogue, file: Path) -> nn.ModuleList:
    try:
        offer = catalogue.encoders.get(card.encoder).offer
    except UnknownName as problem:
        raise UnknownName(
            f"{file} holds an encoder {card.encoder!r} that is not installed here{_missing(card, catalogue)}. {problem}"
        ) from None
    try:
        options = structure(offer.options, card.options, "encoder")
        with torch.random.fork_rng(devices=[]):  # first weights are drawn, and overwritten: nobody's draws may shift
            made = [
                offer.build(options, card.input_channels, card.frame_samples, card.embedding_dim)
                for _ in range(card.count)
            ]
    except (SettingsError, ValueError) as problem:
        raise RunFolderError(
            f"The encoder {card.encoder!r} of {file} cannot be built by the plugin that is installed: {problem} "
            f"Install the version that wrote it ({_written_with(card)})."
        ) from None
    return nn.ModuleList(made)


def _missing(card: EncoderCard, catalogue: Catalogue) -> str:
    """The plugins of the run that offer nothing here, with their distributions: one of them had the encoder."""
    here = {f"plugin {item.plugin.name}" for shelf in catalogue.shelves() for item in shelf}
    gone = {name: version for name, version in card.versions.items() if name.startswith("plugin ") and name not in here}
    told = ", ".join(f"{name.removeprefix('plugin ')} ({version})" for name, version in sorted(gone.items()))
    return f"; of the plugins that the run had, these offer nothing here: {told}" if told else ""


def _written_with(card: EncoderCard) -> str:
    """The distributions that the run was made with, each once: "clocs 0.1.0, other 2.0"."""
    plugins = [version for name, version in card.versions.items() if name.startswith("plugin ")]
    return ", ".join(sorted({f"clocs {card.versions.get('clocs', '?')}", *plugins}))


def _card(about: dict[str, Any], file: Path) -> EncoderCard:
    if about.get("schema") != SCHEMA:
        found = f"schema {about['schema']!r}, this one reads {SCHEMA}" if about else "it does not describe itself"
        raise RunFolderError(f"{file} is no encoder file of this version of clocs: {found}.")
    try:
        encoder, signal = about["encoder"], about["signal"]
        return EncoderCard(
            method=about["method"],
            dataset=about["dataset"],
            encoder=encoder["name"],
            options=encoder["options"],
            input_channels=encoder["input_channels"],
            frame_samples=encoder["frame_samples"],
            embedding_dim=encoder["embedding_dim"],
            count=encoder["count"],
            channels=tuple(signal["channels"]),
            unit=signal["unit"],
            modality=signal["modality"],
            normalise=signal["normalise"],
            pretrain_framing=structure(Framing, signal["pretrain_framing"], "pretrain_framing"),
            evaluate_framing=structure(Framing, signal["evaluate_framing"], "evaluate_framing"),
            task=structure(Task, about["task"], "task"),
            split_hash=about["split_hash"],
            settings=about["settings"],
            licence=about["licence_of_the_data"],
            versions=about["versions"],
        )
    except (KeyError, TypeError, SettingsError) as problem:
        raise RunFolderError(f"The description in {file} is damaged: {problem!r}.") from None
