"""xresnet1d: the ResNet of He et al. (CVPR 2016) in the form of He et al. (CVPR 2019), over time.

    stem       three Conv1d(kernel), the first with stride 2; BatchNorm and ReLU after each; MaxPool1d(3, stride 2)
    a stage    residual blocks; the first of them halves the length, but for the first stage
    a block    Conv1d, BatchNorm, ReLU, Conv1d, BatchNorm; plus its shortcut; ReLU. Bottleneck: 1, kernel, 1 samples
    shortcut   AvgPool1d(2) before Conv1d(1), BatchNorm, where length or width change
    on top     mean over time

The last stage is as wide as the embedding dimension E, each stage before it half as wide: 64, 128, 256 and 512 for
E = 512. The embedding is the mean of the sequence over time. With 12 leads and E = 512 it has 6,302,080 parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from clocs_core import SettingsError
from clocs_plugins.xresnet1d.channels_last import AvgPool, BatchNorm, Conv, MaxPool, as_picture

STEM = 32
"""Width of the first two convolutions."""


class XResNet1d(nn.Module):
    """Signals (n, channel, sample) to representations (n, embedding_dim), or to a sequence of features."""

    def __init__(
        self,
        channels: int,
        samples: int,
        embedding_dim: int,
        *,
        blocks: Sequence[int] = (2, 2, 2, 2),
        bottleneck: bool = False,
        kernel: int = 5,
    ) -> None:
        super().__init__()
        halvings = 1 + len(blocks)  # the first convolution, the pooling, and every stage but the first
        least = 2**halvings
        if samples < least or embedding_dim < 2 ** (len(blocks) + bottleneck):
            raise SettingsError(
                f"The encoder xresnet1d with {len(blocks)} stages was asked for frames of {samples} samples and "
                f"{embedding_dim} dimensions, but needs at least {least} samples and {2 ** (len(blocks) + bottleneck)} "
                "dimensions. Use longer frames, more dimensions, or fewer stages."
            )
        self.stride, self.width = least, embedding_dim
        widths = [embedding_dim >> place for place in range(len(blocks))][::-1]
        first = min(STEM, widths[0])
        self.stem = nn.Sequential(
            *_conv(channels, first, kernel, stride=2),
            *_conv(first, first, kernel),
            *_conv(first, widths[0], kernel),
            MaxPool(),
        )
        stages = []
        for place, (before, after, count) in enumerate(zip([widths[0], *widths], widths, blocks, strict=False)):
            strides = [1 if place == 0 else 2, *[1] * (count - 1)]
            sides = [before, *[after] * (count - 1)]
            stages += [Block(side, after, kernel, step, bottleneck) for side, step in zip(sides, strides, strict=True)]
        self.blocks = nn.Sequential(*stages)
        self.apply(_draw_weights)

    def forward(self, signal: Tensor) -> Tensor:
        """Encode signals: the mean of the sequence over time."""
        return self.of_sequence(self.sequence(signal))

    def of_sequence(self, sequence: Tensor) -> Tensor:
        """Return the mean over time."""
        return sequence.mean(1)  # (n, embedding_dim)

    def sequence(self, signal: Tensor) -> Tensor:
        """Return the features before the mean over time, of signals of any length."""
        if signal.is_cuda and not torch.onnx.is_in_onnx_export():
            return self.of_pictures(as_picture(signal))
        features: Tensor = self.blocks(self.stem(signal))  # (n, width, time)
        return features.transpose(1, 2)  # (n, time, width)

    def of_pictures(self, signal: Tensor) -> Tensor:
        """Return the same sequence, of signals (n, channel, 1, sample)."""
        features: Tensor = self.blocks(self.stem(signal))  # (n, width, 1, time)
        return features[:, :, 0].transpose(1, 2)  # (n, time, width)


class Block(nn.Module):
    """A residual block, (n, before, sample) to (n, after, sample / stride), rounded up."""

    def __init__(self, before: int, after: int, kernel: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        middle = after // 4 if bottleneck and after >= 4 else after
        if bottleneck:
            convs = [*_conv(before, middle, 1), *_conv(middle, middle, kernel, stride), *_conv(middle, after, 1)]
        else:
            convs = [*_conv(before, after, kernel, stride), *_conv(after, after, kernel)]
        self.convs = nn.Sequential(*convs[:-1])  # the last ReLU comes after the sum
        self.relu = nn.ReLU()
        pool = AvgPool() if stride == 2 else nn.Identity()
        changes = stride == 2 or before != after
        self.shortcut = nn.Sequential(pool, *_conv(before, after, 1)[:2]) if changes else nn.Identity()

    def forward(self, features: Tensor) -> Tensor:
        """Apply the block to features."""
        made: Tensor = self.relu(self.convs(features) + self.shortcut(features))
        return made


def _conv(before: int, after: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    """Return a convolution with its norm and ReLU. A bias would be cancelled by the norm."""
    conv = Conv(before, after, kernel, stride, kernel // 2, bias=False)
    return [conv, BatchNorm(after), nn.ReLU()]


def _draw_weights(module: nn.Module) -> None:
    """Draw convolutions as for ReLUs. The last norm of a block starts at zero: the block passes on its shortcut."""
    if isinstance(module, nn.Conv1d):
        nn.init.kaiming_normal_(module.weight)
    if isinstance(module, Block):
        nn.init.zeros_(module.convs[-1].weight)  # type: ignore[arg-type]  # the weight of a BatchNorm
