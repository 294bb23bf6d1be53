"""The stem: convolutions that halve the samples until the stride is reached, (n, channel, sample) to (n, time, width).

On GPUs a convolution is a product. Two samples together are one row. A kernel at position t sees the samples 2t - 2 to
2t + 1: the rows t - 1 and t. The layers read features in this order, so that cuDNN does not have to transpose them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

TAPS, STEP = 4, 2  # samples of a kernel, and from one to the next


class Stem(nn.Sequential):
    """Conv1d(4, stride 2) until the stride is reached, or Conv1d(1); BatchNorm after each, ReLU between."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        # The first convolution halves too: one at every sample would be the largest part of the network's memory.
        into = [channels, *[width] * (int(math.log2(stride)) - 1)]  # channels that each convolution reads
        # Padded at the front only: a position never sees a sample that comes after its own.
        convs = [nn.Sequential(nn.ConstantPad1d((STEP, 0), 0.0), nn.Conv1d(n, width, TAPS, STEP)) for n in into]
        convs = convs if stride > 1 else [nn.Sequential(nn.Conv1d(channels, width, 1))]
        norms = [nn.BatchNorm1d(width) for _ in convs]
        steps = [step for conv, norm in zip(convs, norms, strict=True) for step in (conv, norm, nn.ReLU())]
        super().__init__(*steps[:-1])

    def forward(self, signal: Tensor) -> Tensor:
        """Return features of signals whose samples are a multiple of the stride."""
        if signal.is_cuda and not torch.onnx.is_in_onnx_export():
            return self.by_products(signal)
        features: Tensor = super().forward(signal)  # type: ignore[no-untyped-call]  # (n, width, time)
        # Copied, so that the features of a position are adjacent: the layers keep the order, and LayerNorm needs it.
        return features.transpose(1, 2).contiguous()

    def by_products(self, signal: Tensor) -> Tensor:
        """Return the same features, by products of matrices."""
        features = signal.transpose(1, 2)  # (n, sample, channel)
        for conv, norm in self._blocks():
            if conv.kernel_size[0] == TAPS:
                features = _windows(features)  # (n, half as many, 4 * channel)
            features = nn.functional.linear(features, conv.weight.transpose(1, 2).flatten(1), conv.bias)
            features = norm(features.flatten(0, 1)).unflatten(0, features.shape[:2])  # (n, time, width)
            if norm is not self[-1]:
                features = features.relu()
        return features

    def _blocks(self) -> Iterator[tuple[nn.Conv1d, nn.Module]]:
        """Yield each convolution with its norm, which may be one of several processes."""
        for place in range(0, len(self), 3):
            convolution = self[place]
            assert isinstance(convolution, nn.Sequential)
            assert isinstance(convolution[-1], nn.Conv1d)
            yield convolution[-1], self[place + 1]


def _windows(features: Tensor) -> Tensor:
    """Return the four samples that each second one sees, as a row: (n, sample, channel) to (n, half, 4 channel)."""
    pairs = features.unflatten(1, (-1, STEP)).flatten(2)  # (n, half, 2 channel)
    before = nn.functional.pad(pairs, (0, 0, 1, -1))  # zeros before the first
    return torch.cat([before, pairs], dim=2)
