"""Contrastive predictive coding (van den Oord, Li and Vinyals, 2018), as Mehari and Strodthoff (2022) use it for ECGs.

A sequence c of contexts comes from the encoder, and a sequence z of targets from a small network that sees only a few
samples. For every k from 1 to K, a linear layer W_k predicts the target k positions ahead. The loss is the
cross-entropy of telling that target from those of all other positions of the same recording:

    - log  exp(z[t+k] . W_k c[t] / sqrt(d))  /  sum over s of exp(z[s] . W_k c[t] / sqrt(d))

averaged over t, k, recordings and views; in float32, also in a run with bf16. Negatives are of the same recording, so
that neither patient nor leads tell them apart. The encoder must be causal: it must not see what it predicts.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from clocs_core import Encode, Ranks, Views
from clocs_plugins.cpc.entropy import position_entropies

ALIGNED = 8
"""Numbers of bfloat16 in 16 bytes."""
WIDTH = 256
"""Largest width of predictions and targets; a narrower encoder has its own."""


class Cpc(nn.Module):
    """The objective: the network of the targets, and a linear layer for each number of positions ahead."""

    def __init__(self, encoder: nn.Module, channels: int, samples: int, ahead: int, bf16: bool = False) -> None:
        super().__init__()
        if not getattr(encoder, "causal", False):
            raise ValueError(
                "`cpc` predicts what follows, so its encoder must not see it: choose one whose sequence is causal, "
                "such as s4d with `direction='past'`"
            )
        self.stride, context = int(encoder.stride), int(encoder.width)  # type: ignore[arg-type]  # integers by contract
        positions = -(-samples // self.stride)
        if positions <= ahead:
            raise ValueError(
                f"`cpc` predicts {ahead} positions ahead, and a frame of {samples} samples has {positions} of "
                f"{self.stride} samples: use longer frames, or a smaller `ahead`"
            )
        self.ahead, self.width, self.bf16 = ahead, min(context, WIDTH), bf16
        self.targets = nn.Sequential(
            nn.Conv1d(channels, self.width, self.stride, self.stride),
            nn.BatchNorm1d(self.width),
            nn.ReLU(),
            nn.Conv1d(self.width, self.width, 1),
            nn.BatchNorm1d(self.width),
        )
        self.predict = nn.Linear(context, ahead * self.width, bias=False)

    def forward(self, encode: Encode, views: Views, ranks: Ranks | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss of one batch, and its parts for the nearest and the farthest position.

        ranks: the processes that share the batch. Negatives are of the same recording, so no process needs another's.
        """
        context = encode.sequence(views.signal).flatten(0, 1)  # (n, time, context)
        signal = views.signal.flatten(0, 1)
        whole = nn.functional.pad(signal, (0, -signal.shape[-1] % self.stride))  # zeros complete the last position
        with torch.autocast(signal.device.type, torch.bfloat16, enabled=self.bf16):
            target = self.targets(whole) / math.sqrt(self.width)  # (n, width, time)
            predicted = self.predict(context).unflatten(-1, (self.ahead, self.width))  # (n, time, ahead, width)
            # One product for all k: with one for each, most of the time goes to copies of their slices. Tensor cores
            # need rows of 16 bytes: three such products take 0.6 ms of an H200 with 256 targets, and 1.6 with 250.
            aligned = nn.functional.pad(target, (0, -target.shape[-1] % ALIGNED)) if target.is_cuda else target
            scores = predicted.flatten(1, 2) @ aligned  # (n, time * ahead, targets)
        losses = self._losses(scores.unflatten(1, (-1, self.ahead)))
        losses = losses if ranks is None else ranks.share_of_mean(losses)  # (ahead,)
        return losses.mean(), {"nearest": losses[0], "farthest": losses[-1]}

    def _losses(self, scores: Tensor) -> Tensor:
        """Return the mean cross-entropy for each k: of the target k positions ahead among all of its recording."""
        count, time, ahead, _ = scores.shape  # (n, time, ahead, targets)
        steps = torch.arange(1, ahead + 1, device=scores.device)
        return position_entropies(scores).sum((0, 1)) / (count * (time - steps))  # (ahead,)
