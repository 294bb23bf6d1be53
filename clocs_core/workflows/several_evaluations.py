"""Make several evaluations in one process, one after the other.

Each is made as `evaluate_encoder` makes it alone. They share what they read: recordings are prepared once, and a device
holds one copy of the frames. Libraries are imported once, which takes longer than a linear evaluation on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import copy_context
from pathlib import Path

import attrs

from clocs_core.data.store import keeping_frames
from clocs_core.plan.evaluation import EvaluationPlan
from clocs_core.progress import COMMAND, RunDisplay
from clocs_core.workflows.evaluate import evaluate_encoder
from clocs_core.workflows.surroundings import Surroundings


@attrs.frozen(eq=False)
class PlannedEvaluation:
    """An evaluation to make: its plan, its folder, and that of shared controls. command: what its report names."""

    plan: EvaluationPlan
    path: Path
    controls: Path | None
    command: str


def evaluate_several(planned: Sequence[PlannedEvaluation], around: Surroundings) -> tuple[Exception | None, ...]:
    """Make evaluations; return the error of each, or None. An error ends its own evaluation, an interruption all."""
    said: set[str] = set()
    with keeping_frames():
        return tuple(
            copy_context().run(_make, one, attrs.evolve(around, show=RunDisplay(around.show, one.path.name, said)))
            for one in planned
        )


def _make(one: PlannedEvaluation, around: Surroundings) -> Exception | None:
    COMMAND.set(one.command)
    try:
        evaluate_encoder(one.plan, one.path, around, one.controls)
    except Exception as problem:
        around.show.warn(f"it ended with an error, and the others go on: {type(problem).__name__}: {problem}")
        return problem
    return None
