"""Find the nearest recordings of other patients: "quantifying patient similarity", section 7 of the paper.

A recording is represented by the mean embedding of its frames and channels; with the level `frame`, single frames are
compared instead. The patient's own recordings are never among the neighbours.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import numpy as np
import torch
from numpy.typing import NDArray

from clocs_core.contracts.kinds import kind_of
from clocs_core.data.cohort import Cohort
from clocs_core.errors import DataError, UnknownName, neighbours
from clocs_core.evaluation.features import add_rows
from clocs_core.evaluation.retrieval import Nearness, distances
from clocs_core.inference.embed import Representations

Level: TypeAlias = Literal["recording", "frame"]

_MANY = 50  # record names, from which on an error message does not list them


@attrs.frozen
class Place:
    """A recording, or a single frame of one.

    label, channel, start (source sample): those of that frame, or of the recording's first usable frame.
    """

    record: str
    patient: str
    label: str
    part: str
    channel: str
    start: int
    row: int  # index into the representations


@attrs.frozen
class Neighbour:
    """A neighbour and its distance. Neighbours at equal distance share a rank."""

    rank: int
    distance: float
    place: Place


@attrs.frozen
class Similar:
    """The query, its nearest neighbours of other patients, and the number of those searched."""

    query: Place
    neighbours: tuple[Neighbour, ...]
    level: Level
    nearness: Nearness
    searched: int
    patients: int

    def sentence(self) -> str:
        """Describe in one sentence for a person what was compared."""
        what = (
            "the mean of its frames' representations" if self.level == "recording" else "the representation of a frame"
        )
        things = "recordings" if self.level == "recording" else "frames"
        return (
            f"{self.query.record} (patient {self.query.patient}, {self.query.label}): {what}, compared with "
            f"{self.searched:,} {things} of {self.patients:,} other patients by {self.nearness} distance."
        )


def find_patient(cohort: Cohort, record: str, dataset: str) -> str:
    """Return the patient of a recording. Raises UnknownName with the nearest names or the reason for its drop."""
    patients = {entry.record: entry.patient for entry in cohort.listing.entries}
    if record in patients:
        return patients[record]
    for drop in cohort.listing.drops:
        if drop.record == record:
            raise UnknownName(f"Record {record!r} of {dataset!r} was left out: {drop.reason}.")
    hint = neighbours(record, patients)
    hint = hint if len(patients) < _MANY else hint.partition(" There is:")[0]
    raise UnknownName(
        f"Data set {dataset!r} has no record {record!r} here.{hint} The first is {next(iter(patients))!r}."
    )


def find_similar(
    found: Representations,
    record: str,
    level: Level,
    nearness: Nearness,
    count: int,
    frame: int | None = None,
    channel: str | None = None,
) -> Similar:
    """Find the `count` nearest recordings, or frames, of other patients than that of `record`.

    frame, channel: number from 0 and channel of the query frame, at the level of frames.
    """
    points, rows = _points(found, level)
    query = _query(found, rows, record, level, frame, channel)
    others = np.flatnonzero(found.rows.features.patient[rows] != found.rows.features.patient[rows[query]])
    if not len(others):
        raise DataError(f"There is no other patient to compare {record!r} with; search a larger `part`.")
    near = distances(torch.from_numpy(points[[query]]), torch.from_numpy(points[others]), nearness)[0].numpy()
    # Equal distances are ordered by name, so that the list is the same every time; they share a rank.
    place = np.unique(np.array(found.rows.records), return_inverse=True)[1]  # (record,): index in the sorted names
    order = np.lexsort((rows[others], place[found.rows.features.record[rows[others]]], near))[:count]
    return Similar(
        query=_place(found, int(rows[query])),
        neighbours=tuple(
            Neighbour(1 + int((near < near[one]).sum()), float(near[one]), _place(found, int(rows[others[one]])))
            for one in order
        ),
        level=level,
        nearness=nearness,
        searched=len(others),
        patients=len(np.unique(found.rows.features.patient[rows[others]])),
    )


def _points(found: Representations, level: Level) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the compared points (point, dim), and the first row of the embeddings of each (point,)."""
    finite: NDArray[np.int64] = np.flatnonzero(np.isfinite(found.rows.features.embedding).all(axis=1))
    embedding = found.rows.features.embedding[finite].astype(np.float64)
    if level == "frame":
        return embedding, finite
    _, first, number = np.unique(found.rows.features.record[finite], return_index=True, return_inverse=True)
    return add_rows(embedding, number, len(first)) / np.bincount(number)[:, None], finite[first]


def _query(
    found: Representations,
    rows: NDArray[np.int64],
    record: str,
    level: Level,
    frame: int | None,
    channel: str | None,
) -> int:
    """Return the index of the query point. Raises DataError where the recording has no such frame."""
    number = found.rows.records.index(record) if record in found.rows.records else -1  # -1 matches no row
    mine = np.flatnonzero(found.rows.features.record[rows] == number).tolist()
    if not mine:
        raise DataError(f"Record {record!r} has no frame that can be used, so nothing can be compared with it.")
    if level == "recording":
        return mine[0]
    position = found.cohort.evaluate.position
    there = {n: (int(position[found.rows.frame[rows[n]]]), found.channel_name(int(rows[n]))) for n in mine}
    for n, (number, name) in there.items():
        if frame in (None, number) and channel in (None, name):
            return n
    have = ", ".join(f"frame {number} of {name}" for number, name in list(there.values())[:8])
    more = " …" if len(there) > 8 else ""
    wanted = f"frame {'any' if frame is None else frame} of {channel or 'any channel'}"
    raise DataError(f"Record {record!r} has no {wanted} that can be used; it has {have}{more}.")


def _place(found: Representations, row: int) -> Place:
    rows, patient, task = found.rows.features, int(found.rows.features.patient[row]), found.cohort.task
    return Place(
        record=found.rows.records[rows.record[row]],
        patient=found.rows.patients[patient],
        label=kind_of(task).row_in_words(np.asarray(rows.label[row]), task),
        part=found.part(patient),
        channel=found.channel_name(row),
        start=int(found.rows.start[row]),
        row=row,
    )
