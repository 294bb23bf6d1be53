"""The encoder: patches of time become tokens, transformer layers, and the mean over time.

    tokens    one Linear of each patch, of all leads together or of each lead by itself; plus its place in time
    a layer   LayerNorm, attention, plus its input; LayerNorm, Linear to four times the width, GELU, Linear, plus input
    on top    LayerNorm, mean over leads (where they are tokens) and over time

The embedding is the mean of the sequence, so the width of the network is the embedding dimension E. Places in time are
sines and cosines, so that a signal may have any length. Zeros complete its last patch.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from clocs_core import SettingsError


class Vit1d(nn.Module):
    """Signals (n, channel, sample) to representations (n, embedding_dim), or to a sequence of features."""

    def __init__(
        self,
        channels: int,
        samples: int,
        embedding_dim: int,
        *,
        patch: int = 20,
        layers: int = 8,
        heads: int = 8,
        leads: Literal["joined", "tokens"] = "joined",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if samples < patch:
            raise SettingsError(
                f"The encoder vit1d was asked to read frames of {samples} samples, but a patch has {patch}. Use longer "
                "frames, or a smaller `patch`."
            )
        if embedding_dim % heads or embedding_dim % 2:
            raise SettingsError(
                f"The encoder vit1d was asked for {embedding_dim} dimensions and {heads} heads: the dimension must be "
                "even and a multiple of the heads. Change `embedding_dim` or `heads`."
            )
        self.stride, self.width, self.joined = patch, embedding_dim, leads == "joined"
        self.embed = nn.Linear(patch * (channels if self.joined else 1), embedding_dim)
        self.lead = nn.Parameter(torch.randn(1 if self.joined else channels, 1, embedding_dim) * 0.02)
        self.layers = nn.Sequential(*(Layer(embedding_dim, heads, dropout) for _ in range(layers)))
        self.norm = nn.LayerNorm(embedding_dim)

    def forward(self, signal: Tensor) -> Tensor:
        """Encode signals: the mean of the sequence over time."""
        return self.of_sequence(self.sequence(signal))

    def of_sequence(self, sequence: Tensor) -> Tensor:
        """Return the mean over time."""
        return sequence.mean(1)  # (n, embedding_dim)

    def sequence(self, signal: Tensor) -> Tensor:
        """Return the features of every patch, of signals of any length."""
        whole = nn.functional.pad(signal, (0, -signal.shape[-1] % self.stride))
        patches = whole.unflatten(-1, (-1, self.stride))  # (n, channel, time, patch)
        if self.joined:
            patches = patches.transpose(1, 2).flatten(2)[:, None]  # (n, 1, time, channel * patch)
        tokens = (
            self.embed(patches) + self.lead + places(patches.shape[-2], self.width, signal)
        )  # (n, lead, time, width)
        made: Tensor = self.norm(self.layers(tokens.flatten(1, 2))).unflatten(1, tokens.shape[1:3])
        return made.mean(1)  # (n, time, width)


class Layer(nn.Module):
    """A transformer layer that normalises first: (n, token, width) to the same shape."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.to_qkv, self.after = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.perceptron = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(dropout), nn.Linear(4 * width, width)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Let tokens attend to each other, then transform each."""
        split = self.to_qkv(self.norm1(tokens)).unflatten(-1, (3, self.heads, -1))  # (n, token, 3, head, width / head)
        query, key, value = split.permute(2, 0, 3, 1, 4)  # each (n, head, token, width / head)
        drop = self.dropout if self.training else 0.0
        seen = nn.functional.scaled_dot_product_attention(query, key, value, dropout_p=drop)
        tokens = tokens + self.after(seen.transpose(1, 2).flatten(2))
        made: Tensor = tokens + self.perceptron(self.norm2(tokens))
        return made


def places(time: int, width: int, like: Tensor) -> Tensor:
    """Return sines and cosines (time, width) of every position, with periods from 6 to 60,000 positions."""
    at = torch.arange(time, device=like.device, dtype=like.dtype)[:, None]
    turn = torch.arange(width // 2, device=like.device, dtype=like.dtype) * (-2 * math.log(10_000) / width)
    angle = at * turn.exp()
    return torch.cat([angle.sin(), angle.cos()], -1)
