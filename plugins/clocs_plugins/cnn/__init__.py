"""The encoder of the CLOCS paper: three convolutional blocks and a linear layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs

from clocs_core import Encoder, hookimpl, option

if TYPE_CHECKING:
    from torch import nn


@attrs.frozen
class CNNOptions:
    """Options of the encoder `cnn`; the defaults are the paper's. An embedding can be all zero with layer4_relu."""

    dropout: float = option(
        0.1, "Share of features dropped after each block.", check=(lambda p: 0 <= p < 1, "be in [0, 1)")
    )
    layer4_relu: bool = option(True, "ReLU after the linear layer: in the paper's table, not in its released code.")
    widths: tuple[int, ...] = option(
        (4, 16, 32),
        "Output channels of each block.",
        check=(lambda widths: len(widths) > 0 and min(widths) > 0, "be one or more positive numbers"),
    )
    kernel: int = option(7, "Kernel size in samples.", check=(lambda k: k > 0, "be positive"))
    stride: int = option(3, "Stride of the kernels in samples.", check=(lambda s: s > 0, "be positive"))
    implementation: Literal["auto", "plain", "rows", "fused"] = option(
        "auto",
        "Implementation of the blocks: torch's modules, rows on a CPU, kernels on a GPU; same results.",
        equivalent=True,
    )


@hookimpl
def clocs_encoders() -> list[Encoder]:
    """Offer the paper's network."""
    summary = "The paper's network: three blocks of convolution, BatchNorm, ReLU and pooling, then linear."
    return [Encoder(name="cnn", summary=summary, options=CNNOptions, build=build_cnn)]


def build_cnn(options: CNNOptions, channels: int, samples: int, embedding_dim: int) -> nn.Module:
    """Build a network for signals of `channels` and `samples`. Raise SettingsError if frames are too short."""
    from clocs_plugins.cnn.network import CNN

    return CNN(channels, samples, embedding_dim, **attrs.asdict(options))
