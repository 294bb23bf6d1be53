"""The network of the CLOCS paper (ICML 2021), appendix C, without the classifier on top.

    blocks 1 to 3   Conv1d(kernel 7, stride 3, no padding), BatchNorm, ReLU, MaxPool(2), Dropout(0.1)
                    with 4, 16 and 32 output channels
    layer 4         Linear(features, E), ReLU

2500 samples become 832, pooled 416; 137, pooled 68; 21, pooled 10: 320 features, as in the paper's table. The
released code has no ReLU in layer 4; `layer4_relu=False` gives that network, with the same parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from torch import nn

from clocs_core import SettingsError
from clocs_plugins.cnn.block import POOL, Block
from clocs_plugins.cnn.implementations import Implementation, run_blocks, run_linear

if TYPE_CHECKING:
    from torch import Tensor


class CNN(nn.Module):
    """The network: signals (n, channel, sample) to representations (n, embedding_dim).

    Checkpoints contain the names of its modules: blocks.0.conv, blocks.0.norm, …, linear.
    implementation: how to compute the blocks, `auto` for the fastest; see `implementations`.
    """

    def __init__(
        self,
        channels: int,
        samples: int,
        embedding_dim: int,
        *,
        widths: Sequence[int] = (4, 16, 32),
        kernel: int = 7,
        stride: int = 3,
        dropout: float = 0.1,
        layer4_relu: bool = True,
        implementation: Implementation = "auto",
    ) -> None:
        super().__init__()
        left = samples_left(samples, len(widths), kernel, stride)
        if left < 1:
            raise SettingsError(
                f"The encoder cnn was asked to read frames of {samples} samples, but {len(widths)} blocks with "
                f"kernel {kernel} and stride {stride} need at least {least_samples(len(widths), kernel, stride)}. "
                "Use longer frames, or fewer blocks, a smaller kernel or a smaller stride."
            )
        sides = pairwise((channels, *widths))
        self.blocks = nn.Sequential(*(Block(before, after, kernel, stride, dropout) for before, after in sides))
        self.linear = nn.Linear(widths[-1] * left, embedding_dim)
        self.activation = nn.ReLU() if layer4_relu else nn.Identity()
        self.implementation = implementation

    def forward(self, signal: Tensor) -> Tensor:
        """Encode signals. In training, BatchNorm makes a representation depend on all signals; else only on its own."""
        features = run_blocks(self.blocks, signal, self.implementation).flatten(1)  # (n, width * samples left)
        return run_linear(self.linear, self.activation, features, self.implementation)  # (n, embedding_dim)


def samples_left(samples: int, blocks: int, kernel: int, stride: int) -> int:
    """Return how many samples of a frame are left after the convolutional blocks; 0 if it is too short."""
    for _ in range(blocks):
        convolved = (samples - kernel) // stride + 1 if samples >= kernel else 0
        samples = convolved // POOL
    return samples


def least_samples(blocks: int, kernel: int, stride: int) -> int:
    """Return the length of the shortest frame that leaves one sample after the convolutional blocks."""
    samples = 1
    for _ in range(blocks):
        samples = (samples * POOL - 1) * stride + kernel
    return samples
