"""Measure the amplitude of a data set: one number, from its training patients alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clocs_core.data.prepared import Prepared
from clocs_core.errors import DataError

_AT_ONCE = 1 << 24  # samples in float64 at a time: 128 MB


def measure_deviation(prepared: Prepared, patients: frozenset[str], channels: Sequence[str]) -> float:
    """Return the standard deviation of all usable lead-frames of some patients, each around its own mean.

    The offset of a lead so does not count. Seven digits are kept, as in float32: they print and read back exactly.
    Raises DataError where no lead-frame is usable, or all are flat.
    """
    mine = np.array([patient in patients for _, patient in prepared.records], dtype=bool)
    columns = [prepared.channels.index(name) for name in channels]
    rows = np.flatnonzero(mine[prepared.record] & prepared.valid[:, columns].any(axis=1))
    samples = prepared.frames.shape[2]
    squares, count = 0.0, 0
    for part in np.array_split(rows, max(1, len(rows) * len(columns) * samples // _AT_ONCE + 1)):
        usable = prepared.valid[part][:, columns]  # (frame, channel)
        frames = prepared.frames[part][:, columns].astype(np.float64) / prepared.gain[part, None, None]
        leads = frames[usable]  # (lead-frame, sample)
        squares += float(np.square(leads - leads.mean(axis=1, keepdims=True)).sum())
        count += leads.size
        prepared.let_go()
    if not squares:
        raise DataError(
            "`normalise='constant'` divides by the standard deviation of the training patients' frames, and "
            f"{'all of them are flat' if count else 'there is none'}. Give a number: `constant=X`."
        )
    return float(f"{(squares / count) ** 0.5:.7g}")
