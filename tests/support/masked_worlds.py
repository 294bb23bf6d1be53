"""Small encoders, objectives and views for the tests of masked prediction."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from clocs_core import Batch, Objective, Setup, SignalFacts, Task, Views
from clocs_plugins import jepa, mae
from clocs_plugins.resnet1d.network import ResNet1d
from clocs_plugins.vit1d.network import Vit1d

_OFFERS: dict[str, Objective] = {offer.name: offer for plugin in (jepa, mae) for offer in plugin.clocs_objectives()}


def transformer(samples: int = 60) -> nn.Module:
    """Build an encoder with positions of 5 samples."""
    torch.manual_seed(1)
    return Vit1d(2, samples, 8, patch=5, layers=1, heads=2).double()


def residual(samples: int = 60) -> nn.Module:
    """Build an encoder with positions of 4 samples, and one more for a rest of samples."""
    torch.manual_seed(1)
    return ResNet1d(2, samples, 8, widths=(8,), blocks=1, kernel=3, dropout=0.0).double()


def build(name: str, reader: nn.Module, samples: int = 60, steps: int = 10, **options: Any) -> nn.Module:
    """Build an objective for two leads, in float64."""
    offer = _OFFERS[name]
    signals = SignalFacts(samples=samples, channels=("I", "II"), channel_axis=-2)
    setup = Setup(encoder=reader, embedding_dim=8, task=Task("t", classes=("a", "b")), signals=signals, steps=steps)
    torch.manual_seed(0)
    made = offer.build(offer.options(**{"masked": 0.5, "stretch": 2, **options}), setup)
    return made.double().train()


def views_of(batch: int = 4, samples: int = 60, views: int = 1) -> Views:
    """Return noise of two leads as views."""
    ids = torch.arange(batch)
    signal = torch.randn(views, batch, 2, samples, generator=draws()).double()
    return Views(signal, Batch(signal.transpose(0, 1), ids, ids, ids, ids))


def draws(seed: int = 0) -> torch.Generator:
    """Return a generator."""
    return torch.Generator().manual_seed(seed)
