"""Momentum contrast: keys of earlier batches are negatives (He, Fan, Wu, Xie and Girshick, CVPR 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from clocs_core import Method, Objective, Setup, hookimpl, option

if TYPE_CHECKING:
    from torch import nn


@attrs.frozen
class MocoOptions:
    """Options of the objective `moco`."""

    queue: int = option(
        4096,
        "Keys that are kept; the oldest make room for new ones.",
        check=(lambda keys: 0 < keys <= 2**20, "be from 1 to 1,048,576"),
    )
    momentum: float = option(
        0.999,
        "Share of its weights that the network of the keys keeps at each step.",
        check=(lambda kept: 0 <= kept <= 1, "be in [0, 1]"),
    )
    temperature: float = option(
        0.1, "Temperature tau of the softmax.", check=(lambda tau: 0 < tau < float("inf"), "be positive and finite")
    )


@hookimpl
def clocs_objectives() -> list[Objective]:
    """Offer the objective."""
    summary = "Tell the key of another view from a queue of keys; keys of the same patient are never negatives."
    return [Objective(name="moco", summary=summary, options=MocoOptions, build=build_moco)]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the method on two adjacent segments of all leads."""
    summary = "Momentum contrast: adjacent segments attract each other; a queue of other patients' keys repels."
    train = {
        "projector": [512, 128],
        "optimiser": "adamw",
        "learning_rate": 1e-3,
        "warm_up": 0.02,
        "schedule": "cosine",
        "keep": "last",  # the queue is filled while the encoder trains, so losses of epochs do not compare
        "epochs": 100,
    }
    presets: dict[str, dict[str, object]] = {"views": {"leads": "all"}, "train": train}
    return [
        Method(name="moco", summary=summary, views="segments", encoder="xresnet1d", objective="moco", presets=presets)
    ]


def build_moco(options: MocoOptions, setup: Setup) -> nn.Module:
    """Build the objective; the network of its keys starts as a copy of encoder and projector."""
    from clocs_plugins.moco.objective import Moco

    bf16 = setup.autocast == "bf16"
    return Moco(setup.encoder, setup.projector, setup.embedding_dim, bf16=bf16, **attrs.asdict(options))
