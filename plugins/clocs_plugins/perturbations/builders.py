"""Build functions of (signal, generator) from options. Each builder imports torch only when called."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import attrs

from clocs_core import NoOptions
from clocs_plugins.perturbations.options import (
    GaussianOptions,
    PermutationOptions,
    ScalingOptions,
    SpecAugmentOptions,
    TimeWarpOptions,
)

if TYPE_CHECKING:
    from torch import Generator, Tensor

Perturb: TypeAlias = "Callable[[Tensor, Generator], Tensor]"


def build_gaussian(options: GaussianOptions, unit: str) -> Perturb:
    """Build the function that adds noise to signals of `unit`."""
    from clocs_plugins.perturbations.gaussian import gaussian

    return gaussian(unit, options.sigma, options.relative)


def build_flip_y(_options: NoOptions, _unit: str) -> Perturb:
    """Build the function that reverses time."""
    from clocs_plugins.perturbations.flips import flip_y

    return flip_y


def build_flip_x(_options: NoOptions, _unit: str) -> Perturb:
    """Build the function that changes the sign."""
    from clocs_plugins.perturbations.flips import flip_x

    return flip_x


def build_sa_t(options: SpecAugmentOptions, _unit: str) -> Perturb:
    """Build the function that masks the spectrogram in time."""
    from clocs_plugins.perturbations.specaugment import mask_time

    return partial(mask_time, **attrs.asdict(options))


def build_sa_f(options: SpecAugmentOptions, _unit: str) -> Perturb:
    """Build the function that masks the spectrogram in frequency."""
    from clocs_plugins.perturbations.specaugment import mask_frequency

    return partial(mask_frequency, **attrs.asdict(options))


def build_scaling(options: ScalingOptions, _unit: str) -> Perturb:
    """Build the function that multiplies amplitudes."""
    from clocs_plugins.perturbations.scaling import scale

    return partial(scale, factor=options.factor)


def build_permutation(options: PermutationOptions, _unit: str) -> Perturb:
    """Build the function that puts pieces in random order."""
    from clocs_plugins.perturbations.permutation import permute

    return partial(permute, pieces=options.pieces)


def build_time_warp(options: TimeWarpOptions, _unit: str) -> Perturb:
    """Build the function that warps time."""
    from clocs_plugins.perturbations.timewarp import warp_time

    return partial(warp_time, pieces=options.pieces, stretch=options.stretch)
