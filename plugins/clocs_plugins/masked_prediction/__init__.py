"""Hide stretches of a recording and predict them: as features of a teacher (jepa), or as samples (mae)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from clocs_core import Method, Objective, Setup, hookimpl, option

if TYPE_CHECKING:
    from torch import nn

_share = (lambda share: 0 < share < 1, "be above 0 and below 1")
_positive = (lambda n: n > 0, "be positive")


@attrs.frozen
class MaskOptions:
    """The stretches that are hidden. Options of the objective `mae`.

    Positions are drawn one by one, so that most gaps are short: the samples beside a gap predict some of it. With
    stretches of five positions, which are 1 s for `vit1d` at 100 Hz, the loss stayed near the variance of the signals,
    and a run was below its untrained encoder on four of six tasks (docs/results-ptbxl.md).
    """

    masked: float = option(0.6, "Share of the positions that is hidden, at most.", check=_share)
    stretch: int = option(1, "Positions in a row that are hidden.", check=_positive)


@attrs.frozen
class JepaOptions(MaskOptions):
    """Options of the objective `jepa`."""

    stretch: int = option(5, "Positions in a row that are hidden.", check=_positive)
    momentum: tuple[float, float] = option(
        (0.998, 0.9998),
        "Share of the teacher's weights that a step keeps: at the first step and at the last.",
        check=(lambda ends: all(0 <= one <= 1 for one in ends), "be between 0 and 1"),
    )
    predictor: int = option(256, "Width of the predictor.", check=_positive)


@hookimpl
def clocs_objectives() -> list[Objective]:
    """Offer both objectives."""
    jepa = "Predict a teacher's features of hidden stretches; the teacher follows the encoder slowly."
    mae = "Reconstruct the samples of hidden stretches."
    return [
        Objective(name="jepa", summary=jepa, options=JepaOptions, build=build_jepa, sequence=True),
        Objective(name="mae", summary=mae, options=MaskOptions, build=build_mae, sequence=True),
    ]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer both methods on whole frames of all leads."""
    train = {
        "optimiser": "adamw",
        "learning_rate": 1e-3,
        "warm_up": 0.02,
        "schedule": "cosine",
        "clip": 1.0,
        "keep": "last",
    }
    presets: dict[str, dict[str, object]] = {"views": {"leads": "all"}, "train": {**train, "epochs": 400}}
    jepa = "Joint-embedding prediction: hidden stretches of a recording are predicted as features."
    mae = "Masked reconstruction: hidden stretches of a recording are predicted as samples."
    return [
        Method(name="jepa", summary=jepa, views="frames", encoder="vit1d", objective="jepa", presets=presets),
        Method(name="mae", summary=mae, views="frames", encoder="vit1d", objective="mae", presets=presets),
    ]


def build_jepa(options: JepaOptions, setup: Setup) -> nn.Module:
    """Build the objective with a teacher, a copy of the encoder."""
    from clocs_plugins.masked_prediction.jepa import Jepa
    from clocs_plugins.masked_prediction.masks import MaskedSignals

    masks = MaskedSignals.fitting(options.masked, options.stretch, setup)
    return Jepa(setup.encoder, masks, options.momentum, options.predictor, setup.steps, setup.autocast == "bf16")


def build_mae(options: MaskOptions, setup: Setup) -> nn.Module:
    """Build the objective with a decoder of one layer."""
    from clocs_plugins.masked_prediction.mae import Mae
    from clocs_plugins.masked_prediction.masks import MaskedSignals

    channels = len(setup.signals.channels) if setup.signals.channel_axis is not None else 1
    return Mae(setup.encoder, MaskedSignals.fitting(options.masked, options.stretch, setup), channels)
