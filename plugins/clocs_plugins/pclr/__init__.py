"""Patient contrast over time: two recordings of a patient attract each other (Diamant et al., 2022)."""

from __future__ import annotations

from clocs_core import Method, ViewGenerator, hookimpl
from clocs_plugins.pclr.visits import VisitsOptions, build_visits, visits_needs


@hookimpl
def clocs_views() -> list[ViewGenerator]:
    """Offer the views."""
    summary = "Frames of different recordings of one patient."
    return [
        ViewGenerator(name="visits", summary=summary, options=VisitsOptions, needs=visits_needs, build=build_visits)
    ]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the method.

    Diamant et al. draw each patient once for a batch and use NT-Xent. Batches here can have a patient several times.
    Patient-NCE takes those instances as positives; in NT-Xent they would repel each other.
    """
    train = {
        "projector": [512, 128],
        "optimiser": "adamw",
        "learning_rate": 1e-3,
        "warm_up": 0.02,
        "schedule": "cosine",
        "keep": "last",
        "epochs": 100,
    }
    presets: dict[str, dict[str, object]] = {"views": {"leads": "all"}, "train": train}
    summary = "PCLR: different recordings of a patient attract each other, for patients who have two or more."
    return [
        Method(name="pclr", summary=summary, views="visits", encoder="xresnet1d", loss="patient-nce", presets=presets)
    ]
