"""Perturbations of signals, which the views of any method can be given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from clocs_core import Perturbation, SettingsError, hookimpl, option

if TYPE_CHECKING:
    from torch import Generator, Tensor

_strength = (lambda size: size is None or 0 <= size < float("inf"), "be zero or more, and finite")


@attrs.frozen
class GaussianOptions:
    """Options of the perturbation `gaussian`: at most one of two ways to say how strong the noise is."""

    sigma: float | None = option(
        None, "standard deviation in the data set's unit; 10 µV if not given and the unit is a voltage", check=_strength
    )
    relative: float | None = option(
        None, "or a fraction of each signal's own; 0.07 if not given and the unit is no voltage", check=_strength
    )

    def __attrs_post_init__(self) -> None:
        if self.sigma is not None and self.relative is not None:
            raise SettingsError(
                f"gaussian got both sigma={self.sigma} and relative={self.relative}; give one of them, "
                "each says how strong the noise is"
            )


@hookimpl
def clocs_perturbations() -> list[Perturbation]:
    """Offer perturbations."""
    summary = "Additive Gaussian noise, independent for every sample."
    return [Perturbation(name="gaussian", summary=summary, options=GaussianOptions, build=build_gaussian)]


def build_gaussian(options: GaussianOptions, unit: str) -> Callable[[Tensor, Generator], Tensor]:
    """The function that adds noise to signals of `unit`."""
    from clocs_plugins.perturbations.transforms import gaussian

    return gaussian(unit, options.sigma, options.relative)
