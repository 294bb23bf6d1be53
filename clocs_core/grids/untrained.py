"""Name the untrained encoder of an evaluation by all that its score depends on, beside the task.

Rows of a table may have different encoders, or read signals otherwise. Each of them has its own untrained one.
"""

from __future__ import annotations

from pathlib import PurePath

from clocs_core.artifacts.reports import EvaluationReport
from clocs_core.contracts.scores import RANDOM
from clocs_core.grids.cells import ENCODER

_NONE = "none"  # as settings write None
_WHERE_SET = {"data": ("constant",), "framing": ("band_pass", "notch"), "dataset": ("labels",)}


def say_encoder(report: EvaluationReport) -> str:
    """Name architecture, input and normalisation, as "encoder=NAME frame_samples=2500 normalise=min-max".

    Filters, a constant and a table of labels follow where they are set: with others, another score is made.
    """
    one = report.encoder
    facts: dict[str, object] = {ENCODER: one.name, **dict(sorted(one.options.items()))}
    if one.inputs > 1:
        facts["channels_at_once"] = one.inputs
    facts["frame_samples"] = one.frame_samples
    facts |= {name: value for name, value in report.settings.get("data", {}).items() if name == "normalise"}
    for table, names in _WHERE_SET.items():
        held = report.settings.get(table, {})
        facts |= {name: _plain(held[name]) for name in names if held.get(name, _NONE) not in (_NONE, None, "")}
    return " ".join(f"{name}={value}" for name, value in facts.items())


def _plain(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return PurePath(value).name if isinstance(value, str) else str(value)  # a page says no folder of this machine


def is_of(encoder: str, architecture: str) -> bool:
    """Tell whether an encoder that `say_encoder` named has this architecture; "" is any, or not said."""
    return not (encoder and architecture) or encoder.partition(" ")[0] == f"{ENCODER}={architecture}"


def say_untrained(encoder: str) -> str:
    """Name an untrained encoder in a table that has several. encoder: "" where an older file does not say it."""
    return " ".join(filter(None, [RANDOM, encoder]))
