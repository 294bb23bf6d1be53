"""Hide stretches of a recording, and predict their samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from clocs_core import Method, Objective, Setup, hookimpl, option

if TYPE_CHECKING:
    from torch import nn


@attrs.frozen
class MaeOptions:
    """Options of the objective.

    Positions are drawn one by one, so that most gaps are short: the samples beside a gap predict some of it. With
    stretches of five positions, which are 1 s for `vit1d` at 100 Hz, the loss stayed near the variance of the signals,
    and a run was below its untrained encoder on four of six tasks (docs/results-ptbxl.md).
    """

    masked: float = option(
        0.6,
        "Share of the positions that is hidden, at most.",
        check=(lambda share: 0 < share < 1, "be above 0 and below 1"),
    )
    stretch: int = option(1, "Positions in a row that are hidden.", check=(lambda n: n > 0, "be positive"))


@hookimpl
def clocs_objectives() -> list[Objective]:
    """Offer the objective."""
    summary = "Reconstruct the samples of hidden stretches."
    return [Objective(name="mae", summary=summary, options=MaeOptions, build=build_mae, sequence=True)]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the method on whole frames of all leads."""
    train: dict[str, object] = {
        "optimiser": "adamw",
        "learning_rate": 1e-3,
        "warm_up": 0.02,
        "schedule": "cosine",
        "clip": 1.0,
        "keep": "last",
        "epochs": 400,
    }
    summary = "Masked reconstruction: hidden stretches of a recording are predicted as samples."
    presets: dict[str, dict[str, object]] = {"views": {"leads": "all"}, "train": train}
    return [Method(name="mae", summary=summary, views="frames", encoder="vit1d", objective="mae", presets=presets)]


def build_mae(options: MaeOptions, setup: Setup) -> nn.Module:
    """Build the objective with a decoder of one layer."""
    from clocs_core import MaskedSignals
    from clocs_plugins.mae.reconstruction import Mae

    channels = len(setup.signals.channels) if setup.signals.channel_axis is not None else 1
    return Mae(setup.encoder, MaskedSignals.fitting(options.masked, options.stretch, setup), channels)
