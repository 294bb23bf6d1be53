"""Perturbations of signals, which the views of any method can be given: those of the CLOCS paper and of MT-SSL."""

from __future__ import annotations

from clocs_core import Perturbation, hookimpl
from clocs_plugins.perturbations import builders
from clocs_plugins.perturbations.options import (
    GaussianOptions,
    PermutationOptions,
    ScalingOptions,
    SpecAugmentOptions,
    TimeWarpOptions,
)


@hookimpl
def clocs_perturbations() -> list[Perturbation]:
    """Offer perturbations: five of the paper's appendix B, then what MT-SSL adds to them."""
    return [
        Perturbation(
            name="gaussian",
            summary="Additive Gaussian noise, independent for every sample.",
            options=GaussianOptions,
            build=builders.build_gaussian,
        ),
        Perturbation(
            name="flip_y",
            summary="The signal read backwards in time, also known as temporal inversion.",
            build=builders.build_flip_y,
            random=False,
        ),
        Perturbation(
            name="flip_x",
            summary="The signal upside down, as from swapped electrodes; also known as negation.",
            build=builders.build_flip_x,
            random=False,
        ),
        Perturbation(
            name="sa_t",
            summary="SpecAugment in time: a random stretch of the spectrogram is silenced.",
            options=SpecAugmentOptions,
            build=builders.build_sa_t,
        ),
        Perturbation(
            name="sa_f",
            summary="SpecAugment in frequency: a random band of the spectrogram is silenced.",
            options=SpecAugmentOptions,
            build=builders.build_sa_f,
        ),
        Perturbation(
            name="scaling",
            summary="The amplitude times a factor. Min-max normalisation of its own undoes it.",
            options=ScalingOptions,
            build=builders.build_scaling,
            random=False,
        ),
        Perturbation(
            name="permutation",
            summary="The signal cut into pieces, which are put together in random order.",
            options=PermutationOptions,
            build=builders.build_permutation,
        ),
        Perturbation(
            name="time_warp",
            summary="A random half of the signal's pieces stretched in time, the others squeezed.",
            options=TimeWarpOptions,
            build=builders.build_time_warp,
        ),
    ]
