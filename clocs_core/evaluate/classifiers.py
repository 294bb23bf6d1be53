"""Fine-tuned classifiers opened again: which of a folder's files is meant, and what it says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import torch
from torch import nn

from clocs_core.errors import RunFolderError, SettingsError
from clocs_core.evaluate.finetune import build_classifier
from clocs_core.evaluate.pretrained import RANDOM
from clocs_core.extend.catalogue import Catalogue
from clocs_core.train.described import (
    NetworkCard,
    build_encoders,
    card_fields,
    fit_weights,
    read_described,
    read_description,
)

__all__ = ["ClassifierCard", "LoadedClassifier", "choose_classifier", "load_classifier", "read_classifier_card"]


@attrs.frozen(kw_only=True)
class ClassifierCard(NetworkCard):
    """What a classifier file says of itself; `task` is what its answers mean.

    init: whose weights fine-tuning began with. fraction: F, the share of labels it learnt from.
    recorded: all channels of its recordings, read or not; none where the file does not say.
    """

    what: ClassVar[str] = "classifier"

    init: str
    fraction: float
    recorded: tuple[str, ...] = ()


@attrs.frozen(eq=False)
class LoadedClassifier:
    """A classifier in eval mode on a device: signals (n, channel, sample), normalised, to logits (n, class)."""

    network: nn.Module
    about: ClassifierCard
    path: Path  # of the file itself


def choose_classifier(path: Path, init: str | None = None, fraction: float | None = None) -> Path:
    """The classifier of a file, an evaluation's folder or a run's folder.

    Of several, the one of `init` at `fraction`; not said, weights that were pre-trained, and the largest share.
    Raises RunFolderError where there is none, and SettingsError where there is none such, or more than one.
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
        held = "; ".join(
            dict.fromkeys(f"--init {one.init} --label-fraction {one.fraction:g}" for one in cards.values())
        )
        raise SettingsError(f"{path} has no classifier with {_asked(init, fraction)}. It has: {held}.")
    trained = any(card.init != RANDOM for card in fitting.values())
    own = {file: card for file, card in fitting.items() if not trained or card.init != RANDOM}
    folders = sorted({file.parent.parent for file in own})
    if len(folders) > 1:  # other data sets, other settings: nothing makes one of them the right one
        raise SettingsError(
            f"{path} has {len(folders)} evaluations with such a classifier; give one of them: {_listed(folders)}."
        )
    return max(own, key=lambda file: own[file].fraction)


def load_classifier(path: Path, catalogue: Catalogue, device: torch.device) -> LoadedClassifier:
    """Open the classifier of a file, in eval mode.

    Raises UnknownName where the plugin that offers its encoder is missing, and RunFolderError where the file is
    damaged, of another version, or holds weights that do not fit what the plugin builds today.
    """
    weights, about = read_described(path, "classifier")
    card = _card(about, path)
    (encoder,) = build_encoders(card, 1, catalogue, path)
    with torch.random.fork_rng(devices=[]):  # the head is drawn, and overwritten: nobody's draws may shift
        network = build_classifier(encoder, card.embedding_dim, len(card.task.classes), seed=0)
    fit_weights(network, weights, card, path)
    return LoadedClassifier(network.to(device).eval(), card, path)


def read_classifier_card(file: Path) -> ClassifierCard:
    """What a classifier file says of itself; no weights are read. Raises RunFolderError where it is none."""
    return _card(read_description(file, "classifier"), file)


def _card(about: Mapping[str, Any], file: Path) -> ClassifierCard:
    if "head" not in about:
        raise RunFolderError(
            f"{file} is no classifier: it holds {'an encoder' if 'encoder' in about else 'something else'}. "
            "`clocs evaluate RUN --protocol finetune` trains one."
        )
    try:
        return ClassifierCard(
            **card_fields(about),
            init=about["init"],
            fraction=about["label_fraction"],
            recorded=tuple(about["signal"].get("recorded", ())),
        )
    except (AttributeError, KeyError, TypeError, SettingsError) as problem:
        raise RunFolderError(f"The description in {file} is damaged: {problem!r}.") from None


def _files_in(path: Path) -> list[Path]:
    """The classifier files of an evaluation's folder, or of all evaluations of a run, by name."""
    if not path.exists():
        raise RunFolderError(f"{path} is not there. Give a folder that `clocs evaluate` made, or a classifier in it.")
    files = sorted(path.glob("classifiers/*.safetensors")) or sorted(
        path.glob("evaluations/*/classifiers/*.safetensors")
    )
    if not files:
        what = "has no fine-tuned classifier" if (path / "settings.toml").exists() else "is no run and no evaluation"
        raise RunFolderError(
            f"{path} {what}: `clocs evaluate RUN --protocol finetune` trains one; the linear protocol keeps none."
        )
    return files


def _asked(init: str | None, fraction: float | None) -> str:
    """The flags as they were typed."""
    both = {"init": init, "label-fraction": None if fraction is None else f"{fraction:g}"}
    return " ".join(f"--{name} {value}" for name, value in both.items() if value is not None)


def _listed(files: Sequence[Path], most: int = 6) -> str:
    return ", ".join(map(str, files[:most])) + (", …" if len(files) > most else "")
