"""What classifiers are trained and scored on: the labelled frames of each part, in one store."""

from __future__ import annotations

import attrs
import numpy as np
import torch
from numpy.typing import NDArray

from clocs_core.data.material import Material
from clocs_core.data.records import Task
from clocs_core.data.splits import PARTS, Part
from clocs_core.data.store import Instances, Store, fill_store, list_instances
from clocs_core.errors import DataError
from clocs_core.evaluate.features import Features
from clocs_core.evaluate.fractions import FractionOf, choose_rows

__all__ = ["Bench", "build_bench", "take"]


@attrs.frozen(eq=False)
class Bench:
    """Labelled instances of one segment each, by part. `frames` counts all of them, labelled or not.

    rows: label, patient and record of every instance of a part, with embeddings of no dimension.
    """

    store: Store
    parts: dict[Part, Instances]
    rows: dict[Part, Features]
    frames: dict[Part, int]
    task: Task
    normalise: bool

    def share(self, fraction: float, seed: int, of: FractionOf) -> NDArray[np.int64]:
        """The rows of the labelled training instances that a classifier may use."""
        return choose_rows(self.rows["train"].patient, fraction, seed, of)


def build_bench(
    material: Material, together: bool, normalise: bool, needed: tuple[Part, ...], device: torch.device
) -> Bench:
    """The labelled frames, of all channels `together` or of each by itself.

    Raises DataError where a part that is needed has none.
    """
    prepared, task = material.evaluate, material.task
    store = fill_store(prepared, material.labels, task, material.channels, device)
    whole: dict[Part, Instances] = {
        part: list_instances(
            prepared, frozenset(material.split.patients(part)), material.channels, 1, together, device
        )[0]
        for part in PARTS
    }
    parts = {part: take(some, _labelled(store, some)) for part, some in whole.items()}
    for part in needed:
        if not len(parts[part]):
            raise DataError(
                f"None of the {len(whole[part]):,} {part} frames has a label for {task.name!r}; choose another "
                "`--task`, another `--split-seed` or more recordings."
            )
    rows = {part: _rows(store, some) for part, some in parts.items()}
    return Bench(store, parts, rows, {part: len(some) for part, some in whole.items()}, task, normalise)


def take(instances: Instances, rows: torch.Tensor) -> Instances:
    """Some of the instances, in the order given."""
    return attrs.evolve(instances, frame=instances.frame[rows], channel=instances.channel[rows])


def _rows(store: Store, instances: Instances) -> Features:
    frame = instances.frame[:, 0]
    columns = (store.label[frame], store.patient[frame], store.record[frame])
    label, patient, record = (column.cpu().numpy() for column in columns)  # sync point
    return Features(np.empty((len(label), 0), np.float32), label.astype(np.int64), patient, record)


def _labelled(store: Store, instances: Instances) -> torch.Tensor:
    """The rows of the instances that have a label (n,)."""
    label = store.label[instances.frame[:, 0]]
    known = label >= 0 if label.dim() == 1 else ~label.isnan().any(1)
    return known.nonzero().flatten()
