"""The encoder as one self-describing safetensors file: weights, and all that is needed to use them again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import torch
from torch import Tensor, nn

from clocs_core.data.records import Framing
from clocs_core.data.splits import Split
from clocs_core.errors import RunFolderError, SettingsError
from clocs_core.extend.catalogue import Catalogue
from clocs_core.extend.plan import Plan
from clocs_core.options import plain, structure
from clocs_core.scores import Score
from clocs_core.settings import SCHEMA
from clocs_core.train.checkpoint import save_tensors
from clocs_core.train.described import (
    NetworkCard,
    build_encoders,
    card_fields,
    fit_weights,
    read_described,
    read_description,
)

__all__ = ["EncoderCard", "LoadedEncoder", "add_scores", "find_encoder", "load_encoder", "read_card", "save_encoder"]

FILE = "encoder.safetensors"  # what a run folder calls it


@attrs.frozen(kw_only=True)
class EncoderCard(NetworkCard):
    """What an encoder file says of itself.

    count: how many encoders it holds. pretrain_framing: how recordings were cut to train it; `framing`, to evaluate it.
    scores: of its run, controls included; none where the run ended before they were known.
    """

    what: ClassVar[str] = "encoder"

    method: str
    count: int
    pretrain_framing: Framing
    scores: tuple[Score, ...] = ()


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
    *,
    frame_rate: float | None,
) -> None:
    """Write the best weights with the settings, the signal they expect, label names and split hash inside.

    frame_rate: Hz of the samples of a frame in evaluation, None where recordings of several rates were read.
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
            "first_channels": list(plan.needs.of_first(channels)),
            "unit": unit,
            "modality": plan.dataset.offer.modality,
            "normalise": plan.data.normalise,
            "frame_rate": frame_rate,
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


def add_scores(path: Path, scores: Sequence[Score]) -> None:
    """Write an encoder file again with what its run scored, which is known only after the file was first written."""
    weights, about = read_described(path, "encoder")
    rows = [{name: _finite(value) for name, value in attrs.asdict(score).items()} for score in scores]
    save_tensors(weights, {**about, "scores": rows}, path)


def _finite(value: object) -> object:
    """JSON has no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
    return _card(read_description(file, "encoder"), file)


def load_encoder(path: Path, catalogue: Catalogue, device: torch.device) -> LoadedEncoder:
    """Open the encoder of a run again: a run folder, or its file. No plugin but the encoder's own is needed.

    Raises UnknownName where the plugin that offers the encoder is missing, and RunFolderError where there is no such
    file, where it is damaged or of another version, or where its weights do not fit what the plugin builds today.
    """
    file = find_encoder(path)
    weights, about = read_described(file, "encoder")
    card = _card(about, file)
    modules = nn.ModuleList(build_encoders(card, card.count, catalogue, file))
    if card.count == 1:
        weights = {f"0.{name}": tensor for name, tensor in weights.items()}
    fit_weights(modules, weights, card, file)
    return LoadedEncoder(modules.to(device).eval(), card, file)


def _card(about: Mapping[str, Any], file: Path) -> EncoderCard:
    if "encoder" not in about or "head" in about:
        held = "a classifier" if "head" in about else "something else"
        raise RunFolderError(
            f"{file} is no encoder: it holds {held}. Give a folder that `clocs run` made, or its {FILE}."
        )
    try:
        return EncoderCard(
            **card_fields(about),
            method=about["method"],
            count=about["encoder"]["count"],
            pretrain_framing=structure(Framing, about["signal"]["pretrain_framing"], "pretrain_framing"),
            scores=tuple(_score(row) for row in about.get("scores", ())),
        )
    except (AttributeError, KeyError, TypeError, SettingsError) as problem:
        raise RunFolderError(f"The description in {file} is damaged: {problem!r}.") from None


def _score(row: Mapping[str, Any]) -> Score:
    fields: dict[str, Any] = {name: math.nan if value is None else value for name, value in row.items()}
    return Score(**fields)
