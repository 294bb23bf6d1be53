"""Masked reconstruction: He et al. (CVPR 2022), for ECGs Zhang et al. (2023) and Na et al. (ICLR 2024).

The encoder reads a recording with hidden stretches. A linear layer turns each position of its sequence into the samples
of that position. The loss is the mean squared error of the hidden samples.
"""

from __future__ import annotations

from torch import Generator, Tensor, nn

from clocs_core import Encode, MaskedSignals, Ranks, Views


class Mae(nn.Module):
    """The objective: a linear decoder from features to samples."""

    def __init__(self, encoder: nn.Module, masks: MaskedSignals, channels: int) -> None:
        super().__init__()
        self.masks, self.channels = masks, channels
        self.decoder = nn.Linear(int(encoder.width), channels * masks.stride)  # type: ignore[arg-type]

    def forward(
        self, encode: Encode, views: Views, generator: Generator | None = None, ranks: Ranks | None = None
    ) -> Tensor:
        """Compute the loss of one batch. ranks: the processes that share it."""
        signal = views.signal.flatten(0, 1)  # (n, channel, sample)
        partial, hidden = self.masks.draw(signal, generator, ranks, len(views.signal))
        context = encode.sequence(partial.unflatten(0, views.signal.shape[:2])).flatten(0, 1)  # (n, time, width)
        made = self.decoder(context).unflatten(-1, (self.channels, -1))  # (n, time, channel, stride)
        whole = nn.functional.pad(signal, (0, -signal.shape[-1] % self.masks.stride))  # the last position, completed
        whole = whole.unflatten(-1, (-1, self.masks.stride)).transpose(1, 2)  # (n, time, channel, stride)
        error: Tensor = (made.to(whole.dtype) - whole).square().mean((2, 3))  # (n, time)
        return (error * hidden).sum() / (hidden.sum() if ranks is None else ranks.sum(hidden.sum()))
