"""xresnet1d, the residual network of the PTB-XL benchmark (Strodthoff, Wagner, Schaeffter and Samek, 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from clocs_core import Encoder, hookimpl, option

if TYPE_CHECKING:
    from torch import nn


@attrs.frozen
class XResNet1dOptions:
    """Options of the encoder `xresnet1d`."""

    blocks: tuple[int, ...] = option(
        (2, 2, 2, 2),
        "Blocks of each stage; 3,4,6,3 with bottleneck is xresnet1d50, 3,4,23,3 is xresnet1d101.",
        check=(lambda blocks: len(blocks) > 0 and min(blocks) > 0, "be one or more positive numbers"),
    )
    bottleneck: bool = option(False, "Blocks of three convolutions, narrow in the middle, instead of two.")
    kernel: int = option(
        5, "Kernel size in samples.", check=(lambda k: k > 0 and k % 2 == 1, "be odd and positive, to have a middle")
    )


PRESETS: dict[str, dict[str, object]] = {
    "run": {"embedding_dim": 512},
    "data": {"normalise": "constant", "channels": []},  # all leads, which keep their amplitudes
    "views": {"leads": "all"},
    "train": {
        "optimiser": "adamw",
        "learning_rate": 2e-3,
        "weight_decay": 0.05,
        "warm_up": 0.1,
        "schedule": "cosine",
        "epochs": 25,
        "batch_size": 128,
    },
}
"""Settings that suit a network of all leads. Those of training were chosen on fold 9 of PTB-XL, with its labels."""


@hookimpl
def clocs_encoders() -> list[Encoder]:
    """Offer the network."""
    summary = "The residual network of the PTB-XL benchmark: three convolutions, stages of blocks, mean over time."
    return [
        Encoder(
            name="xresnet1d",
            summary=summary,
            options=XResNet1dOptions,
            build=build_xresnet1d,
            sequence=True,
            presets=PRESETS,
        )
    ]


def build_xresnet1d(options: XResNet1dOptions, channels: int, samples: int, embedding_dim: int) -> nn.Module:
    """Build a network for signals of `channels`. Raise SettingsError for frames that are too short or E too small."""
    from clocs_plugins.xresnet1d.network import XResNet1d

    return XResNet1d(channels, samples, embedding_dim, **attrs.asdict(options))
