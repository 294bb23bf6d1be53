"""The encoder file of a run: weights and card in one safetensors file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
import torch
from torch import Tensor, nn

from clocs_core.artifacts.card import EncoderCard, encoder_card
from clocs_core.artifacts.networks import build_encoders, fit_weights
from clocs_core.artifacts.tensors import read_tensors, refuse_other_schema, save_tensors
from clocs_core.contracts.scores import Score
from clocs_core.errors import RunFolderError
from clocs_core.plugins.catalogue import Catalogue

FILE = "encoder.safetensors"  # its name in a run folder


@attrs.frozen(eq=False)
class LoadedEncoder:
    """The encoders of a file in eval mode on a device, most often one, and their card."""

    modules: nn.ModuleList
    card: EncoderCard
    path: Path  # of the file itself

    @property
    def encoder(self) -> nn.Module:
        """The first encoder: the one that is evaluated."""
        return self.modules[0]


def save_encoder(weights: dict[str, Tensor], card: EncoderCard, path: Path) -> None:
    """Write weights and card.

    One encoder is written under its module's own names; of several, each has its number before them.
    """
    if card.count == 1:
        weights = {name.removeprefix("0."): tensor for name, tensor in weights.items()}
    save_tensors(weights, card.describe(), path)


def add_scores(path: Path, scores: Sequence[Score]) -> None:
    """Write an encoder file again with the scores of its run, which are known only after it was first written."""
    weights, description = read_tensors(path)
    refuse_other_schema(description, path, "encoder")
    save_tensors(weights, attrs.evolve(encoder_card(description, path), scores=tuple(scores)).describe(), path)


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


def load_encoder(path: Path, catalogue: Catalogue, device: torch.device) -> LoadedEncoder:
    """Open the encoder of a run folder or an encoder file. Only the encoder's own plugin is needed.

    Raises UnknownName where the plugin that offers the encoder is missing, and RunFolderError where there is no such
    file, where it is damaged or of another version, or where its weights do not fit what the plugin builds today.
    """
    file = find_encoder(path)
    weights, description = read_tensors(file)
    refuse_other_schema(description, file, "encoder")
    card = encoder_card(description, file)
    modules = nn.ModuleList(build_encoders(card, card.count, catalogue, file))
    if card.count == 1:
        weights = {f"0.{name}": tensor for name, tensor in weights.items()}
    fit_weights(modules, weights, card, file)
    return LoadedEncoder(modules.to(device).eval(), card, file)
