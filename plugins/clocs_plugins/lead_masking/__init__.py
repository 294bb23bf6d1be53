"""Random lead masking: learn encoders that do not need every lead (Oh et al., CHIL 2022)."""

from __future__ import annotations

from clocs_core import Method, ViewGenerator, hookimpl
from clocs_plugins.lead_masking.masked_leads import MaskedLeadsOptions, build_masked_leads, masked_leads_needs


@hookimpl
def clocs_views() -> list[ViewGenerator]:
    """Offer segments of all leads, some of them masked."""
    return [
        ViewGenerator(
            name="masked-leads",
            summary="Adjacent segments of all chosen leads, each lead masked at random, never all of them.",
            options=MaskedLeadsOptions,
            needs=masked_leads_needs,
            build=build_masked_leads,
        )
    ]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer contrastive multi-segment coding of views with masked leads."""
    summary = "CMSC of all leads together with random lead masking, for encoders that do not need every lead."
    return [Method(name="cmsc-rlm", summary=summary, views="masked-leads", encoder="cnn", loss="patient-nce")]
