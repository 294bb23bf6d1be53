"""Describe the recordings of a file or a folder, and name the axes of an array."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from clocs_core import DataError, Drop, StoredArray

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FEWEST_SAMPLES = 16  # per recording; fewer mean that another axis counts the samples


@attrs.frozen(kw_only=True)
class Found:
    """The recordings of a file or a folder, in order, without signals. None: the files do not say it."""

    form: str
    records: tuple[str, ...]
    files: tuple[Path, ...]  # the file of each recording
    beside: tuple[tuple[Path, ...], ...] | None = None  # other files that samples of each are read from
    table_keys: tuple[tuple[str, ...], ...] | None = None  # names of each recording in a table
    in_order: bool = False  # a table without such names has its rows in the order of the recordings
    patients: tuple[str, ...] | None = None
    labels: tuple[str | None, ...] | None = None
    channels: tuple[str, ...] | None = None
    channel_count: int
    sampling_rate: float | None = None
    shortest: int  # samples of the shortest recording
    notes: tuple[str, ...] = ()
    drops: tuple[Drop, ...] = ()


def axes_of(
    array: StoredArray | NDArray[Any], asked: tuple[str, ...], usual: Mapping[int, tuple[str, ...]], where: str
) -> list[str]:
    """Name the axes of an array: as asked, or the usual ones for their number. Raises DataError if they do not fit."""
    if array.dtype.kind not in "iuf":
        raise DataError(f"{where} has values of type {array.dtype}, expected numbers.")
    shape = array.shape
    shown, said = f"{where} has the shape ({', '.join(map(str, shape))})", f"`axes={list(asked)}`"
    if asked and len(asked) != len(shape):
        raise DataError(f"{shown}, but {said} names {len(asked)} axes.")
    if len(set(asked)) < len(asked):
        raise DataError(f"{said} names an axis twice.")
    if not asked and len(shape) not in usual:
        known = " or ".join(f"({', '.join(axes)})" for axes in usual.values())
        raise DataError(f"{shown}, expected {known}.")
    axes = list(asked or usual[len(shape)])
    if any(axis not in {name for known in usual.values() for name in known} for axis in axes):
        raise DataError(f"{where} holds one recording, so its axes are channel and sample, but {said} was asked for.")
    size = dict(zip(axes, shape, strict=True))
    if 0 in size.values():
        raise DataError(f"{shown}, so it is empty.")
    crossed = size.get("channel", 1) > size["sample"] or size["sample"] < FEWEST_SAMPLES
    if crossed and not asked:
        swap = {"channel": "sample", "sample": "channel", "recording": "recording"}  # the most frequent mistake
        other = [swap[axis] for axis in axes] if "channel" in axes else ["sample", "channel"]
        raise DataError(
            f"{shown}; read as ({', '.join(axes)}) that is {size.get('channel', 1):,} channels of "
            f"{size['sample']:,} samples. Say what its axes are, as in `axes={other}`."
        )
    return axes


def one_recording(array: NDArray[Any], axes: Sequence[str]) -> NDArray[np.floating | np.integer]:
    """Copy one recording, (channel, sample), out of an array, which may be a memory map."""
    import numpy as np

    part, left = array, list(axes)
    if "channel" not in left:
        part, left = part[None], ["channel", *left]
    samples = np.array(part.transpose([left.index("channel"), left.index("sample")]), order="C")
    if samples.dtype == np.int8:  # in eight bits the lowest integer is an ordinary value, not a missing sample
        samples = samples.astype(np.int16)
    return samples.astype(samples.dtype.newbyteorder("="))


def keys_of(path: Path) -> tuple[str, ...]:
    """Return the names by which a table may mean a file: with and without its folders and its ending."""
    return (path.as_posix(), path.with_suffix("").as_posix(), path.name, path.stem)


def natural(text: str) -> list[tuple[int, int | str]]:
    """Return a key that sorts p2 before p10."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d{1,18})", text)]
