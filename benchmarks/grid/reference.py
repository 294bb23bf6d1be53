"""The regression gate: what every built-in method reached on simulated ECGs, kept in the repository with its interval.

A score that leaves the interval (95 % by bootstrap over patients, of the recorded run) says that a method learns
otherwise than it did. Settings are small, so that all methods take minutes on a CPU; the scores compare with nothing
but themselves.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import attrs

from clocs_core.contracts.grids import Condition
from clocs_core.contracts.scores import Score
from clocs_core.errors import RunFolderError
from clocs_core.files import write_atomically
from clocs_core.grids.axes import Repeats
from clocs_core.grids.presets import Preset
from clocs_core.grids.results import Results

REFERENCE = Path(__file__).with_name("reference.json")

_DATASET = "demo"
_PATIENTS = "patients=120"
_TRAINING = ("epochs=30", "batch_size=64", "resamples=20")  # of the run itself, whose intervals nobody reads
_SCORING = ("resamples=300",)
_SHORT = ("frame_samples=1250", "instances=64", "epochs=10")  # for networks that read all leads
_SMALL = ("blocks=1,1,1,1,1,1", *_SHORT)
_MORE = {
    "3kg": _SMALL,
    "cmsc-many": ("frame_samples=1250",),  # the simulated recordings have two frames of 2500 samples, not four
    "comet": _SMALL,
    "cpc": ("stride=16", "layers=2", "state=4", "ahead=4"),  # smaller networks than by default, for a CPU
    "jepa": ("patch=50", "layers=2"),
    "mae": ("patch=50", "layers=2"),
    "moco": ("blocks=1,1,1,1",),
    "pclr": _SMALL,
    "rhythm-and-patient": ("stride=16", "layers=2", "state=4", "ahead=4", *_SHORT),
    "vicreg-many": (*_SMALL, "expander=256,256"),
}


@attrs.frozen
class Verdict:
    """A method's score now, and the interval that it was recorded with. now: None where there is no score."""

    method: str
    now: float | None
    recorded: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether the score lies in the interval."""
        return self.now is not None and self.low <= self.now <= self.high


def reference_preset(methods: Sequence[str]) -> Preset:
    """Make a table of linear evaluations of these methods on the simulated data set."""
    conditions = tuple(
        Condition(
            method=method,
            pretraining=_DATASET,
            downstream=_DATASET,
            protocol="linear",
            embedding_dim=64,
            label_fraction=1.0,
            leads="12" if method == "3kg" else "4",  # it needs eight of them by name
            options=_MORE.get(method, ()),
        )
        for method in methods
    )
    title = "Every built-in method on simulated ECGs"
    return Preset(name="reference", title=title, conditions=conditions)


def reference_repeats() -> Repeats:
    """Ask for one seed and one split: runs repeat exactly on one machine, and almost exactly on another."""
    return Repeats(pretrain_options=(_PATIENTS, *_TRAINING), evaluate_options=(_PATIENTS, *_SCORING))


def record(preset: Preset, results: Results, path: Path) -> None:
    """Write what these methods reached. Raises RunFolderError where one of them has no score."""
    found = {one.method: _score(one, results) for one in preset.conditions}
    missing = [method for method, score in found.items() if score is None]
    if missing:
        raise RunFolderError(
            f"No reference was recorded: there is no score of {', '.join(missing)}. See the logs beside the folders."
        )
    rows = {method: {"value": s.value, "low": s.low, "high": s.high} for method, s in found.items() if s is not None}
    write_atomically(path, json.dumps(rows, indent=2) + "\n")


def read_reference(path: Path) -> dict[str, dict[str, float]]:
    """Read the recorded scores by method. Raises RunFolderError where there are none."""
    try:
        found: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise RunFolderError(f"{path.name} holds no reference ({problem}); make one with --record-reference.") from None
    return found


def check(preset: Preset, results: Results, reference: dict[str, dict[str, float]]) -> tuple[Verdict, ...]:
    """Put the score of each method beside its interval."""
    verdicts = []
    for one in preset.conditions:
        kept, score = reference[one.method], _score(one, results)
        now = score.value if score else None
        verdicts.append(Verdict(one.method, now, kept["value"], kept["low"], kept["high"]))
    return tuple(verdicts)


def _score(one: Condition, results: Results) -> Score | None:
    (cell,) = reference_repeats().cells(one)
    report = results.evaluated(cell)
    for score in report.scores if report else ():
        if (score.protocol, score.init, score.metric, score.level) == ("linear", one.method, "auroc", "frame"):
            return score
    return None
