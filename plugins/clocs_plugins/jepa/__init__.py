"""Hide stretches of a recording, and predict the features that a teacher has of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from clocs_core import Method, Objective, Setup, hookimpl, option

if TYPE_CHECKING:
    from torch import nn

_positive = (lambda n: n > 0, "be positive")


@attrs.frozen
class JepaOptions:
    """Options of the objective."""

    masked: float = option(
        0.6,
        "Share of the positions that is hidden, at most.",
        check=(lambda share: 0 < share < 1, "be above 0 and below 1"),
    )
    stretch: int = option(5, "Positions in a row that are hidden.", check=_positive)
    momentum: tuple[float, float] = option(
        (0.998, 0.9998),
        "Share of the teacher's weights that a step keeps: at the first step and at the last.",
        check=(lambda ends: all(0 <= one <= 1 for one in ends), "be between 0 and 1"),
    )
    predictor: int = option(256, "Width of the predictor.", check=_positive)


@hookimpl
def clocs_objectives() -> list[Objective]:
    """Offer the objective."""
    summary = "Predict a teacher's features of hidden stretches; the teacher follows the encoder slowly."
    return [Objective(name="jepa", summary=summary, options=JepaOptions, build=build_jepa, sequence=True)]


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
    summary = "Joint-embedding prediction: hidden stretches of a recording are predicted as features."
    presets: dict[str, dict[str, object]] = {"views": {"leads": "all"}, "train": train}
    return [Method(name="jepa", summary=summary, views="frames", encoder="vit1d", objective="jepa", presets=presets)]


def build_jepa(options: JepaOptions, setup: Setup) -> nn.Module:
    """Build the objective with a teacher, a copy of the encoder."""
    from clocs_core import MaskedSignals
    from clocs_plugins.jepa.joint_embedding import Jepa

    masks = MaskedSignals.fitting(options.masked, options.stretch, setup)
    return Jepa(setup.encoder, masks, options.momentum, options.predictor, setup.steps, setup.autocast == "bf16")
