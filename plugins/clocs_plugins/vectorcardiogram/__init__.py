"""3KG: perturb the vectorcardiogram of an ECG, and contrast two copies (Gopal et al., ML4H 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from clocs_core import Method, Perturbation, SignalFacts, hookimpl, option
from clocs_plugins.vectorcardiogram.leads import mixing_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Generator, Tensor


@attrs.frozen
class VectorcardiogramOptions:
    """Options of the perturbation `vectorcardiogram`."""

    angle: float = option(
        45.0,
        "Largest rotation about each axis, in degrees.",
        check=(lambda angle: 0 <= angle <= 180, "be between 0 and 180"),
    )
    scale: float = option(
        1.5,
        "Largest factor of each axis; the smallest is 1.",
        check=(lambda scale: 1 <= scale < float("inf"), "be 1 or more, and finite"),
    )


@attrs.frozen
class TimeMaskOptions:
    """Options of the perturbation `time_mask`."""

    share: float = option(
        0.5, "Share of the samples that is set to zero.", check=(lambda share: 0 <= share < 1, "be in [0, 1)")
    )


@hookimpl
def clocs_perturbations() -> list[Perturbation]:
    """Offer both perturbations."""
    rotate = "Rotate and scale the vectorcardiogram of a 12-lead ECG; it needs the leads I, II and V1 to V6 by name."
    mask = "Set a random stretch of each lead to zero."
    return [
        Perturbation(
            name="vectorcardiogram", summary=rotate, options=VectorcardiogramOptions, build_for=build_vectorcardiogram
        ),
        Perturbation(name="time_mask", summary=mask, options=TimeMaskOptions, build=build_time_mask),
    ]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the method on two copies of a frame of all leads."""
    summary = "3KG: two copies of a frame, rotated and scaled as vectorcardiograms and masked, attract each other."
    train = {
        "projector": [512, 128],
        "optimiser": "adamw",
        "learning_rate": 1e-3,
        "warm_up": 0.02,
        "schedule": "cosine",
        "keep": "last",
        "epochs": 100,
    }
    presets: dict[str, dict[str, object]] = {"views": {"leads": "all"}, "train": train}
    return [
        Method(
            name="3kg",
            summary=summary,
            views="perturbed",
            encoder="xresnet1d",
            loss="nt-xent",
            perturbations=("vectorcardiogram", "time_mask"),
            presets=presets,
        )
    ]


def build_vectorcardiogram(
    options: VectorcardiogramOptions, signals: SignalFacts
) -> Callable[[Tensor, Generator], Tensor]:
    """Build the function that rotates and scales. Raise ValueError where the leads are not there, or not together."""
    mixing = mixing_of(signals)
    from clocs_plugins.vectorcardiogram.changes import Rotation

    return Rotation(mixing, options.angle, options.scale)


def build_time_mask(options: TimeMaskOptions, _unit: str) -> Callable[[Tensor, Generator], Tensor]:
    """Build the function that sets a stretch to zero."""
    from functools import partial

    from clocs_plugins.vectorcardiogram.changes import mask_time

    return partial(mask_time, share=options.share)
