"""SimCLR: perturbed views of one instance attract each other (Chen, Kornblith, Norouzi and Hinton, ICML 2020)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from clocs_core import Loss, Method, Variant, hookimpl, option

if TYPE_CHECKING:
    from torch import Tensor


@attrs.frozen
class NTXentOptions:
    """Options of the loss `nt-xent`. "We chose the temperature parameter, tau = 0.1", as Chen et al. (2020)."""

    temperature: float = option(
        0.1, "softmax temperature tau", check=(lambda tau: 0 < tau < float("inf"), "be positive and finite")
    )


@hookimpl
def clocs_losses() -> list[Loss]:
    """Offer the loss of SimCLR."""
    summary = "Normalised temperature-scaled cross-entropy of SimCLR: every other instance repels, whoever it is of."
    return [Loss(name="nt-xent", summary=summary, options=NTXentOptions, build=build_nt_xent)]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer SimCLR, as the CLOCS paper compares with it: two noisy copies of a frame."""
    released = "What the authors released: no ReLU after the encoder's linear layer, BatchNorm per view."
    return [
        Method(
            name="simclr",
            summary="SimCLR: two perturbed copies of one frame are what is shared.",
            views="perturbed",
            encoder="cnn",
            loss="nt-xent",
            perturbations=("gaussian",),
            variants={
                "paper": Variant(summary="As the paper has it; the same as no variant.", presets={}),
                "released": Variant(
                    summary=released, presets={"encoder": {"layer4_relu": False}, "train": {"per_view": True}}
                ),
            },
        )
    ]


def build_nt_xent(options: NTXentOptions) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss at one temperature, as a function of embeddings and of patients that it does not look at."""
    from clocs_plugins.simclr.nt_xent import nt_xent

    def loss(views: Tensor, patient: Tensor) -> Tensor:
        return nt_xent(views, options.temperature)

    return loss
