"""Perturbations of signals for the views of any method: those of the CLOCS paper and of MT-SSL."""

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
    """Offer perturbations: five of the paper's appendix B, then those that MT-SSL adds."""
    return [
        Perturbation(
            name="gaussian",
            summary="Additive Gaussian noise, independent for every sample.",
            options=GaussianOptions,
            build=builders.build_gaussian,
        ),
        Perturbation(
            name="flip_y",
            summary="Reverse the signal in time; also known as temporal inversion.",
            build=builders.build_flip_y,
            random=False,
        ),
        Perturbation(
            name="flip_x",
            summary="Change the sign of the signal, as swapped electrodes do; also known as negation.",
            build=builders.build_flip_x,
            random=False,
        ),
        Perturbation(
            name="sa_t",
            summary="SpecAugment in time: mask a random stretch of the spectrogram.",
            options=SpecAugmentOptions,
            build=builders.build_sa_t,
        ),
        Perturbation(
            name="sa_f",
            summary="SpecAugment in frequency: mask a random band of the spectrogram.",
            options=SpecAugmentOptions,
            build=builders.build_sa_f,
        ),
        Perturbation(
            name="scaling",
            summary="Multiply the amplitude by a factor. Min-max normalisation of each view undoes it.",
            options=ScalingOptions,
            build=builders.build_scaling,
            random=False,
        ),
        Perturbation(
            name="permutation",
            summary="Cut the signal into pieces and join them in random order.",
            options=PermutationOptions,
            build=builders.build_permutation,
        ),
        Perturbation(
            name="time_warp",
            summary="Stretch a random half of the signal's pieces in time and squeeze the others.",
            options=TimeWarpOptions,
            build=builders.build_time_warp,
        ),
    ]
