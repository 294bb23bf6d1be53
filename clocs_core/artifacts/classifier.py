"""Write, find and open the file of a fine-tuned classifier: weights and card."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
import torch
from torch import Tensor, nn

from clocs_core.artifacts.card import ClassifierCard, classifier_card
from clocs_core.artifacts.networks import build_encoders, fit_weights, with_head
from clocs_core.artifacts.run_folder import SEEDS, holds_seeds
from clocs_core.artifacts.tensors import read_description, read_tensors, refuse_other_schema, save_tensors
from clocs_core.contracts.scores import RANDOM
from clocs_core.errors import RunFolderError, SettingsError
from clocs_core.plugins.catalogue import Catalogue


@attrs.frozen(eq=False)
class LoadedClassifier:
    """A classifier in eval mode on a device: signals (n, channel, sample), normalised, to logits (n, class)."""

    network: nn.Module
    card: ClassifierCard
    path: Path  # the file


def choose_classifier(path: Path, init: str | None = None, fraction: float | None = None) -> Path:
    """Find the classifier of a file, of an evaluation folder or of a run folder.

    Among several, choose `init` and `fraction`; by default pre-trained weights and the largest label fraction.
    Raises RunFolderError where there is no classifier, and SettingsError where none matches or several do.
    """
    if path.is_file():
        if asked := _asked(init, fraction):
            raise SettingsError(f"{path} is one classifier; leave out {asked}, or give the folder that it lies in.")
        return path
    files = _files_in(path)
    cards = {file: read_classifier_card(file) for file in files}
    fitting = {
        file: card
        for file, card in cards.items()
        if init in (None, card.init) and (fraction is None or abs(fraction - card.fraction) < 1e-9)
    }
    if not fitting:
        held = "; ".join(dict.fromkeys(_asked(one.init, one.fraction) for one in cards.values()))
        raise SettingsError(f"{path} has no classifier with {_asked(init, fraction)}. It has: {held}.")
    trained = any(card.init != RANDOM for card in fitting.values())
    own = {file: card for file, card in fitting.items() if not trained or card.init != RANDOM}
    folders = sorted({file.parent.parent for file in own})
    if len(folders) > 1:  # they differ in data set or settings; only the user can choose
        raise SettingsError(
            f"{path} has {len(folders)} evaluations with such a classifier; give one of them: {_listed(folders)}."
        )
    return max(own, key=lambda file: own[file].fraction)


def save_classifier(weights: dict[str, Tensor], card: ClassifierCard, path: Path) -> None:
    """Write weights, named `encoder.…` and `head.…`, and the card."""
    save_tensors(weights, card.describe(), path)


def load_classifier(path: Path, catalogue: Catalogue, device: torch.device) -> LoadedClassifier:
    """Open the classifier of a file, in eval mode.

    Raises UnknownName where the plugin that offers its encoder is missing, and RunFolderError where the file is
    damaged, of another version, or holds weights that do not fit the network of the installed plugin.
    """
    weights, description = read_tensors(path)
    refuse_other_schema(description, path, "classifier")
    card = classifier_card(description, path)
    (encoder,) = build_encoders(card, 1, catalogue, weights, path)
    shape = (len(card.task.outputs), card.embedding_dim)
    held = tuple(weights["head.weight"].shape) if "head.weight" in weights else "none"
    if held != shape:
        raise RunFolderError(f"The card in {path} declares a head of shape {shape}, and the file holds {held}.")
    with torch.random.fork_rng(devices=[]):  # weights drawn here are overwritten; keep the caller's random state
        network = with_head(encoder, card.embedding_dim, card.task)
    fit_weights(network, weights, card, path)
    return LoadedClassifier(network.to(device).eval(), card, path)


def read_classifier_card(file: Path) -> ClassifierCard:
    """Read the card of a classifier file without its weights. Raises RunFolderError where the file is no classifier."""
    description = read_description(file)
    refuse_other_schema(description, file, "classifier")
    return classifier_card(description, file)


def _files_in(path: Path) -> list[Path]:
    """List the classifier files of an evaluation folder, or of all evaluations of a run, sorted by name."""
    if not path.exists():
        raise RunFolderError(f"{path} is not there. Give a folder that `evaluate` made, or a classifier in it.")
    if (path / SEEDS).is_file():
        raise RunFolderError(holds_seeds(path))
    files = sorted(path.glob("classifiers/*.safetensors")) or sorted(
        path.glob("evaluations/*/classifiers/*.safetensors")
    )
    if not files:
        what = "has no fine-tuned classifier" if (path / "settings.toml").exists() else "is no run and no evaluation"
        raise RunFolderError(
            f"{path} {what}: `evaluate(..., protocol='finetune')` trains one; the linear protocol keeps none."
        )
    return files


def _asked(init: str | None, fraction: float | None) -> str:
    """Format the arguments that were given: "`init=…` `label_fraction=…`"."""
    both = {
        "init": None if init is None else repr(init),
        "label_fraction": None if fraction is None else f"{fraction:g}",
    }
    return " ".join(f"`{name}={value}`" for name, value in both.items() if value is not None)


def _listed(files: Sequence[Path], most: int = 6) -> str:
    return ", ".join(map(str, files[:most])) + (", …" if len(files) > most else "")
