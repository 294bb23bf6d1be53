"""Check that predictions of two runs are of the same test rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from clocs_core.artifacts.predictions import PredictedRows


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
    if level == "frame" and not np.array_equal(a.record, b.record):
        return (
            f"their frames are not the same ({len(a.record):,} and {len(b.record):,} rows), as with other channels; "
            "the recordings are, so compare these"
        )
    if not np.array_equal(_labels(a, level), _labels(b, level)):
        return "the same rows have different labels"
    return ""


def _labels(rows: PredictedRows, level: str) -> NDArray[Any]:
    if level == "frame":
        return rows.label
    return rows.label[np.unique(rows.record, return_index=True)[1]]
