"""The encoder: a stem of convolutions, state space layers, and the mean over time.

    stem      Conv1d(4, stride 2) until the stride is reached, or Conv1d(1); BatchNorm after each, ReLU between
    a layer   LayerNorm, state space layer, GELU, Dropout, gated Linear; plus its input
    on top    LayerNorm, mean over time

The embedding is the mean of the sequence, so the width of the network is the embedding dimension E, and no weight is
left untrained where an objective trains the sequence alone. With `direction="past"` a position sees no sample after its
own: position t ends with sample (t + 1) * stride - 1. Objectives that predict what follows rely on that.
"""

from __future__ import annotations

import math
from typing import Literal

from torch import Tensor, nn

from clocs_core import SettingsError
from clocs_plugins.s4d.layer import StateSpace


class S4d(nn.Module):
    """Signals (n, channel, sample) to representations (n, embedding_dim), or to a sequence of features.

    causal: no position of a sequence depends on samples after it.
    """

    def __init__(
        self,
        channels: int,
        samples: int,
        embedding_dim: int,
        *,
        layers: int = 4,
        state: int = 16,
        stride: int = 4,
        direction: Literal["past", "both"] = "past",
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        if samples < stride:
            raise SettingsError(
                f"The encoder s4d was asked to read frames of {samples} samples, but needs at least {stride}, its "
                "stride. Use longer frames, or a smaller `stride`."
            )
        self.stride, self.width, self.causal = stride, embedding_dim, direction == "past"
        self.stem = _stem(channels, embedding_dim, stride)
        self.layers = nn.Sequential(
            *(Layer(embedding_dim, state, both=direction == "both", dropout=dropout) for _ in range(layers))
        )
        self.norm = nn.LayerNorm(embedding_dim)

    def forward(self, signal: Tensor) -> Tensor:
        """Encode signals: the mean of the sequence over time."""
        return self.of_sequence(self.sequence(signal))

    def of_sequence(self, sequence: Tensor) -> Tensor:
        """Return the mean over time."""
        return sequence.mean(1)  # (n, embedding_dim)

    def sequence(self, signal: Tensor) -> Tensor:
        """Return the features of every position, of signals of any length. Zeros complete the last position."""
        whole = nn.functional.pad(signal, (0, -signal.shape[-1] % self.stride))
        # Copied: sums of the layers would keep the order of the stem's memory, in which every LayerNorm reads strides.
        features: Tensor = self.stem(whole).transpose(1, 2).contiguous()  # (n, time, width)
        made: Tensor = self.norm(self.layers(features))
        return made


class Layer(nn.Module):
    """A state space layer with its norm, its gate and its shortcut: (n, time, width) to the same shape."""

    def __init__(self, width: int, state: int, *, both: bool, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.space = StateSpace(width, state, both)
        self.after = nn.Sequential(nn.GELU(), nn.Dropout(dropout), nn.Linear(width, 2 * width), nn.GLU())

    def forward(self, features: Tensor) -> Tensor:
        """Apply the layer to features."""
        made: Tensor = features + self.after(self.space(self.norm(features)).to(features.dtype))  # (n, time, width)
        return made


def _stem(channels: int, width: int, stride: int) -> nn.Sequential:
    # The first convolution halves too: one at every sample would be the largest part of the network's memory and time.
    into = [channels, *[width] * (int(math.log2(stride)) - 1)]  # channels that each convolution reads
    # Padded at the front only: a position never sees a sample that comes after its own.
    convs = [nn.Sequential(nn.ConstantPad1d((2, 0), 0.0), nn.Conv1d(n, width, 4, 2)) for n in into]
    convs = convs if stride > 1 else [nn.Sequential(nn.Conv1d(channels, width, 1))]
    norms = [nn.BatchNorm1d(width) for _ in convs]
    steps = [step for conv, norm in zip(convs, norms, strict=True) for step in (conv, norm, nn.ReLU())]
    return nn.Sequential(*steps[:-1])
