"""The objective: a teacher that reads all of a frame, and a predictor for positions that the encoder does not see."""

from __future__ import annotations

import copy
from typing import Self

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from clocs_core import Encode, Views


class Recall(nn.Module):
    """Hidden samples are zeros for the encoder. The loss is the distance of a prediction to the teacher's features."""

    def __init__(self, encoder: nn.Module, samples: int, hidden: float, momentum: float) -> None:
        super().__init__()
        width, self.stride = int(encoder.width), int(encoder.stride)  # type: ignore[arg-type]  # integers by contract
        if samples < 2 * self.stride:
            raise ValueError(f"a frame of {samples} samples has no two positions of {self.stride} samples to hide from")
        self.hidden, self.momentum = hidden, momentum
        self.teacher = copy.deepcopy(encoder).requires_grad_(False)
        self.predictor = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))

    def train(self, mode: bool = True) -> Self:
        """Keep the teacher in eval mode: it drops no features."""
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(self, encode: Encode, views: Views, generator: Generator | None = None) -> Tensor:
        """Compute the loss of a batch. Every draw comes from the generator, so that a resumed run is the same."""
        signal = views.signal
        time = -(-signal.shape[-1] // self.stride)
        drawn = torch.rand(*signal.shape[:2], time, generator=generator, device=signal.device)
        hidden = drawn < self.hidden  # (view, batch, time)
        samples = hidden.repeat_interleave(self.stride, -1, output_size=time * self.stride)[..., : signal.shape[-1]]
        seen = encode.sequence(signal.masked_fill(samples[:, :, None], 0.0))  # (view, batch, time, width)
        with torch.no_grad():
            whole = self.teacher.sequence(signal.flatten(0, 1))  # type: ignore[operator]  # a method by contract
            target = F.layer_norm(whole, whole.shape[-1:]).unflatten(0, signal.shape[:2])
        distance = (self.predictor(seen) - target).square().mean(-1)  # (view, batch, time)
        loss: Tensor = (distance * hidden).sum() / hidden.sum().clamp(min=1)
        return loss

    def after_step(self, encoder: nn.Module) -> None:
        """Move the teacher towards the encoder."""
        for own, other in zip(self.teacher.parameters(), encoder.parameters(), strict=True):
            own.lerp_(other, 1 - self.momentum)
        for held, statistic in zip(self.teacher.buffers(), encoder.buffers(), strict=True):
            held.copy_(statistic)
