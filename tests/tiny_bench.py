"""The tiny data set as material with a split by hand, for tests of what trains and scores classifiers."""

from __future__ import annotations

import attrs
from tiny_material import CHANNELS, TASK, tiny_entries, tiny_prepared

from clocs_core.data.material import Material
from clocs_core.data.records import Listing, Task
from clocs_core.data.splits import Split

PARTS = {f"p{n}": part for n, part in enumerate(("train", "train", "train", "train", "validation", "test"))}
ANY_OF = Task("kind", classes=TASK.classes, kind="any_of")


def tiny_divided(folder, without=(), task=TASK):
    """Six patients of two recordings; the records named in `without` have no label."""
    labels = {
        entry.record: entry.label if task.kind == "one_of" else frozenset({entry.label}) for entry in tiny_entries()
    }
    labels |= dict.fromkeys(without)
    entries = [attrs.evolve(entry, label=labels[entry.record]) for entry in tiny_entries()]
    prepared = tiny_prepared(folder)
    return Material(Listing(entries), Split(PARTS, 0, "60/20/20"), prepared, prepared, CHANNELS, task)
