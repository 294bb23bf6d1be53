"""The modules of `flawed_offers`, in a separate file because they import torch."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Callable

import fake_clock
import numpy as np
import torch
from flawed_offers import SLOW
from torch import Tensor, nn
from torch.nn import functional as F

from clocs_core import Ranks, Views


class FakeEncoder(nn.Module):
    """A pooled convolution and a linear layer, with one flaw or none."""

    shift: Tensor | float  # outside the state of the module: the flaw

    def __init__(self, channels: int, samples: int, dim: int, flaw: str) -> None:
        super().__init__()
        self.flaw = flaw
        if samples < 40 and flaw != "short":
            raise ValueError("" if flaw == "silent" else f"40 samples are needed, got {samples}")
        self.convolution = nn.Conv1d(1 if flaw == "one-channel" else channels, 4, 8, stride=4)
        self.linear = nn.Linear(4 * 5, 16 if flaw == "dim" else dim)
        self.stride, self.width = (8 if flaw == "other-stride" else 4), (4.0 if flaw == "width" else 4)
        self.causal = flaw == "sequence-ahead"  # its convolution sees two samples that follow
        if flaw == "sequence-other":
            self.of_sequence = lambda sequence: sequence.new_zeros(len(sequence), dim)
        if flaw == "unused":
            self.spare = nn.Linear(3, 3)
        if flaw == "hidden-state":
            self.shift = torch.randn(1)
        if flaw == "hidden-number":
            self.shift = float(torch.randn(1))
        if flaw == "own-seed":
            with torch.random.fork_rng(devices=[]):
                torch.seed()
                nn.init.normal_(self.linear.bias)

    def forward(self, signal: Tensor) -> Tensor:
        flaw = self.flaw
        if flaw == "in-place":
            signal.mul_(0.5)
        if flaw == "divides" or (flaw == "divides-in-evaluation" and not self.training):
            signal = signal / signal.std(-1, keepdim=True)
        if flaw == "batch-norm":
            signal = signal - signal.mean(0, keepdim=True)
        if flaw == "dropout":
            signal = F.dropout(signal, 0.5)
        if flaw == "device":
            signal = signal + torch.zeros(1)
        if flaw == "device-by-name":
            signal = signal + torch.zeros(1, device="cpu")
        if flaw == "slow":
            fake_clock.advance(SLOW)
        if flaw == "item":
            signal = signal + 0 * signal.sum().item()
        features = F.adaptive_avg_pool1d(self.convolution(signal).tanh(), 5).flatten(1)
        z: Tensor = self.linear(features)  # (n, dim)
        if flaw == "jitter":  # less than rounding, but not nothing
            source = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "little"))
            return z + 5e-7 * torch.rand(z.shape, generator=source, device=z.device)
        if flaw == "edge":  # adds nothing, with the gradient of a root at zero
            return z + (z - z.detach()).square().sum().sqrt()
        if flaw == "double":
            return z.double()
        if flaw == "detached":
            return z.detach()
        return z + self.shift if flaw in ("hidden-state", "hidden-number") else z

    def sequence(self, signal: Tensor) -> Tensor:
        """The features of the convolution, with a flaw that begins with `sequence-`, or none."""
        flaw = self.flaw.removeprefix("sequence-") if self.flaw.startswith("sequence-") else ""
        if flaw == "cut":
            signal = signal[..., :1000]
        if flaw == "batch":
            signal = signal - signal.mean(0, keepdim=True)
        if flaw == "dropout":
            signal = F.dropout(signal, 0.5)
        if flaw == "device":
            signal = signal + torch.zeros(1)
        if flaw == "item":
            signal = signal + 0 * signal.sum().item()
        signal = F.pad(signal, (2, 2 + -signal.shape[-1] % 4))  # a position begins every 4 samples
        features: Tensor = self.convolution(signal).tanh().transpose(1, 2)  # (n, time, width)
        if flaw == "mean":
            return features.mean(1)
        if flaw == "double":
            return features.double()
        if flaw == "detached":
            return features.detach()
        return features.flip(1) if flaw == "backwards" else features


class FakeObjective(nn.Module):
    """Predicts the embedding that a moving average of the encoder gives the other view, with one flaw or none."""

    count: Tensor
    queue: Tensor
    shift: Tensor | float  # outside the state of the module: the flaw

    def __init__(self, encoder: nn.Module, dim: int, flaw: str) -> None:
        super().__init__()
        self.flaw = flaw
        self.target = encoder if flaw == "shares" else copy.deepcopy(encoder)
        if flaw not in ("shares", "target-wants-gradient"):
            self.target.requires_grad_(False)
        self.head = nn.Linear(dim, dim)
        if flaw == "own-seed":
            with torch.random.fork_rng(devices=[]):
                torch.seed()
                nn.init.normal_(self.head.bias)
        self.steps = 0
        if flaw == "hidden-state":
            self.shift = torch.randn(dim)
        if flaw == "hidden-number":
            self.shift = float(torch.randn(1))
        self.register_buffer("count", torch.zeros(()))
        if flaw == "hidden-pointer":
            self.register_buffer("queue", torch.zeros(4))

    def forward(self, encode: Callable[[Tensor], Tensor], views: Views) -> Tensor:
        flaw = self.flaw
        z = encode(views.signal * 1 if flaw == "encodes-other" else views.signal)  # (view, batch, dim)
        if flaw in ("of-embeddings", "encodes-other", "reads-samples"):
            size = views.signal.mean() if flaw == "reads-samples" else 0.0
            return F.mse_loss(self.head(z), z.detach().flip(0)) + size
        with torch.no_grad():
            target: Tensor = self.target(views.signal.flatten(0, 1)).view_as(z).flip(0)
        if flaw in ("hidden-state", "hidden-number"):
            target = target + self.shift
        if flaw == "detached":
            z = z.detach()
        loss = F.mse_loss(self.head(z), target)
        if flaw == "in-place":
            views.signal.mul_(2)
        if flaw == "numpy-randomness":
            return loss + 0 * np.random.rand()  # noqa: NPY002  the flaw
        if flaw == "python-randomness":
            return loss + 0 * random.random()
        if flaw == "draws-in-evaluation" and not self.training:
            return loss + 0 * torch.rand((), device=loss.device)
        if flaw == "device":
            return loss + torch.zeros(1).sum()
        if flaw == "device-by-name":
            return loss + (target * torch.zeros(target.shape[-1], device="cpu")).sum()
        if flaw == "slow":
            fake_clock.advance(SLOW)
        if flaw == "vector":
            return loss[None]
        if flaw == "infinite":
            return loss + float("inf")
        if flaw == "item":
            return loss + 0 * float(loss.detach())
        if flaw.startswith("component"):
            part = {"component-vector": loss.detach()[None], "component-number": 1.0}.get(flaw, loss.detach())
            return loss, {"error": part} if flaw != "components-list" else [part]  # type: ignore[return-value]
        return loss

    def after_step(self, encoder: nn.Module) -> None:
        flaw = self.flaw
        if flaw == "shares":
            return
        for mine, theirs in zip(self.target.parameters(), encoder.parameters(), strict=True):
            mine.lerp_(theirs, 0.1 / (1 + self.steps) if flaw == "hidden-schedule" else 0.1)
            if flaw == "changes-encoder":
                theirs.mul_(0.5)
            if flaw == "divides-by-zero":
                mine.div_(0.0)
        self.steps += 1
        self.count.add_(1)
        if flaw == "hidden-pointer":
            self.queue[self.steps % 4] = next(encoder.parameters()).mean()
        if flaw == "new-tensor":
            self.count = self.count + 1
        if flaw == "item-after-step":
            self.count.fill_(self.count.item())


class RankedObjective(FakeObjective):
    """The same over several processes; with the flaw, all processes weigh alike, however many instances they have."""

    def forward(self, encode: Callable[[Tensor], Tensor], views: Views, ranks: Ranks | None = None) -> Tensor:
        loss = super().forward(encode, views)
        if ranks is None:
            return loss
        return loss.nan_to_num() / len(ranks.sizes) if self.flaw == "ranks-alike" else ranks.share_of_mean(loss)
