"""The CLOCS family: views of the same patient attract each other (Kiyasseh, Zhu and Clifton, ICML 2021)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import attrs

from clocs_core import Loss, Method, ViewGenerator, hookimpl, option
from clocs_plugins.patient_contrast.cmsc import SegmentsOptions, build_segments, segments_needs

if TYPE_CHECKING:
    from torch import Tensor


@attrs.frozen
class PatientNCEOptions:
    """Options of the loss `patient-nce`. "We chose the temperature parameter, tau = 0.1"."""

    temperature: float = option(
        0.1, "softmax temperature tau", check=(lambda tau: 0 < tau < float("inf"), "be positive and finite")
    )


@hookimpl
def clocs_views() -> list[ViewGenerator]:
    """Offer the views of the family."""
    return [
        ViewGenerator(
            name="segments",
            summary="Adjacent, non-overlapping segments of one recording.",
            options=SegmentsOptions,
            needs=segments_needs,
            build=build_segments,
        )
    ]


@hookimpl
def clocs_losses() -> list[Loss]:
    """Offer the loss of the family."""
    summary = "Patient-specific noise contrastive estimation, equations 1 to 4 of the paper."
    return [Loss(name="patient-nce", summary=summary, options=PatientNCEOptions, build=build_patient_nce)]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the methods of the family."""
    summary = "Contrastive multi-segment coding: segments in time, and patients, are what is shared."
    return [Method(name="cmsc", summary=summary, views="segments", encoder="cnn", loss="patient-nce")]


def build_patient_nce(options: PatientNCEOptions) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss at one temperature."""
    from clocs_plugins.patient_contrast.nce import patient_nce

    return partial(patient_nce, temperature=options.temperature)
