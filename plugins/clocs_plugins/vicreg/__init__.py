"""VICReg: views of one recording agree, and no negative is needed (Bardes, Ponce and LeCun, ICLR 2022)."""

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

    invariance: float = option(25.0, "weight lambda of views being alike", check=_weight)
    variance: float = option(25.0, "weight mu of every dimension varying over the batch", check=_weight)
    covariance: float = option(1.0, "weight nu of dimensions being uncorrelated", check=_weight)
    expander: tuple[int, ...] = option(
        (512, 512, 512),
        "widths of the layers between representation and loss; none: the loss is of the representation itself",
        check=(lambda widths: all(width > 0 for width in widths), "be positive numbers, or none"),
    )


@hookimpl
def clocs_objectives() -> list[Objective]:
    """Offer the loss with the network that expands what it sees."""
    summary = "Variance, invariance and covariance of expanded representations; it compares with no other instance."
    return [Objective(name="vicreg", summary=summary, options=VICRegOptions, build=build_vicreg)]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the method on adjacent segments of a recording, which are what should look alike."""
    summary = "Adjacent segments agree, dimensions vary and are uncorrelated: no negatives, no patient ids."
    return [Method(name="vicreg", summary=summary, views="segments", encoder="cnn", objective="vicreg")]


def build_vicreg(options: VICRegOptions, setup: Setup) -> nn.Module:
    """The objective, with an expander for representations of the size that was chosen."""
    from clocs_plugins.vicreg.objective import VICReg

    return VICReg(setup.embedding_dim, **attrs.asdict(options))
