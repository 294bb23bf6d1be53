"""Fine-tuned classifiers opened again: which of a folder's files is meant, and what it says of itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from clocs_core.data.records import Framing, Task
from clocs_core.errors import RunFolderError, SettingsError, UnknownName
from clocs_core.evaluate.finetune import build_classifier
from clocs_core.evaluate.pretrained import RANDOM
from clocs_core.extend.catalogue import Catalogue
from clocs_core.options import structure
from clocs_core.settings import SCHEMA, Tables
from clocs_core.train.checkpoint import read_tensors

__all__ = ["ClassifierCard", "LoadedClassifier", "choose_classifier", "load_classifier", "read_classifier_card"]


@attrs.frozen(kw_only=True)
class ClassifierCard:
    """What a classifier file says of itself: how to build it, what signal it reads, and what its answers mean.

    init: whose weights fine-tuning began with. fraction: F, the share of labels it learnt from.
    input_channels: 1 where it reads each channel by itself, else as many as `channels`.
    frame_rate: Hz of the samples of a frame; None where recordings of several rates were cut at their own.
    says_rate: whether the file has it at all.
    settings: of the evaluation that trained it, as tables.
    """

    init: str
    fraction: float
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
        return path
    files = _files_in(path)
    cards = {file: read_classifier_card(file) for file in files}
    fitting = {
        file: card
        for file, card in cards.items()
        if init in (None, card.init) and (fraction is None or abs(fraction - card.fraction) < 1e-9)
    }
    if not fitting:
        asked = " ".join(f"--{name} {value}" for name, value in _asked(init, fraction).items())
        held = "; ".join(
            dict.fromkeys(f"--init {one.init} --label-fraction {one.fraction:g}" for one in cards.values())
        )
        raise SettingsError(f"{path} has no classifier with {asked}. It has: {held}.")
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
    card = read_classifier_card(path)
    weights, _ = read_tensors(path)
    network = _build(card, catalogue, path)
    try:
        network.load_state_dict(weights, strict=True)
    except RuntimeError as problem:
        first = " ".join(str(problem).split())[:300]
        raise RunFolderError(
            f"The weights in {path} do not fit the encoder {card.encoder!r} that is installed: {first} Install the "
            f"version that wrote it ({_written_with(card)})."
        ) from None
    return LoadedClassifier(network.to(device).eval(), card, path)


def read_classifier_card(file: Path) -> ClassifierCard:
    """What a classifier file says of itself; no weights are read. Raises RunFolderError where it is none."""
    try:
        with safe_open(file, framework="pt") as held:
            about = json.loads((held.metadata() or {}).get("clocs", "{}"))
    except (SafetensorError, OSError, ValueError) as problem:
        raise RunFolderError(f"Cannot read {file}: {problem}.") from None
    if about.get("schema") != SCHEMA:
        found = f"schema {about['schema']!r}, this one reads {SCHEMA}" if "schema" in about else "it says nothing of it"
        raise RunFolderError(f"{file} is no classifier file of this version of clocs: {found}.")
    if "head" not in about:
        raise RunFolderError(
            f"{file} is no classifier: it holds {'an encoder' if 'encoder' in about else 'something else'}. "
            "`clocs evaluate RUN --protocol finetune` trains one."
        )
    return _card(about, file)


def _card(about: dict[str, Any], file: Path) -> ClassifierCard:
    try:
        encoder, signal = about["encoder"], about["signal"]
        return ClassifierCard(
            init=about["init"],
            fraction=about["label_fraction"],
            dataset=about["dataset"],
            encoder=encoder["name"],
            options=encoder["options"],
            input_channels=encoder["input_channels"],
            frame_samples=encoder["frame_samples"],
            embedding_dim=encoder["embedding_dim"],
            channels=tuple(signal["channels"]),
            unit=signal["unit"],
            modality=signal["modality"],
            normalise=signal["normalise"],
            framing=structure(Framing, signal["framing"], "framing"),
            frame_rate=signal.get("frame_rate"),
            says_rate="frame_rate" in signal,
            task=structure(Task, about["task"], "task"),
            split_hash=about["split_hash"],
            settings=about["settings"],
            versions=about["versions"],
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


def _asked(init: str | None, fraction: float | None) -> dict[str, str]:
    both = {"init": init, "label-fraction": None if fraction is None else f"{fraction:g}"}
    return {name: value for name, value in both.items() if value is not None}


def _listed(files: Sequence[Path], most: int = 6) -> str:
    return ", ".join(map(str, files[:most])) + (", …" if len(files) > most else "")


def _build(card: ClassifierCard, catalogue: Catalogue, file: Path) -> nn.Sequential:
    try:
        offer = catalogue.encoders.get(card.encoder).offer
    except UnknownName as problem:
        raise UnknownName(
            f"{file} is made with an encoder {card.encoder!r} that is not installed here (it was written with "
            f"{_written_with(card)}). {problem}"
        ) from None
    try:
        options = structure(offer.options, card.options, "encoder")
        with torch.random.fork_rng(devices=[]):  # first weights are drawn, and overwritten: nobody's draws may shift
            encoder = offer.build(options, card.input_channels, card.frame_samples, card.embedding_dim)
            return build_classifier(encoder, card.embedding_dim, len(card.task.classes), seed=0)
    except (SettingsError, ValueError) as problem:
        raise RunFolderError(
            f"The encoder {card.encoder!r} of {file} cannot be built by the plugin that is installed: {problem} "
            f"Install the version that wrote it ({_written_with(card)})."
        ) from None


def _written_with(card: ClassifierCard) -> str:
    """The distributions that it was made with, each once: "clocs 0.1.0, other 2.0"."""
    plugins = [version for name, version in card.versions.items() if name.startswith("plugin ")]
    return ", ".join(sorted({f"clocs {card.versions.get('clocs', '?')}", *plugins}))
