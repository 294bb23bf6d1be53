"""Find the stored predictions of a classifier, and check that those of two runs are of the same test rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from clocs_core.artifacts.predictions import PredictedRows, Predictions
from clocs_core.evaluation.linear import by_record


def predictions_at(rows: PredictedRows, protocol: str, init: str, fraction: float, level: str) -> Predictions | None:
    """Return the predictions of one classifier, of frames or of recordings; None where it made none.

    fraction: as reports show it, with six digits.
    """
    for (protocol_of, init_of, fraction_of), found in rows.predicted.items():
        if (protocol_of, init_of, f"{fraction_of:g}") == (protocol, init, f"{fraction:g}"):
            return by_record(found) if level == "record" else found
    return None


def why_not_same(a: PredictedRows, b: PredictedRows, level: str) -> str:
    """Return why rows of a level cannot be paired, in words; empty if they can.

    Frames must be the same in the same order. Recordings are matched by name; their frames may differ, such as those
    of other channels.
    """
    mine, theirs = set(a.patient.tolist()), set(b.patient.tolist())
    if mine != theirs:
        return f"their patients are not the same ({len(mine & theirs)} in both, {len(mine)} and {len(theirs)} in all)"
    ours, others = (dict(zip(one.record.tolist(), one.patient.tolist(), strict=True)) for one in (a, b))
    if ours != others:
        both = len(ours.keys() & others.keys())
        return f"their recordings are not the same ({both} in both, {len(ours)} and {len(others)} in all)"
    if level == "frame" and (differ := _frames_differ(a, b)):
        return f"their frames are not the same{differ}; the recordings are, so compare these"
    if not np.array_equal(_labels(a, level), _labels(b, level)):
        return "the same rows have different labels"
    return ""


def _frames_differ(a: PredictedRows, b: PredictedRows) -> str:
    """Say in what rows differ that must be the same frames; empty where they are, as far as files say it."""
    if not np.array_equal(a.record, b.record):
        return f" ({len(a.record):,} and {len(b.record):,} rows), as with other channels"
    if a.channel is not None and b.channel is not None and not np.array_equal(a.channel, b.channel):
        return ": they are of other channels"
    if a.start is not None and b.start is not None and not np.array_equal(a.start, b.start):
        return ": they begin at other samples"
    return ""


def _labels(rows: PredictedRows, level: str) -> NDArray[Any]:
    if level == "frame":
        return rows.label
    return rows.label[np.unique(rows.record, return_index=True)[1]]
