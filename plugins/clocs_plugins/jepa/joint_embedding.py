"""Joint-embedding prediction: Assran et al. (CVPR 2023), for ECGs Weimann and Conrad (2024) and Kim (2024).

The encoder reads a recording with hidden stretches. From its sequence, a predictor guesses the sequence that a teacher
makes of the whole recording, at the hidden positions. The teacher's weights follow the encoder's slowly. Its features
are normalised at each position, so that features of no size cannot make the loss small. Unlike in those papers, hidden
samples are zeros instead of tokens that are left out, as in data2vec (Baevski et al., ICML 2022): any encoder with a
sequence can then be trained, not a transformer alone.
"""

from __future__ import annotations

import copy
from typing import Self

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from clocs_core import Encode, MaskedSignals, Ranks, Views

REACH = 15  # positions that the predictor's convolution covers


class Jepa(nn.Module):
    """The objective: a teacher, a mark for hidden positions, and a predictor."""

    def __init__(
        self,
        encoder: nn.Module,
        masks: MaskedSignals,
        momentum: tuple[float, float],
        width: int,
        steps: int,
        bf16: bool = False,
    ) -> None:
        super().__init__()
        self.masks, self.momentum, self.steps, self.bf16 = masks, momentum, max(1, steps), bf16
        self.teacher = copy.deepcopy(encoder).requires_grad_(False)
        features = int(encoder.width)  # type: ignore[arg-type]  # an integer by contract
        self.mark = nn.Parameter(torch.randn(features) * 0.02)
        self.predictor = nn.Sequential(
            nn.Conv1d(features, width, 1),
            nn.GELU(),
            nn.Conv1d(width, width, REACH, padding=REACH // 2, groups=width),
            nn.Conv1d(width, width, 1),
            nn.GELU(),
            nn.Conv1d(width, features, 1),
        )
        self.register_buffer("step", torch.zeros(()))
        self.step: Tensor

    def train(self, mode: bool = True) -> Self:
        """Set the mode of all but the teacher, which drops no features and keeps the statistics it was given."""
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(
        self, encode: Encode, views: Views, generator: Generator | None = None, ranks: Ranks | None = None
    ) -> Tensor:
        """Compute the loss of one batch: the smooth L1 distance to the teacher's features at hidden positions.

        ranks: the processes that share the batch. The teacher is the same in all of them, as the encoder is.
        """
        signal = views.signal.flatten(0, 1)  # (n, channel, sample)
        partial, hidden = self.masks.draw(signal, generator, ranks, len(views.signal))
        context = encode.sequence(partial.unflatten(0, views.signal.shape[:2])).flatten(0, 1)  # (n, time, width)
        half = torch.autocast(signal.device.type, torch.bfloat16, enabled=self.bf16)  # as the encoder
        with torch.no_grad():
            with half:
                target = self.teacher.sequence(signal)  # type: ignore[operator]  # a method by contract
            target = F.layer_norm(target.to(torch.promote_types(target.dtype, torch.float32)), target.shape[-1:])
        hidden = hidden.to(context.dtype)[..., None]  # (n, time, 1)
        with half:
            guess = self.predictor((context + hidden * self.mark).transpose(1, 2)).transpose(1, 2)
        distance = F.smooth_l1_loss(guess.to(target.dtype), target, reduction="none").mean(-1, keepdim=True)
        return (distance * hidden).sum() / (hidden.sum() if ranks is None else ranks.sum(hidden.sum()))

    def after_step(self, encoder: nn.Module) -> None:
        """Move the teacher a little towards the encoder; its statistics of BatchNorm are the encoder's."""
        first, last = self.momentum
        kept = first + (last - first) * (self.step / self.steps).clamp(max=1.0)
        for own, other in zip(self.teacher.parameters(), encoder.parameters(), strict=True):
            own.lerp_(other, (1 - kept).to(own.dtype))
        for held, statistic in zip(self.teacher.buffers(), encoder.buffers(), strict=True):
            held.copy_(statistic)
        self.step.add_(1)
