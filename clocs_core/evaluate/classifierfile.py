"""A fine-tuned classifier as one self-describing safetensors file: weights, and all that is needed to predict."""

from __future__ import annotations

from pathlib import Path

import attrs
from torch import Tensor

from clocs_core.data.material import Material
from clocs_core.evaluate.downstream import Downstream
from clocs_core.options import plain
from clocs_core.settings import SCHEMA
from clocs_core.train.checkpoint import save_tensors

__all__ = ["save_classifier"]


def save_classifier(
    weights: dict[str, Tensor],
    asked: Downstream,
    material: Material,
    init: str,
    fraction: float,
    versions: dict[str, str],
    path: Path,
) -> None:
    """Write weights named `encoder.…` and `head.…` with the architecture, the signal and the label names inside."""
    encoder = asked.encoder
    about: dict[str, object] = {
        "schema": SCHEMA,
        "protocol": asked.asked.protocol,
        "init": init,
        "label_fraction": fraction,
        "dataset": asked.dataset.offer.name,
        "encoder": {
            "name": encoder.encoder.offer.name,
            "options": plain(encoder.encoder.options),
            "input_channels": encoder.inputs,
            "frame_samples": asked.framing.frame_samples,
            "embedding_dim": encoder.embedding_dim,
        },
        "head": {"features": encoder.embedding_dim, "classes": len(asked.task.classes)},
        "signal": {
            "frame_rate": material.evaluate.frame_rate,  # samples of a frame per second; null where recordings differ
            "channels": list(material.channels),
            "recorded": list(material.evaluate.channels),  # all that there were, by the names they had
            "unit": material.evaluate.unit,
            "modality": asked.dataset.offer.modality,
            "normalise": asked.data.normalise,
            "framing": plain(asked.framing),
        },
        "task": attrs.asdict(asked.task),
        "split_hash": material.split.hash,
        "encoder_sha256": encoder.sha256,
        "settings": asked.tables(),
        "licence_of_the_data": asked.dataset.offer.licence,
        "versions": versions,
    }
    save_tensors(weights, about, path)
