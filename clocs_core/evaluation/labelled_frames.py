"""The labelled frames of each part, in one store, for training and scoring classifiers."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import torch
from numpy.typing import NDArray

from clocs_core.artifacts.split import PARTS
from clocs_core.contracts.kinds import as_rows
from clocs_core.contracts.records import Part, Task
from clocs_core.data.cohort import Cohort
from clocs_core.data.store import Instances, Store, fill_store, list_instances
from clocs_core.errors import DataError
from clocs_core.evaluation.features import Features, pool_records
from clocs_core.train.normalise import Normalise


@attrs.frozen(eq=False)
class LabelledFrames:
    """Instances of one segment each, by part.

    whole: all instances. labelled: rows of `whole` that have a label. parts: the labelled instances.
    rows: label, patient and record of each labelled instance; their embeddings have no dimension.
    """

    store: Store
    whole: dict[Part, Instances]
    labelled: dict[Part, NDArray[np.int64]]  # (n,) rows of `whole`
    parts: dict[Part, Instances]
    rows: dict[Part, Features]
    task: Task
    normalise: Normalise

    @property
    def counts(self) -> dict[Part, int]:
        """Number of frames in each part, labelled or not."""
        return {part: len(some) for part, some in self.whole.items()}

    def recordings(self, part: Part) -> Features:
        """Return patient and record of all recordings of a part, labelled or not, one per row, without embeddings."""
        return pool_records(_rows(self.store, self.whole[part]))

    def places(self, part: Part, cohort: Cohort) -> dict[str, NDArray[Any]]:
        """Return the classes, and the channel and the first sample of each labelled row, to keep beside predictions.

        The channel is `all` where an encoder reads all of them at once.
        """
        frame, channel = (one.cpu().numpy() for one in (self.parts[part].frame[:, 0], self.parts[part].channel))
        names = np.array(["all"] if channel.shape[1] > 1 else cohort.channels, dtype=np.str_)
        chosen = np.zeros(len(channel), np.int64) if channel.shape[1] > 1 else channel[:, 0]
        classes = np.array(self.task.classes, dtype=np.str_)
        return {"classes": classes, "channel": names[chosen], "start": np.asarray(cohort.evaluate.start)[frame]}


def list_labelled_frames(cohort: Cohort, together: bool, normalise: Normalise, device: torch.device) -> LabelledFrames:
    """List the frames of all channels `together`, or of each channel by itself."""
    prepared, task = cohort.evaluate, cohort.task
    store = fill_store(prepared, cohort.labels, task, cohort.channels, device)
    whole: dict[Part, Instances] = {
        part: list_instances(prepared, frozenset(cohort.split.patients(part)), cohort.channels, 1, together, device)[0]
        for part in PARTS
    }
    known = {part: _labelled(store, some) for part, some in whole.items()}
    parts = {part: take(some, known[part]) for part, some in whole.items()}
    rows = {part: _rows(store, some) for part, some in parts.items()}
    numbers: dict[Part, NDArray[np.int64]] = {part: some.cpu().numpy() for part, some in known.items()}  # sync point
    return LabelledFrames(store, whole, numbers, parts, rows, task, normalise)


def refuse_unlabelled(frames: LabelledFrames, needed: tuple[Part, ...]) -> None:
    """Raise DataError if a needed part has no labelled frame."""
    for part in needed:
        if not len(frames.parts[part]):
            raise DataError(
                f"None of the {len(frames.whole[part]):,} {part} frames has a label for {frames.task.name!r}; choose "
                "another `task=...`, another `split_seed=...` or more recordings."
            )


def take(instances: Instances, rows: torch.Tensor) -> Instances:
    """Return the chosen instances, in the order given."""
    return attrs.evolve(instances, frame=instances.frame[rows], channel=instances.channel[rows])


def _rows(store: Store, instances: Instances) -> Features:
    frame = instances.frame[:, 0]
    columns = (store.label[frame], store.patient[frame], store.record[frame])
    label, patient, record = (column.cpu().numpy() for column in columns)  # sync point
    return Features(np.empty((len(label), 0), np.float32), as_rows(label), patient, record)


def _labelled(store: Store, instances: Instances) -> torch.Tensor:
    """Return the numbers (n,) of the instances that have a label."""
    label = store.label[instances.frame[:, 0]]
    known = ~label.isnan().reshape(len(label), -1).any(1) if label.is_floating_point() else label >= 0
    return known.nonzero().flatten()
