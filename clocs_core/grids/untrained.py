"""Name the untrained encoder of an evaluation by all that its score depends on, beside the task.

Rows of a table may have different encoders, or read signals otherwise. Each of them has its own untrained one.
"""

from __future__ import annotations

from clocs_core.artifacts.reports import EvaluationReport
from clocs_core.contracts.grids import RANDOM
from clocs_core.grids.cells import ENCODER


def say_encoder(report: EvaluationReport) -> str:
    """Name architecture, input and normalisation, as "encoder=NAME frame_samples=2500 normalise=min-max"."""
    one = report.encoder
    facts: dict[str, object] = {ENCODER: one.name, **dict(sorted(one.options.items()))}
    if one.inputs > 1:
        facts["channels_at_once"] = one.inputs
    facts["frame_samples"] = one.frame_samples
    facts |= {name: value for name, value in report.settings.get("data", {}).items() if name == "normalise"}
    return " ".join(f"{name}={value}" for name, value in facts.items())


def is_of(encoder: str, architecture: str) -> bool:
    """Tell whether an encoder that `say_encoder` named has this architecture; "" is any, or not said."""
    return not (encoder and architecture) or encoder.partition(" ")[0] == f"{ENCODER}={architecture}"


def say_untrained(encoder: str) -> str:
    """Name an untrained encoder in a table that has several. encoder: "" where an older file does not say it."""
    return " ".join(filter(None, [RANDOM, encoder]))
