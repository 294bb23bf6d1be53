"""Frames of a data set, embedded by several encoders and scored: what was trained, beside what was not."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import torch
from torch import nn

from clocs_core.data.material import Material
from clocs_core.data.splits import PARTS, Part
from clocs_core.data.store import Store, fill_store, list_instances
from clocs_core.errors import DataError
from clocs_core.evaluate.features import Features, embed
from clocs_core.evaluate.patients import PatientDistances, patient_distances
from clocs_core.evaluate.protocols import Evaluation, linear_protocol
from clocs_core.extend.plan import Plan

__all__ = ["Scored", "score_encoders"]


@attrs.frozen(eq=False)
class Scored:
    """What was found. `features` of the part that was scored, and `distances`, are by encoder."""

    evaluation: Evaluation
    features: dict[str, Features]
    distances: dict[str, PatientDistances | None]
    frames: dict[Part, int]
    store: Store


def score_encoders(
    plan: Plan,
    material: Material,
    encoders: Mapping[str, nn.Module],
    device: torch.device,
    tick: Callable[[int, int], None],
) -> Scored:
    """Embed the training frames and those of the part to be scored with each encoder; the last one is the control.

    Where the method has several encoders, these are the first ones, and the channels are those that they read.
    """
    channels = plan.needs.of_first(material.channels)
    store = fill_store(material.evaluate, material.labels, plan.task, channels, device)
    together = plan.needs.encoder_channels == "all"
    parts = {
        part: list_instances(
            material.evaluate, frozenset(material.split.patients(part)), channels, 1, together, device
        )[0]
        for part in PARTS
    }
    scored: Part = plan.evaluate.part
    if not len(parts[scored]):
        raise DataError(
            f"No recording of the {scored} patients has a frame; use shorter frames (`-o frame_samples=…`)."
        )

    def features(encoder: nn.Module, part: Part) -> Features:
        return embed(encoder, store, parts[part], plan.data.normalise == "min-max", tick)

    name = plan.dataset.offer.name
    found = {init: features(encoder, scored) for init, encoder in encoders.items()}
    if material.has_labels:
        inits = {init: (features(encoder, "train"), found[init]) for init, encoder in encoders.items()}
        evaluation = linear_protocol(inits, plan.task, name, plan.metrics, plan.evaluate, plan.data.split_seed)
    else:
        evaluation = Evaluation(notes=(f"There is no score: {name} has no labels.",))
    distances = {init: patient_distances(rows.embedding, rows.patient) for init, rows in found.items()}
    return Scored(evaluation, found, distances, {part: len(some) for part, some in parts.items()}, store)
