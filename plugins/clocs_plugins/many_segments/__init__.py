"""Methods on four segments instead of two, made of existing parts and presets, without code."""

from __future__ import annotations

from clocs_core import Method, hookimpl


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer CMSC and VICReg with V = 4: six pairs of views instead of one.

    Ten seconds at 500 Hz need `frame_samples=1250`.
    """
    cmsc = "CMSC of four adjacent segments instead of two, for recordings of at least four frames."
    vicreg = "VICReg of four adjacent segments of all leads, through an expander of 2048, for four frames or more."
    train = {
        "optimiser": "adamw",
        "learning_rate": 1e-3,
        "warm_up": 0.02,
        "schedule": "cosine",
        "keep": "last",
        "epochs": 100,
    }
    joint: dict[str, dict[str, object]] = {
        "views": {"segments": 4, "leads": "all"},
        "objective": {"expander": [2048, 2048, 2048]},  # four times the 512 of the encoder, as the authors have it
        "train": train,
    }
    four = {"views": {"segments": 4}}
    return [
        Method(name="cmsc-many", summary=cmsc, views="segments", encoder="cnn", loss="patient-nce", presets=four),
        Method(
            name="vicreg-many",
            summary=vicreg,
            views="segments",
            encoder="xresnet1d",
            objective="vicreg",
            presets=joint,
        ),
    ]
