"""Identify patients by a recording: is the nearest recording in a gallery one of the same patient?

The first recording of each patient, by name, is in the gallery; the others are probes. Patients with one recording are
left out. A recording is the mean of its embeddings, and nearness is the cosine. Recall at k is the share of probes
whose patient is among the k nearest of the gallery. No label is used.

Ties: equally near recordings have no order. Each number is the expectation over all orders of them, so that an encoder
which maps everything to one point scores exactly as chance does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import torch
from numpy.typing import NDArray

from clocs_core.artifacts.predictions import Predictions
from clocs_core.contracts.result_offers import RECALL_AT_1, RECALL_AT_5, Metric
from clocs_core.errors import DataError
from clocs_core.evaluation.features import Features
from clocs_core.evaluation.linear import refuse_non_finite
from clocs_core.evaluation.retrieval import distances

KS = (1, 5)
_TILE = 1024  # probes at a time: 80 MB of distances with a gallery of 10,000


@attrs.frozen(eq=False)
class Lineup:
    """The recordings of a gallery, one of each patient, and the probes, as numbers of rows.

    right: the place of each probe's patient in the gallery.
    """

    gallery: NDArray[np.int64]  # (patient,)
    probes: NDArray[np.int64]  # (n,)
    right: NDArray[np.int64]  # (n,)


def line_up(rows: Features, names: Sequence[str]) -> Lineup:
    """Choose gallery and probes among recordings, one per row. names: of the recordings, by their number."""
    of_patient: dict[int, list[int]] = {}
    for row in sorted(range(len(rows)), key=lambda row: names[int(rows.record[row])]):
        of_patient.setdefault(int(rows.patient[row]), []).append(row)
    several = [mine for mine in of_patient.values() if len(mine) > 1]
    right = [place for place, mine in enumerate(several) for _ in mine[1:]]
    probes = [row for mine in several for row in mine[1:]]
    return Lineup(*(np.array(one, dtype=np.int64) for one in ([mine[0] for mine in several], probes, right)))


def refuse_single_recordings(rows: Features, names: Sequence[str], dataset: str, part: str) -> None:
    """Raise DataError where fewer than two patients have several recordings: there is nobody to tell apart."""
    several, patients = len(line_up(rows, names).gallery), len(np.unique(rows.patient))
    if several < 2:
        raise DataError(
            f"Patient identification needs at least two patients with several recordings; {several} of the "
            f"{patients:,} {part} patients of {dataset!r} {'has' if several == 1 else 'have'} several. Choose another "
            "`dataset` or `part`."
        )


def identify(rows: Features, names: Sequence[str], device: torch.device) -> Predictions:
    """Search the gallery for each probe. Predictions are the probability that its patient is among the k nearest.

    rows: all recordings with their embeddings. Raises DataError for an embedding that is not finite.
    """
    refuse_non_finite(rows)
    lineup = line_up(rows, names)
    x = torch.from_numpy(rows.embedding).to(device, torch.float64)  # (recording, dim)
    gallery, probes, right = (torch.from_numpy(one).to(device) for one in attrs.astuple(lineup, recurse=False))
    found = []
    for some, places in zip(probes.split(_TILE), right.split(_TILE), strict=True):
        near = distances(x[some], x[gallery], "cosine")  # (probe, patient)
        own = near.gather(1, places[:, None])
        nearer, tied = (near < own).sum(1).double(), (near == own).sum(1)
        found.append(torch.stack([((k - nearer) / tied).clamp(0, 1) for k in KS], dim=1))
    return _as_predictions(rows, lineup, torch.cat(found).cpu().numpy())  # sync point


def identify_by_chance(rows: Features, names: Sequence[str]) -> Predictions:
    """Return what a gallery in random order gives: k of all its patients."""
    lineup = line_up(rows, names)
    share = [min(1.0, k / len(lineup.gallery)) for k in KS]
    return _as_predictions(rows, lineup, np.tile(share, (len(lineup.probes), 1)))


def _as_predictions(rows: Features, lineup: Lineup, probability: NDArray[np.float64]) -> Predictions:
    probes = lineup.probes
    label = np.zeros(len(probes), dtype=np.int64)  # there is none
    return Predictions(probability, label, rows.patient[probes], rows.record[probes])


@attrs.frozen
class _Recall:
    """The mean over probes of one column of their probabilities, for one weighting or for many."""

    column: int

    def __call__(self, probability: NDArray[np.float64], label: NDArray[Any], weight: NDArray[np.float64]) -> Any:
        return weight @ probability[:, self.column] / weight.sum(-1)


RECALLS = tuple(
    Metric(
        name=name,
        summary=f"Share of probes whose patient is among the {k} nearest recordings of the gallery.",
        tasks=("one_of", "any_of", "number"),
        limits=(0.0, 1.0),
        score=_Recall(column),
        score_draws=_Recall(column),
    )
    for column, (name, k) in enumerate(zip((RECALL_AT_1, RECALL_AT_5), KS, strict=True))
)
"""The metrics of patient identification; those of plugins score predicted labels."""


def find_recall(name: str) -> Metric | None:
    """Return a metric of patient identification by its name; None where it is no such metric."""
    return next((one for one in RECALLS if one.name == name), None)
