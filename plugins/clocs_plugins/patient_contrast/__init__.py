"""The CLOCS family: views of the same patient attract each other (Kiyasseh, Zhu and Clifton, ICML 2021)."""

from __future__ import annotations

from clocs_core import Method, Variant, ViewGenerator, hookimpl
from clocs_plugins.patient_contrast.cmlc import build_leads, leads_needs
from clocs_plugins.patient_contrast.cmsc import SegmentsOptions, build_segments, segments_needs
from clocs_plugins.patient_contrast.cmsmlc import SegmentsLeadsOptions, build_segments_leads, segments_leads_needs

PAPER = Variant(summary="As in the paper; the same as no variant.", presets={})
RELEASED = Variant(
    summary="As in the authors' code: half of the off-diagonals, the last pair of views, BatchNorm by view.",
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
def clocs_methods() -> list[Method]:
    """Offer the methods of the family."""
    family = {
        "cmsc": (
            "segments",
            "Contrastive multi-segment coding: positives are adjacent segments, and instances of one patient.",
        ),
        "cmlc": (
            "leads",
            "Contrastive multi-lead coding: positives are leads of one frame, and instances of one patient.",
        ),
        "cmsmlc": (
            "segments-leads",
            "Contrastive multi-segment multi-lead coding: positives are segments and leads of one patient.",
        ),
    }
    variants = {"paper": PAPER, "released": RELEASED}
    return [
        Method(name=name, summary=summary, views=views, encoder="cnn", loss="patient-nce", variants=variants)
        for name, (views, summary) in family.items()
    ]
