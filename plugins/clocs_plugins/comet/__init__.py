"""COMET: contrast at four levels of medical time series (Wang, Han, Yan and Zhang, NeurIPS 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from clocs_core import Method, Objective, Setup, ViewGenerator, hookimpl, option
from clocs_plugins.comet.copies import SegmentCopiesOptions, build_segment_copies, segment_copies_needs

if TYPE_CHECKING:
    from torch import nn

_weight = (lambda weight: 0 <= weight < float("inf"), "be zero or more, and finite")


@attrs.frozen
class CometOptions:
    """Options of the objective `comet`. A level of weight 0 is not computed."""

    observation: float = option(0.25, "Weight of the level of observations: positions of a segment.", check=_weight)
    sample: float = option(0.25, "Weight of the level of samples: copies of a segment.", check=_weight)
    trial: float = option(0.25, "Weight of the level of trials: segments of a recording.", check=_weight)
    patient: float = option(0.25, "Weight of the level of patients: segments of a patient.", check=_weight)
    temperature: float = option(
        0.1, "Temperature tau of the softmax.", check=(lambda tau: 0 < tau < float("inf"), "be positive and finite")
    )


@hookimpl
def clocs_views() -> list[ViewGenerator]:
    """Offer the views."""
    summary = "Adjacent segments of one recording, each twice; the copies differ by the perturbations of the run."
    return [
        ViewGenerator(
            name="segment-copies",
            summary=summary,
            options=SegmentCopiesOptions,
            needs=segment_copies_needs,
            build=build_segment_copies,
        )
    ]


@hookimpl
def clocs_objectives() -> list[Objective]:
    """Offer the objective."""
    summary = "Contrast positions, perturbed copies, segments of a recording and segments of a patient, by weights."
    return [Objective(name="comet", summary=summary, options=CometOptions, build=build_comet, sequence=True)]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the method on two adjacent segments of all leads, with noise."""
    summary = "COMET: contrast at the levels of observation, sample, trial and patient, with equal weights."
    train = {
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
            name="comet",
            summary=summary,
            views="segment-copies",
            encoder="xresnet1d",
            objective="comet",
            perturbations=("gaussian",),
            presets=presets,
        )
    ]


def build_comet(options: CometOptions, setup: Setup) -> nn.Module:
    """Build the objective, with the projector of the run where there is one.

    Raise ValueError if all weights are 0, or if a segment has no two positions to contrast.
    """
    from clocs_plugins.comet.levels import Comet

    samples, stride = setup.signals.samples, getattr(setup.encoder, "stride", 1)
    if options.observation and 0 < samples <= stride:
        raise ValueError(
            f"the level `observation` contrasts the positions of a segment, and one of {samples} samples has a single "
            f"position of {stride}. Use longer frames, a smaller stride or patch, or `observation=0`"
        )
    weights = {level: getattr(options, level) for level in ("observation", "sample", "trial", "patient")}
    return Comet(weights, options.temperature, setup.projector)
