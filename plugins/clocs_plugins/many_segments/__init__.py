"""Contrastive multi-segment coding of four segments: a method made of existing parts and a preset, without code."""

from clocs_core import Method, hookimpl


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer CMSC with V = 4: six pairs of views instead of one. Ten seconds at 500 Hz need `frame_samples=1250`."""
    summary = "CMSC of four adjacent segments instead of two, for recordings of at least four frames."
    four = {"views": {"segments": 4}}
    return [
        Method(name="cmsc-many", summary=summary, views="segments", encoder="cnn", loss="patient-nce", presets=four)
    ]
