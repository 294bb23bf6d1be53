"""Check that a label fits a task."""

from __future__ import annotations

from itertools import pairwise

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
        if task.kind == "one_of" and any(isinstance(one.label, frozenset) for one in label):
            return "an episode has a set of classes only in an any-of task"
        classes = [number for one in label for number in one.classes]
    elif task.kind == "any_of":
        if not isinstance(label, frozenset):
            return "a label of an any-of task is a frozenset"
        classes = list(label)
    else:
        classes = [label]  # type: ignore[list-item]  # its type is checked below
    known = len(task.classes) or float("inf")  # no classes: the files name them
    return "" if all(type(one) is int and 0 <= one < known for one in classes) else f"classes are int, 0 to {known - 1}"
