"""Joint-embedding prediction (Assran et al., 2023) as a plugin: an objective with a teacher, on an encoder of clocs.

`clocs run --plugin recall --dataset demo`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from clocs_core import Method, Objective, Setup, hookimpl, option

if TYPE_CHECKING:
    from torch import nn

CLOCS_API = "1.2"
_share = (lambda share: 0 < share < 1, "be above 0 and below 1")


@attrs.frozen
class RecallOptions:
    """What is hidden, and how fast the teacher follows."""

    hidden: float = option(0.5, "Share of the positions that are hidden, each drawn by itself.", check=_share)
    momentum: float = option(0.996, "Share of the teacher's weights that a step keeps.", check=_share)


def build_recall(options: RecallOptions, setup: Setup) -> nn.Module:
    """Build the objective with a copy of the encoder as its teacher."""
    from clocs_recall.objective import Recall

    return Recall(setup.encoder, setup.signals.samples, options.hidden, options.momentum)


@hookimpl
def clocs_objectives() -> list[Objective]:
    """Offer the objective."""
    summary = "Predict a teacher's features of hidden positions."
    return [Objective(name="recall", summary=summary, options=RecallOptions, build=build_recall, sequence=True)]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the method, with an encoder of clocs. The validation loss follows a moving teacher: keep the last epoch."""
    presets = {"train": {"optimiser": "adamw", "learning_rate": 1e-3, "keep": "last"}}
    summary = "Joint-embedding prediction of hidden positions."
    return [
        Method(name="recall", summary=summary, views="frames", encoder="vit1d", objective="recall", presets=presets),
    ]
