"""A one-dimensional residual network (He et al., CVPR 2016), as used for ECGs.

    stem            Conv1d(kernel, stride 2), BatchNorm, ReLU
    each stage      residual blocks; the first of them halves the length and changes the width
    a block         Conv1d, BatchNorm, ReLU, Dropout, Conv1d, BatchNorm; plus its shortcut; ReLU
    on top          mean over time, Linear(last width, E)

Wang, Yan and Oates (IJCNN 2017) introduced the ResNet for time series; Hannun et al. (Nature Medicine 2019) and
Ribeiro et al. (Nature Communications 2020) that for ECGs, with dropout inside the blocks and long kernels; xresnet1d of
Strodthoff et al. (IEEE JBHI 2021) the shortcut that averages before it projects, so that no sample is skipped. This
network equals none of them: it is smaller than each, 837,152 parameters with one lead and E = 128.

The mean over time makes weights independent of the length of a frame, and a beat counts the same wherever it is.
2500 samples become 1250 after the stem and 625, 313, 157, 79 after the stages.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import nn

from clocs_core import SettingsError

if TYPE_CHECKING:
    from torch import Tensor

LEAST = 2
"""Least positions in time: BatchNorm cannot train on one position of a batch of one."""


class ResNet1d(nn.Module):
    """The network: signals (n, channel, sample) to representations (n, embedding_dim), or to a sequence of features.

    Position t of a sequence describes the samples around t * `stride` by `width` features.

    Checkpoints contain the names of its modules: stem.conv, stem.norm, stages.0.0.conv1, …, linear; the second number
    counts the blocks of a stage. Raises SettingsError for frames of fewer than two samples.
    """

    def __init__(
        self,
        channels: int,
        samples: int,
        embedding_dim: int,
        *,
        widths: Sequence[int] = (32, 64, 96, 128),
        blocks: int = 2,
        kernel: int = 7,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        if samples < LEAST:
            raise SettingsError(
                f"The encoder resnet1d was asked to read frames of {samples} samples, but needs at least {LEAST}. "
                "Use longer frames."
            )
        stem, *strides = strides_for(samples, 1 + len(widths))
        self.stride, self.width = math.prod((stem, *strides)), widths[-1]
        sides = zip((widths[0], *widths[:-1]), widths, strides, strict=True)  # width before, width after, stride
        self.stem = _stem(channels, widths[0], kernel, stem)
        self.stages = nn.Sequential(*(_stage(*side, blocks=blocks, kernel=kernel, dropout=dropout) for side in sides))
        self.linear = nn.Linear(widths[-1], embedding_dim)
        self.apply(_draw_weights)

    def forward(self, signal: Tensor) -> Tensor:
        """Encode signals. In training, BatchNorm makes a representation depend on all signals; else only on its own."""
        features = self.stages(self.stem(signal)).mean(-1)  # (n, last width)
        representation: Tensor = self.linear(features)  # (n, embedding_dim)
        return representation

    def sequence(self, signal: Tensor) -> Tensor:
        """Return the features before the mean over time, of signals of any length."""
        features: Tensor = self.stages(self.stem(signal))  # (n, width, time)
        return features.transpose(1, 2)  # (n, time, width)


class Block(nn.Module):
    """A residual block, (n, before, sample) to (n, after, sample / stride), rounded up.

    The weight of its last norm starts at zero (Goyal et al., 2017), so that an untrained block passes on only its
    shortcut: it is the identity on features that come from a ReLU, unless it `projects`.
    """

    def __init__(
        self, before: int, after: int, *, kernel: int, stride: int = 1, dropout: float = 0.0, projects: bool = False
    ) -> None:
        super().__init__()
        self.conv1 = _conv(before, after, kernel, stride)
        self.norm1 = nn.BatchNorm1d(after)
        self.relu = nn.ReLU()
        self.dropout = nn.Dropout(dropout)
        self.conv2 = _conv(after, after, kernel)
        self.norm2 = nn.BatchNorm1d(after)
        self.shortcut = _projection(before, after, stride) if projects else nn.Identity()
        nn.init.zeros_(self.norm2.weight)

    def forward(self, features: Tensor) -> Tensor:
        """Apply the block to features."""
        residual = self.dropout(self.relu(self.norm1(self.conv1(features))))  # (n, after, sample / stride)
        made: Tensor = self.relu(self.norm2(self.conv2(residual)) + self.shortcut(features))
        return made


def strides_for(samples: int, halvings: int) -> list[int]:
    """Return the strides of the stem and the stages: 2, or 1 once a frame is too short to be halved again."""
    strides = []
    for _ in range(halvings):
        strides.append(2 if samples > LEAST else 1)
        samples = -(-samples // strides[-1])  # rounded up, as in padded convolutions
    return strides


def _stem(channels: int, width: int, kernel: int, stride: int) -> nn.Sequential:
    conv, norm = _conv(channels, width, kernel, stride), nn.BatchNorm1d(width)
    return nn.Sequential(OrderedDict(conv=conv, norm=norm, relu=nn.ReLU()))


def _stage(before: int, after: int, stride: int, *, blocks: int, kernel: int, dropout: float) -> nn.Sequential:
    # The first block projects with any stride, so that names of weights do not depend on the length of a frame.
    first = Block(before, after, kernel=kernel, stride=stride, dropout=dropout, projects=True)
    return nn.Sequential(first, *(Block(after, after, kernel=kernel, dropout=dropout) for _ in range(blocks - 1)))


def _projection(before: int, after: int, stride: int) -> nn.Sequential:
    pool = nn.AvgPool1d(stride, ceil_mode=True)
    return nn.Sequential(OrderedDict(pool=pool, conv=_conv(before, after, 1), norm=nn.BatchNorm1d(after)))


def _conv(before: int, after: int, kernel: int, stride: int = 1) -> nn.Conv1d:
    # A BatchNorm follows each convolution and would cancel a bias.
    return nn.Conv1d(before, after, kernel, stride, padding=kernel // 2, bias=False)


def _draw_weights(module: nn.Module) -> None:
    if isinstance(module, nn.Conv1d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
