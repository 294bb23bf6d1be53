"""Check that a label fits a task."""

from __future__ import annotations

from itertools import pairwise

from clocs_core.contracts.kinds import kind_of
from clocs_core.contracts.records import Episode, Label, Task


def fault_of(label: Label, task: Task) -> str:
    """Return what is wrong with a label; empty if nothing."""
    if label is None:
        return ""
    if isinstance(label, tuple):
        if task.per != "frame" or not all(type(one) is Episode for one in label):
            return "a tuple must hold episodes, of a task per frame"
        if any(not 0 <= one.onset <= one.offset for one in label):
            return "an episode must begin at 0 or later, and end after it begins"
        if any(first.onset > second.onset for first, second in pairwise(label)):
            return "episodes must be in the order in which they begin"
        parts: list[object] = [one.label for one in label]
        if task.kind == "any_of":
            parts = [one.classes for one in label]
    else:
        parts = [label]
    return next(filter(None, (kind_of(task).fault(one, task) for one in parts)), "")
