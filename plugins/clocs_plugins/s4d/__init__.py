"""A diagonal state space model over time, for sequences (S4D; Gu, Gupta, Goel and Ré, NeurIPS 2022)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs

from clocs_core import Encoder, hookimpl, option

if TYPE_CHECKING:
    from torch import nn

_positive = (lambda n: n > 0, "be positive")


@attrs.frozen
class S4dOptions:
    """Options of the encoder `s4d`."""

    layers: int = option(4, "State space layers.", check=_positive)
    state: int = option(16, "Complex states of each feature.", check=_positive)
    stride: Literal[1, 2, 4, 8, 16, 32] = option(4, "Samples from one position of the sequence to the next.")
    direction: Literal["past", "both"] = option("past", "A position sees the samples before it, or those after it too.")
    dropout: float = option(
        0.1, "Share of features dropped in each layer.", check=(lambda p: 0 <= p < 1, "be in [0, 1)")
    )


PRESETS: dict[str, dict[str, object]] = {
    "run": {"embedding_dim": 512},
    "data": {"normalise": "constant", "channels": []},  # all leads, which keep their amplitudes
    "views": {"leads": "all"},
}
"""Settings that suit a network of all leads."""


@hookimpl
def clocs_encoders() -> list[Encoder]:
    """Offer the state space model."""
    summary = "A state space model over time: convolutions, diagonal state space layers, mean over time."
    return [
        Encoder(
            name="s4d",
            summary=summary,
            options=S4dOptions,
            build=build_s4d,
            sequence=True,
            presets=PRESETS,
        )
    ]


def build_s4d(options: S4dOptions, channels: int, samples: int, embedding_dim: int) -> nn.Module:
    """Build a network for signals of `channels`. Raise SettingsError for frames shorter than its stride."""
    from clocs_plugins.s4d.network import S4d

    return S4d(channels, samples, embedding_dim, **attrs.asdict(options))
