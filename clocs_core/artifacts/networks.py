"""Build the network that a card describes, and load the weights of its file."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from clocs_core.artifacts.card import NetworkCard
from clocs_core.errors import RunFolderError, SettingsError, UnknownName
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.settings.options import structure


def build_encoders(card: NetworkCard, count: int, catalogue: Catalogue, file: Path) -> list[nn.Module]:
    """Build `count` encoders with random weights, to be overwritten.

    Raises UnknownName where the plugin that offers them is missing, RunFolderError where it cannot build them.
    """
    try:
        offer = catalogue.encoders.get(card.encoder).offer
    except UnknownName as problem:
        raise UnknownName(
            f"{file} holds an encoder {card.encoder!r} that is not installed here{_missing(card, catalogue)}. {problem}"
        ) from None
    try:
        options = structure(offer.options, card.options, "encoder")
        with torch.random.fork_rng(devices=[]):  # weights drawn here are overwritten; keep the caller's random state
            return [
                offer.build(options, card.input_channels, card.frame_samples, card.embedding_dim) for _ in range(count)
            ]
    except (SettingsError, ValueError) as problem:
        raise RunFolderError(
            f"The encoder {card.encoder!r} of {file} cannot be built by the plugin that is installed: {problem} "
            f"Install the version that wrote it ({card.written_with})."
        ) from None


def with_head(encoder: nn.Module, embedding_dim: int, classes: int) -> nn.Sequential:
    """Put a new linear head on the encoder: signals (n, channel, sample) to logits (n, class).

    The head's weights are drawn from torch's default generator.
    """
    return nn.Sequential(OrderedDict(encoder=encoder, head=nn.Linear(embedding_dim, classes)))


def fit_weights(network: nn.Module, weights: Mapping[str, Tensor], card: NetworkCard, file: Path) -> None:
    """Load weights into a network. Raises RunFolderError where they do not fit."""
    try:
        network.load_state_dict(weights, strict=True)
    except RuntimeError as problem:
        first = " ".join(str(problem).split())[:300]
        raise RunFolderError(
            f"The weights in {file} do not fit the encoder {card.encoder!r} that is installed: {first} Install the "
            f"version that wrote it ({card.written_with})."
        ) from None


def _missing(card: NetworkCard, catalogue: Catalogue) -> str:
    """List the plugins of the run that offer nothing here, with distributions: one of them had the encoder."""
    here = {f"plugin {item.plugin.name}" for shelf in catalogue.shelves() for item in shelf}
    gone = {name: version for name, version in card.versions.items() if name.startswith("plugin ") and name not in here}
    told = ", ".join(f"{name.removeprefix('plugin ')} ({version})" for name, version in sorted(gone.items()))
    return f"; of the plugins that it was made with, these offer nothing here: {told}" if told else ""
