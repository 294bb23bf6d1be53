"""A transformer over patches of time (after the ViT of Dosovitskiy et al., ICLR 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs

from clocs_core import Encoder, hookimpl, option

if TYPE_CHECKING:
    from torch import nn

_positive = (lambda n: n > 0, "be positive")


@attrs.frozen
class Vit1dOptions:
    """Options of the encoder `vit1d`."""

    patch: int = option(20, "Samples of a patch, which is a position of the sequence.", check=_positive)
    layers: int = option(8, "Transformer layers.", check=_positive)
    heads: int = option(8, "Heads of attention; they divide the embedding dimension.", check=_positive)
    leads: Literal["joined", "tokens"] = option("joined", "A token is a patch of all leads, or of one lead.")
    dropout: float = option(
        0.0, "Share of features dropped in each layer.", check=(lambda p: 0 <= p < 1, "be in [0, 1)")
    )


PRESETS: dict[str, dict[str, object]] = {
    "run": {"embedding_dim": 256},
    "data": {"normalise": "constant", "channels": []},  # all leads, which keep their amplitudes
    "views": {"leads": "all"},
}
"""Settings that suit a network of all leads."""


@hookimpl
def clocs_encoders() -> list[Encoder]:
    """Offer the transformer."""
    summary = "A transformer over patches of time, of all leads together; mean over time."
    return [
        Encoder(
            name="vit1d",
            summary=summary,
            options=Vit1dOptions,
            build=build_vit1d,
            sequence=True,
            presets=PRESETS,
        )
    ]


def build_vit1d(options: Vit1dOptions, channels: int, samples: int, embedding_dim: int) -> nn.Module:
    """Build a network for signals of `channels`. Raise SettingsError where patches or heads do not fit."""
    from clocs_plugins.vit1d.network import Vit1d

    return Vit1d(channels, samples, embedding_dim, **attrs.asdict(options))
