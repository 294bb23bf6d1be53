"""Contrastive predictive coding inside a recording (van den Oord, Li and Vinyals, 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from clocs_core import Method, Objective, Setup, hookimpl, option

if TYPE_CHECKING:
    from torch import nn


@attrs.frozen
class CpcOptions:
    """Options of the objective `cpc`."""

    ahead: int = option(
        12, "Positions ahead that are predicted, each by a layer of its own.", check=(lambda k: k > 0, "be positive")
    )


@hookimpl
def clocs_objectives() -> list[Objective]:
    """Offer the objective."""
    summary = "Predict the next positions of a recording, told from its other positions."
    return [Objective(name="cpc", summary=summary, options=CpcOptions, build=build_cpc, sequence=True)]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the method on whole frames of all leads."""
    summary = "Contrastive predictive coding: each position of a recording predicts the next ones."
    train = {
        "optimiser": "adamw",
        "learning_rate": 1e-3,
        "warm_up": 0.02,
        "schedule": "cosine",
        "clip": 1.0,
        "keep": "last",
    }
    presets: dict[str, dict[str, object]] = {"views": {"leads": "all"}, "train": {**train, "epochs": 100}}
    return [Method(name="cpc", summary=summary, views="frames", encoder="s4d", objective="cpc", presets=presets)]


def build_cpc(options: CpcOptions, setup: Setup) -> nn.Module:
    """Build the objective. Raise ValueError for an encoder that sees what it is to predict, or for short frames."""
    from clocs_plugins.cpc.objective import Cpc

    views = len(setup.signals.channels) if setup.signals.channel_axis is not None else 1
    return Cpc(setup.encoder, views, setup.signals.samples, options.ahead, setup.autocast == "bf16")
