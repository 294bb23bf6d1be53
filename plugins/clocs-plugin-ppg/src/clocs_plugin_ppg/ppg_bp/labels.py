"""The tasks of PPG-BP, and their labels from the workbook."""

from __future__ import annotations

import attrs
from clocs_core import Task

STAGES = ("normal", "prehypertension", "stage 1", "stage 2")
TASKS = (
    Task("hypertension", STAGES),
    Task("hypertension-binary", ("no hypertension", "hypertension")),
    Task("diabetes", ("none recorded", "type 2")),
)


@attrs.frozen
class Subject:
    """A row of the workbook, as written; an empty cell is empty text."""

    hypertension: str
    diabetes: str


def label_of(task: str, subject: Subject) -> int | None:
    """Return the class of a subject, None if the workbook does not state it.

    Prehypertension is not hypertension. An empty cell under Diabetes is a hospital record that names no diabetes.
    """
    if task == "diabetes":
        return _diabetes(subject.diabetes.casefold())
    stage = _stage(subject.hypertension.casefold())
    return int(stage >= 2) if stage is not None and task == "hypertension-binary" else stage


def _diabetes(text: str) -> int | None:
    return 0 if not text else 1 if "type 2" in text else None


def _stage(text: str) -> int | None:
    plain = text.removesuffix(" hypertension")
    return STAGES.index(plain) if plain in STAGES else None
