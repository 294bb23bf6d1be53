"""The encoder file of a run: weights and card in one safetensors file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import torch
from torch import Tensor, nn

from clocs_core.artifacts.card import EncoderCard, encoder_card
from clocs_core.artifacts.networks import build_encoders, fit_weights
from clocs_core.artifacts.run_folder import SEEDS, holds_seeds, open_run_folder
from clocs_core.artifacts.tensors import pack_tensors, read_tensors, refuse_other_schema, save_tensors
from clocs_core.contracts.scores import Score
from clocs_core.errors import RunFolderError
from clocs_core.files import write_atomically
from clocs_core.plugins.catalogue import Catalogue

FILE = "encoder.safetensors"  # file name in a run folder


@attrs.frozen(eq=False)
class LoadedEncoder:
    """The encoders of a file, most often one, in eval mode on a device, and their card."""

    modules: nn.ModuleList
    card: EncoderCard
    path: Path | None  # the file; None where the encoder is in memory

    @property
    def encoder(self) -> nn.Module:
        """The first encoder: the one that is evaluated."""
        return self.modules[0]


def pack_encoder(weights: Mapping[str, Tensor], card: EncoderCard) -> bytes:
    """Return the bytes of an encoder file with weights and card.

    One encoder keeps the parameter names of its module; several get their number as a prefix: `0.`, `1.`.
    """
    if card.count == 1:
        weights = {name.removeprefix("0."): tensor for name, tensor in weights.items()}
    return pack_tensors(weights, card.describe())


def save_encoder(weights: Mapping[str, Tensor], card: EncoderCard, path: Path) -> None:
    """Write an encoder file with weights and card."""
    write_atomically(path, pack_encoder(weights, card))


def add_scores(path: Path, scores: Sequence[Score]) -> None:
    """Rewrite an encoder file with the scores of its run, which are known only after the file was first written."""
    weights, description = read_tensors(path)
    refuse_other_schema(description, path, "encoder")
    save_tensors(weights, attrs.evolve(encoder_card(description, path), scores=tuple(scores)).describe(), path)


def find_encoder(path: Path) -> Path:
    """Return the encoder file of a run folder, or `path` if it is a file. Raises RunFolderError where there is none."""
    if path.is_file():
        return path
    if (path / FILE).is_file():
        return path / FILE
    if not path.exists():
        raise RunFolderError(f"{path} is not there. Give a folder that `pretrain` made, or its {FILE}.")
    if (path / "settings.toml").exists():
        open_run_folder(path)  # raises for an evaluation
        raise RunFolderError(
            f"{path} has no {FILE}: the run is not finished. Go on with it: `pretrain(..., out={str(path)!r})`."
        )
    if (path / SEEDS).is_file():
        raise RunFolderError(holds_seeds(path))
    raise RunFolderError(f"{path} is not a run folder: it has no {FILE}. Give the folder that `pretrain` made.")


def load_encoder(source: Path | bytes, catalogue: Catalogue, device: torch.device) -> LoadedEncoder:
    """Open the encoder of a run folder, of an encoder file, or of its bytes. Needs only the plugin of the encoder.

    Raises UnknownName where the plugin that offers the encoder is missing, and RunFolderError where there is no such
    file, where it is damaged or of another version, or where its weights do not fit the installed plugin's network.
    """
    file = None if isinstance(source, bytes) else find_encoder(source)
    weights, description = read_tensors(source if file is None else file)
    named = file or Path("the encoder in memory")
    refuse_other_schema(description, named, "encoder")
    card = encoder_card(description, named)
    if card.count == 1:
        weights = {f"0.{name}": tensor for name, tensor in weights.items()}
    held = {name.partition(".")[0] for name in weights}
    if card.count > 1 and len(held) != card.count:
        raise RunFolderError(f"The card in {named} declares {card.count:,} encoders, and the file holds {len(held)}.")
    modules = nn.ModuleList(build_encoders(card, card.count, catalogue, weights, named))
    fit_weights(modules, weights, card, named)
    return LoadedEncoder(modules.to(device).eval(), card, file)
