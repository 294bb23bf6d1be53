"""BYOL: predict the embedding of another view by a moving average of the encoder (Grill et al., NeurIPS 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs

from clocs_core import Method, Objective, Setup, hookimpl, option

if TYPE_CHECKING:
    from torch import nn


@attrs.frozen
class BYOLOptions:
    """Options of the objective `byol`. The defaults are those of the CLOCS paper: "We chose tau_d = 0.9"."""

    decay: float = option(
        0.9,
        "Decay tau_d of the target at each step; 0 makes it the online network, 1 leaves it untrained.",
        check=(lambda decay: 0 <= decay <= 1, "be in [0, 1]"),
    )
    loss: Literal["mse", "cosine"] = option("mse", "Mean squared error, or 2 - 2 cos as in Grill et al.")
    predictor_relu: bool = option(True, "ReLU after the predictor's linear layer, as after the paper's layer 4.")


@hookimpl
def clocs_objectives() -> list[Objective]:
    """Offer the objective."""
    summary = "Predict the embedding that a moving average of the encoder gives to another view."
    return [Objective(name="byol", summary=summary, options=BYOLOptions, build=build_byol)]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the method as in the CLOCS paper, appendix C, but for the epoch that is kept.

    Its loss is measured against a target that moves, so that epochs cannot be compared by it: it is lowest after the
    first. `keep=loss` is the paper's rule.
    """
    summary = "Bootstrap your own latent: perturbed copies of a frame predict each other, without negatives."
    perturbations = ("gaussian",)
    return [
        Method(
            name="byol",
            summary=summary,
            views="perturbed",
            encoder="cnn",
            objective="byol",
            perturbations=perturbations,
            presets={"train": {"keep": "separation"}},
        )
    ]


def build_byol(options: BYOLOptions, setup: Setup) -> nn.Module:
    """Build the objective; its target starts as a copy of the encoder."""
    from clocs_plugins.byol.bootstrap import DISTANCES, Bootstrap

    return Bootstrap(
        setup.encoder,
        setup.embedding_dim,
        decay=options.decay,
        distance=DISTANCES[options.loss],
        predictor_relu=options.predictor_relu,
        bf16=setup.autocast == "bf16",
    )
