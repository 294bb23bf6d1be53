"""The encoder as one self-describing safetensors file: weights, and all that is needed to use them again."""

from __future__ import annotations

from pathlib import Path

import attrs
from torch import Tensor

from clocs_core.data.splits import Split
from clocs_core.extend.plan import Plan
from clocs_core.options import plain
from clocs_core.settings import SCHEMA
from clocs_core.train.checkpoint import save_tensors

__all__ = ["save_encoder"]


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
