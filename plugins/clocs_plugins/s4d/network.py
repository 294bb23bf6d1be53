"""The encoder: a stem of convolutions, state space layers, and the mean over time.

    stem      Conv1d(4, stride 2) until the stride is reached, or Conv1d(1); BatchNorm after each, ReLU between
    a layer   LayerNorm, state space layer, GELU, Dropout, gated Linear; plus its input
    on top    LayerNorm, mean over time

The embedding is the mean of the sequence, so the width of the network is the embedding dimension E, and no weight is
left untrained where an objective trains the sequence alone. With `direction="past"` a position sees no sample after its
own: position t ends with sample (t + 1) * stride - 1. Objectives that predict what follows rely on that.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from clocs_core import SettingsError
from clocs_plugins.s4d.layer import StateSpace
from clocs_plugins.s4d.stem import Stem


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
        self.stem = Stem(channels, embedding_dim, stride)
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
        made: Tensor = self.norm(self.layers(self.stem(whole)))  # (n, time, width)
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
        made: Tensor = features + self.after(self.space(self._normalise(features)).to(features.dtype))
        return made  # (n, time, width)

    def _normalise(self, features: Tensor) -> Tensor:
        """Normalise each position; in the precision of the features, where what follows rounds to it anyway.

        Under autocast, torch's LayerNorm writes float32. Writing and reading that takes a tenth of a step.
        """
        norm = self.norm
        if not self.space.by_matrices(features):
            found: Tensor = norm(features)
            return found
        with torch.autocast(features.device.type, enabled=False):
            scale, shift = norm.weight.to(features.dtype), norm.bias.to(features.dtype)
            return nn.functional.layer_norm(features, norm.normalized_shape, scale, shift, norm.eps)
