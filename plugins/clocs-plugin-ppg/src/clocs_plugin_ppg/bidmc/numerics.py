"""Vital signs of BIDMC, one value a second: read them, hold them for their second, and turn them into episodes."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from clocs_core import Episode, read_wfdb

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SPELLING = {"RESP": "RR"}  # RESP is the name of the wave too


def plain_name(name: str) -> str:
    """Return the name of a signal without the comma that follows it in the headers."""
    return name.strip().rstrip(",").strip()


def read_numerics(header: Path) -> tuple[float, dict[str, NDArray[np.float64]]]:
    """Read the rate in Hz and the values (second,) of each vital sign; NaN where the monitor shows none, or zero."""
    import numpy as np

    found = read_wfdb(header)
    values = found.samples.astype(np.float64) / found.gain
    values[~np.isfinite(values) | (values <= 0)] = np.nan
    names = [plain_name(name) for name in found.header.channels]
    if found.samples.dtype.kind == "i":
        values[found.samples == -32768] = np.nan
    return found.header.sampling_rate, {_SPELLING.get(name, name): row for name, row in zip(names, values, strict=True)}


def hold(values: NDArray[np.float64], values_rate: float, samples: int, rate: float) -> NDArray[np.float64]:
    """Hold each of the values (second,) until the next, as a signal (sample,) at `rate` Hz; NaN after the last."""
    import numpy as np

    at = (np.arange(samples) * (values_rate / rate) + 1e-9).astype(np.int64)  # 1e-9: 125 * (1 / 125) may fall short
    return np.where(at < len(values), values[np.minimum(at, len(values) - 1)], np.nan)


def episodes_of(
    breaths: NDArray[np.float64], breaths_rate: float, samples: int, rate: float, borders: tuple[int, int]
) -> tuple[Episode, ...]:
    """Return episodes of slow (0), normal (1) and fast (2) breathing within `samples` at `rate` Hz.

    Seconds whose breaths per minute (second,) are unknown have no episode.
    """
    import numpy as np

    kind = np.where(np.isnan(breaths), -1, (breaths >= borders[0]).astype(int) + (breaths > borders[1]))
    step, at, found = rate / breaths_rate, 0, []
    for label, group in groupby(kind.tolist()):
        end = at + len(list(group))
        first, last = round(at * step), min(round(end * step), samples) - 1
        if label >= 0 and first <= last:
            found.append(Episode(first, last, label))
        at = end
    return tuple(found)
