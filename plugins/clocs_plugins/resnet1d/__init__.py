"""A one-dimensional residual network, of the kind used for ECGs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from clocs_core import Encoder, hookimpl, option

if TYPE_CHECKING:
    from torch import nn


@attrs.frozen
class ResNet1dOptions:
    """Options of the encoder `resnet1d`."""

    widths: tuple[int, ...] = option(
        (32, 64, 96, 128),
        "Channels of each stage; the stem has as many as the first.",
        check=(lambda widths: len(widths) > 0 and min(widths) > 0, "be one or more positive numbers"),
    )
    blocks: int = option(2, "Residual blocks in each stage.", check=(lambda n: n > 0, "be positive"))
    kernel: int = option(
        7, "Kernel size in samples.", check=(lambda k: k > 0 and k % 2 == 1, "be odd and positive, to have a middle")
    )
    dropout: float = option(
        0.1, "Share of features dropped inside each block.", check=(lambda p: 0 <= p < 1, "be in [0, 1)")
    )


@hookimpl
def clocs_encoders() -> list[Encoder]:
    """Offer the residual network."""
    summary = "A residual network: stem, stages that halve the length and widen, mean over time, linear."
    return [Encoder(name="resnet1d", summary=summary, options=ResNet1dOptions, build=build_resnet1d, sequence=True)]


def build_resnet1d(options: ResNet1dOptions, channels: int, samples: int, embedding_dim: int) -> nn.Module:
    """Build a network for signals of `channels` and `samples`. Raise SettingsError for frames of one sample."""
    from clocs_plugins.resnet1d.network import ResNet1d

    return ResNet1d(channels, samples, embedding_dim, **attrs.asdict(options))
