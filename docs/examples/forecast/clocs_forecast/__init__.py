"""Contrastive predictive coding (van den Oord et al., 2018) as a plugin: an encoder with a sequence, and an objective.

`clocs run --plugin forecast --dataset demo`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from clocs_core import Encoder, Method, Objective, Setup, hookimpl, option

if TYPE_CHECKING:
    from torch import nn

CLOCS_API = "1.2"


@attrs.frozen
class CausalOptions:
    """The size of the encoder."""

    width: int = option(64, "Features at each position.", check=(lambda n: n > 0, "be positive"))
    stride: int = option(10, "Samples from one position to the next.", check=(lambda n: n > 0, "be positive"))


@attrs.frozen
class ForecastOptions:
    """How far the objective looks ahead."""

    ahead: int = option(4, "Positions ahead that are predicted.", check=(lambda n: n > 0, "be positive"))


def build_causal(options: CausalOptions, channels: int, samples: int, embedding_dim: int) -> nn.Module:
    """Build the encoder."""
    from clocs_forecast.networks import Causal

    return Causal(channels, samples, options.width, options.stride, embedding_dim)


def build_forecast(options: ForecastOptions, setup: Setup) -> nn.Module:
    """Build the objective for the encoder of the run."""
    from clocs_forecast.networks import Forecast

    return Forecast(setup.encoder, setup.signals, options.ahead)


@hookimpl
def clocs_encoders() -> list[Encoder]:
    """Offer the encoder."""
    summary = "Convolutions that see the past only."
    return [Encoder(name="causal", summary=summary, options=CausalOptions, build=build_causal, sequence=True)]


@hookimpl
def clocs_objectives() -> list[Objective]:
    """Offer the objective."""
    summary = "Predict the next positions of a frame, told from its other positions."
    return [
        Objective(name="forecast", summary=summary, options=ForecastOptions, build=build_forecast, sequence=True),
    ]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the method. `frames` are the views of clocs that hold a whole frame."""
    summary = "Contrastive predictive coding inside a frame."
    return [Method(name="forecast", summary=summary, views="frames", encoder="causal", objective="forecast")]
