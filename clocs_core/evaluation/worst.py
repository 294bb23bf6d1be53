"""Find the recordings whose predictions are farthest from their labels, and say what was predicted in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clocs_core.artifacts.clinical import WorstRecording
from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.kinds import kind_of
from clocs_core.contracts.records import Task
from clocs_core.evaluation.bootstrap import Floats

_MANY = 10  # recordings that are listed


def find_worst(
    rows: Predictions, task: Task, names: tuple[Sequence[str], Sequence[str]], start: NDArray[np.int64] | None = None
) -> tuple[WorstRecording, ...]:
    """List the worst recordings, the worst first; a recording counts with its worst row.

    names: of patients and records by number. start: first sample of each row, where rows are frames.
    """
    errors = _ERRORS[task.kind](rows)
    found: dict[int, WorstRecording] = {}
    for row in np.argsort(-errors, kind="stable").tolist():
        number = int(rows.record[row])
        if number not in found:
            found[number] = WorstRecording(
                record=names[1][number],
                patient=names[0][int(rows.patient[row])],
                label=kind_of(task).row_in_words(rows.label[row], task),
                predicted=_WORDS[task.kind](rows.probability[row], rows.label[row], task),
                error=float(errors[row]),
                start=0 if start is None else int(start[row]),
            )
        if len(found) == _MANY:
            break
    return tuple(found.values())


_ERRORS: dict[str, Callable[[Predictions], Floats]] = {
    "one_of": lambda rows: 1 - rows.probability[np.arange(len(rows.label)), rows.label],
    "any_of": lambda rows: np.abs(rows.label - rows.probability).max(1),
    "number": lambda rows: np.abs(rows.label - rows.probability[:, 0]),
}
"""How far the prediction of each row is from its label (n,)."""


def _of_one(predicted: Floats, label: Any, task: Task) -> str:
    decided, true = int(predicted.argmax()), int(label)
    said = f"{task.classes[decided]} {predicted[decided]:.2f}"
    return said if decided == true else f"{said}, {task.classes[true]} {predicted[true]:.2f}"


def _of_any(predicted: Floats, label: Any, task: Task) -> str:
    place = int(np.abs(label - predicted).argmax())
    return f"{task.classes[place]} {predicted[place]:.2f}"


def _of_number(predicted: Floats, label: Any, task: Task) -> str:
    return kind_of(task).words(float(predicted[0]), task)


_WORDS: dict[str, Callable[[Floats, Any, Task], str]] = {"one_of": _of_one, "any_of": _of_any, "number": _of_number}
"""What was predicted of one row, in words."""
