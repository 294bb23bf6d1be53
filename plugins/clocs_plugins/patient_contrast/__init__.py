"""The CLOCS family: views of the same patient attract each other (Kiyasseh, Zhu and Clifton, ICML 2021)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

import attrs

from clocs_core import Loss, Method, Variant, ViewGenerator, hookimpl, option
from clocs_plugins.patient_contrast.cmlc import build_leads, leads_needs
from clocs_plugins.patient_contrast.cmsc import SegmentsOptions, build_segments, segments_needs
from clocs_plugins.patient_contrast.cmsmlc import SegmentsLeadsOptions, build_segments_leads, segments_leads_needs

if TYPE_CHECKING:
    from torch import Tensor


@attrs.frozen
class PatientNCEOptions:
    """Options of the loss `patient-nce`. "We chose the temperature parameter, tau = 0.1"."""

    temperature: float = option(
        0.1, "softmax temperature tau", check=(lambda tau: 0 < tau < float("inf"), "be positive and finite")
    )
    formula: Literal["paper", "released"] = option(
        "paper", "the paper's equations, or the released code: last pair of views, half of the pairs of a patient"
    )


PAPER = Variant(summary="As the paper has it; the same as no variant.", presets={})
RELEASED = Variant(
    summary="As the authors' code has it: half of the off-diagonals, the last pair of views, BatchNorm by view.",
    presets={
        "loss": {"formula": "released"},
        "encoder": {"layer4_relu": False},
        "train": {"per_view": True},
    },
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
        ),
        ViewGenerator(
            name="leads", summary="The leads of one frame, at the same time.", needs=leads_needs, build=build_leads
        ),
        ViewGenerator(
            name="segments-leads",
            summary="Adjacent, non-overlapping segments of every lead.",
            options=SegmentsLeadsOptions,
            needs=segments_leads_needs,
            build=build_segments_leads,
        ),
    ]


@hookimpl
def clocs_losses() -> list[Loss]:
    """Offer the loss of the family."""
    summary = "Patient-specific noise contrastive estimation, equations 1 to 4 of the paper."
    return [Loss(name="patient-nce", summary=summary, options=PatientNCEOptions, build=build_patient_nce)]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the methods of the family."""
    family = {
        "cmsc": ("segments", "Contrastive multi-segment coding: segments in time, and patients, are shared."),
        "cmlc": ("leads", "Contrastive multi-lead coding: leads at one time, and patients, are shared."),
        "cmsmlc": (
            "segments-leads",
            "Contrastive multi-segment multi-lead coding: segments, leads and patients are shared.",
        ),
    }
    variants = {"paper": PAPER, "released": RELEASED}
    return [
        Method(name=name, summary=summary, views=views, encoder="cnn", loss="patient-nce", variants=variants)
        for name, (views, summary) in family.items()
    ]


def build_patient_nce(options: PatientNCEOptions) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss at one temperature, by one of the two formulas."""
    from clocs_plugins.patient_contrast.nce import patient_nce

    return partial(patient_nce, temperature=options.temperature, variant=options.formula)
