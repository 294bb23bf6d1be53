"""Learn the rhythm inside a recording and the patient across recordings, at once: CPC joined with patient-NCE."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from clocs_core import Method, Objective, Setup, hookimpl, option

if TYPE_CHECKING:
    from torch import nn

_weight = (lambda weight: 0 <= weight < float("inf"), "be zero or more, and finite")


@attrs.frozen
class RhythmAndPatientOptions:
    """Options of the objective `rhythm-and-patient`. A part of weight 0 is not computed."""

    rhythm: float = option(1.0, "Weight of predicting the next positions of a recording.", check=_weight)
    patient: float = option(0.1, "Weight of patient-NCE of the projected embeddings.", check=_weight)
    ahead: int = option(12, "Positions ahead that are predicted.", check=(lambda k: k > 0, "be positive"))
    temperature: float = option(
        0.1,
        "Temperature tau of patient-NCE.",
        check=(lambda tau: 0 < tau < float("inf"), "be positive and finite"),
    )


@hookimpl
def clocs_objectives() -> list[Objective]:
    """Offer the objective."""
    summary = "Predict the next positions of a recording, and make projected embeddings of a patient alike."
    return [
        Objective(
            name="rhythm-and-patient",
            summary=summary,
            options=RhythmAndPatientOptions,
            build=build_rhythm_and_patient,
            sequence=True,
            objectives=("cpc",),
            losses=("patient-nce",),
        )
    ]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the method on adjacent segments of all leads."""
    summary = "The rhythm inside a recording (CPC) and the patient across segments (patient-NCE), learnt together."
    train = {
        "projector": [512, 128],
        "optimiser": "adamw",
        "learning_rate": 1e-3,
        "warm_up": 0.02,
        "schedule": "cosine",
        "clip": 1.0,
        "keep": "last",
        "epochs": 100,
    }
    presets: dict[str, dict[str, object]] = {"views": {"leads": "all"}, "train": train}
    return [
        Method(
            name="rhythm-and-patient",
            summary=summary,
            views="segments",
            encoder="s4d",
            objective="rhythm-and-patient",
            presets=presets,
        )
    ]


def build_rhythm_and_patient(options: RhythmAndPatientOptions, setup: Setup) -> nn.Module:
    """Build the objective. Raise ValueError if both weights are 0, or where CPC cannot be built."""
    from clocs_plugins.rhythm_and_patient.objective import RhythmAndPatient

    return RhythmAndPatient(options, setup)
