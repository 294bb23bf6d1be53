"""The predictions of a classifier, row by row, for frames or for recordings."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.records import Task
from clocs_core.evaluation.linear import by_record

Level: TypeAlias = Literal["frame", "record"]


@attrs.frozen(eq=False)
class Predicted:
    """The probability of every class, row by row. A row is a frame of one or of all channels, or a recording.

    start: the first sample of the frame in its recording, at the recording's own rate. At the level of recordings,
    `channel` and `start` are empty.
    """

    level: Level
    task: Task
    probability: NDArray[np.float64]  # (n, class)
    record: NDArray[np.int64]  # (n,) along `records`
    patient: NDArray[np.int64]  # (n,) along `patients`
    channel: NDArray[np.int64]  # (n,) along `channels`, or TOGETHER
    start: NDArray[np.int64]  # (n,)
    records: tuple[str, ...]
    patients: tuple[str, ...]
    channels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.probability)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return columns (n,) by name: record, patient and, for frames, channel and start."""
        names = {
            "record": np.array(self.records, dtype=np.str_)[self.record],
            "patient": np.array(self.patients, dtype=np.str_)[self.patient],
        }
        if self.level == "record":
            return names
        return {**names, "channel": np.array([*self.channels, "all"], dtype=np.str_)[self.channel], "start": self.start}


def as_level(found: Predicted, level: Level) -> Predicted:
    """Convert to another level: the probability of a recording is the mean of its frames and channels."""
    if level == found.level or not len(found):
        return attrs.evolve(found, level=level)
    label = np.full(len(found), -1)
    rows = by_record(Predictions(found.probability, label, found.patient, found.record))
    none = np.empty(0, dtype=np.int64)
    return attrs.evolve(
        found,
        level=level,
        probability=rows.probability,
        record=rows.record,
        patient=rows.patient,
        channel=none,
        start=none,
    )
