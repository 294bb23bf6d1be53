"""VICReg: views of one recording agree, without negatives (Bardes, Ponce and LeCun, ICLR 2022)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from clocs_core import Method, Objective, Setup, hookimpl, option

if TYPE_CHECKING:
    from torch import nn

_weight = (lambda weight: 0 <= weight < float("inf"), "be zero or more, and finite")


@attrs.frozen
class VICRegOptions:
    """Options of the objective `vicreg`; the weights are the paper's, its expander is 8192, 8192, 8192 wide."""

    invariance: float = option(25.0, "Weight lambda of the invariance between views.", check=_weight)
    variance: float = option(25.0, "Weight mu of the variance of every dimension over the batch.", check=_weight)
    covariance: float = option(1.0, "Weight nu of the covariance between dimensions.", check=_weight)
    expander: tuple[int, ...] = option(
        (512, 512, 512),
        "Widths of the layers between representation and loss; none: no layers.",
        check=(lambda widths: all(width > 0 for width in widths), "be positive numbers, or none"),
    )


@hookimpl
def clocs_objectives() -> list[Objective]:
    """Offer the objective: the loss with its expander network."""
    summary = "Variance, invariance and covariance of expanded representations, without negatives."
    return [Objective(name="vicreg", summary=summary, options=VICRegOptions, build=build_vicreg, of_embeddings=True)]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the method on adjacent segments of a recording."""
    summary = "Adjacent segments agree, dimensions vary and are uncorrelated: no negatives, no patient ids."
    return [Method(name="vicreg", summary=summary, views="segments", encoder="cnn", objective="vicreg")]


def build_vicreg(options: VICRegOptions, setup: Setup) -> nn.Module:
    """Build the objective with an expander for representations of the chosen size."""
    from clocs_plugins.vicreg.objective import VICReg

    return VICReg(setup.embedding_dim, **attrs.asdict(options))
