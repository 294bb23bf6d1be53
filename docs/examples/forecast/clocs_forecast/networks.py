"""The encoder and the objective of contrastive predictive coding."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clocs_core import Encode, SignalFacts, Views


class Causal(nn.Module):
    """Two convolutions. Position t sees the samples before (t + 1) * stride and no later one."""

    causal = True

    def __init__(self, channels: int, samples: int, width: int, stride: int, embedding_dim: int) -> None:
        super().__init__()
        if samples < stride:
            raise ValueError(f"frames of {samples} samples have no position of {stride} samples")
        self.stride, self.width = stride, width
        self.pieces = nn.Conv1d(channels, width, stride, stride)
        self.past = nn.Conv1d(width, width, 5)
        self.linear = nn.Linear(2 * width, embedding_dim)

    def sequence(self, signal: Tensor) -> Tensor:
        """Return features (n, time, width) of signals (n, channel, sample) of any length."""
        pieces = self.pieces(F.pad(signal, (0, -signal.shape[-1] % self.stride))).relu()  # (n, width, time)
        found: Tensor = pieces + self.past(F.pad(pieces, (4, 0))).relu()
        return found.transpose(1, 2)  # (n, time, width)

    def forward(self, signal: Tensor) -> Tensor:
        """Embed signals (n, channel, sample) by the mean and the maximum of their sequence."""
        found = self.sequence(signal)
        z: Tensor = self.linear(torch.cat([found.mean(1), found.amax(1)], dim=1))  # (n, embedding_dim)
        return z


class Forecast(nn.Module):
    """For every step ahead, a linear layer predicts the target there; other positions are the negatives."""

    def __init__(self, encoder: nn.Module, signals: SignalFacts, ahead: int) -> None:
        super().__init__()
        if not getattr(encoder, "causal", False):
            raise ValueError("`forecast` needs an encoder that does not see what it predicts, such as `causal`")
        stride, width = int(encoder.stride), int(encoder.width)  # type: ignore[arg-type]  # integers by contract
        if -(-signals.samples // stride) <= ahead:
            raise ValueError(f"a frame of {signals.samples} samples has no position {ahead} positions ahead")
        channels = len(signals.channels) if signals.channel_axis is not None else 1
        self.stride, self.ahead = stride, ahead
        self.target = nn.Conv1d(channels, width, stride, stride)
        self.predict = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(ahead))

    def forward(self, encode: Encode, views: Views) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of a batch, and its part for the farthest position, which is logged."""
        context = encode.sequence(views.signal).flatten(0, 1)  # (n, time, width)
        signal = views.signal.flatten(0, 1)
        target = self.target(F.pad(signal, (0, -signal.shape[-1] % self.stride)))  # (n, width, time)
        losses = []
        for k, layer in enumerate(self.predict, start=1):
            scores = layer(context[:, :-k]) @ target / target.shape[1] ** 0.5  # (n, time - k, time)
            right = torch.arange(k, target.shape[2], device=scores.device).expand(len(scores), -1)
            losses.append(F.cross_entropy(scores.flatten(0, 1), right.flatten()))
        return torch.stack(losses).mean(), {"farthest": losses[-1]}
