"""Layers that also take features as pictures of one row, (n, channel, 1, sample), with channels last in memory.

On GPUs cuDNN convolves with channels last. It transposes features (n, channel, sample) before each convolution, and
back after it. With channels last, a supervised step of 256 recordings took 4.1 ms on an H200 (docs/speed.md), before it
6.9.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def as_picture(signal: Tensor) -> Tensor:
    """Return signals (n, channel, sample) as pictures, with channels last in memory."""
    count, channels, samples = signal.shape
    place: dict[str, Any] = {"dtype": signal.dtype, "device": signal.device}
    # Not `contiguous`: one channel is in that order already, and torch would take it for the other one.
    made = torch.empty(count, channels, 1, samples, memory_format=torch.channels_last, **place)
    return made.copy_(signal[:, :, None])


class Conv(nn.Conv1d):
    """A convolution over time."""

    def forward(self, features: Tensor) -> Tensor:
        """Convolve features, (n, channel, sample) or pictures."""
        if features.ndim == 3:
            return super().forward(features)
        stride, padding = (1, self.stride[0]), (0, int(self.padding[0]))
        return functional.conv2d(features, self.weight[:, :, None], self.bias, stride, padding)


class BatchNorm(nn.BatchNorm1d):
    """A BatchNorm over all samples."""

    def _check_input_dim(self, features: Tensor) -> None:
        if features.ndim not in (3, 4):
            raise ValueError(f"expected 3 or 4 dimensions, got {features.ndim}")


class MaxPool(nn.MaxPool1d):
    """The largest of three samples, for every second one."""

    def __init__(self) -> None:
        super().__init__(3, 2, 1)

    def forward(self, features: Tensor) -> Tensor:
        """Pool features, (n, channel, sample) or pictures."""
        wide = features.ndim == 4
        pooled: Tensor = functional.max_pool2d(features, (1, 3), (1, 2), (0, 1)) if wide else super().forward(features)
        return pooled


class AvgPool(nn.AvgPool1d):
    """The mean of two samples; if their number is odd, the last one is kept as it is."""

    def __init__(self) -> None:
        super().__init__(2, ceil_mode=True)

    def forward(self, features: Tensor) -> Tensor:
        """Pool features, (n, channel, sample) or pictures."""
        if features.ndim == 3:
            return super().forward(features)
        return functional.avg_pool2d(features, (1, 2), ceil_mode=True)
