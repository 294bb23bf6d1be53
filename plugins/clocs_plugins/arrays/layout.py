"""What a file or a folder of recordings turned out to hold, and which axis of an array is which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from clocs_core import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers: TypeAlias = NDArray[np.floating | np.integer]

FEWEST_SAMPLES = 16  # of a recording; fewer mean that another axis counts the samples


@attrs.frozen(kw_only=True)
class Found:
    """The recordings of a file or a folder, in order, no signal read. None stands for what the files do not say."""

    form: str
    records: tuple[str, ...]
    files: tuple[Path, ...]  # of each recording
    table_keys: tuple[tuple[str, ...], ...] | None = None  # what a table may call each file; None: rows in order
    patients: tuple[str, ...] | None = None
    labels: tuple[str | None, ...] | None = None
    channels: tuple[str, ...] | None = None
    channel_count: int
    sampling_rate: float | None = None
    unit: str = ""
    notes: tuple[str, ...] = ()


def axes_of(
    shape: Sequence[int], asked: tuple[str, ...], usual: Mapping[int, tuple[str, ...]], where: str
) -> list[str]:
    """Name the axes of an array: as asked, or what is usual for so many. Raises DataError where that cannot be."""
    shown = "(" + ", ".join(map(str, shape)) + ")"
    if asked and len(asked) != len(shape):
        raise DataError(f"{where} has the shape {shown}, but `-o axes={','.join(asked)}` names {len(asked)} axes.")
    if len(set(asked)) < len(asked):
        raise DataError(f"`-o axes={','.join(asked)}` names an axis twice.")
    if not asked and len(shape) not in usual:
        known = " or ".join(f"({', '.join(axes)})" for axes in usual.values())
        raise DataError(f"{where} has the shape {shown}, expected {known}.")
    axes = list(asked or usual[len(shape)])
    if any(axis not in {name for known in usual.values() for name in known} for axis in axes):
        raise DataError(f"{where} holds one recording, so its axes are channel and sample, got {','.join(axes)}.")
    size = dict(zip(axes, shape, strict=True))
    if 0 in size.values():
        raise DataError(f"{where} is empty: its shape is {shown}.")
    crossed = size.get("channel", 1) > size["sample"] or size["sample"] < FEWEST_SAMPLES
    if crossed and not asked:
        raise DataError(
            f"{where} has the shape {shown}; read as ({', '.join(axes)}) that is {size.get('channel', 1):,} channels "
            f"of {size['sample']:,} samples. Say what its axes are, as in `-o axes={_other(axes)}`."
        )
    return axes


def _other(axes: list[str]) -> str:
    """The same axes with sample and channel in each other's place: what is meant most often."""
    if "channel" not in axes:
        return "sample,channel"
    swap = {"channel": "sample", "sample": "channel", "recording": "recording"}
    return ",".join(swap[axis] for axis in axes)


def recordings_of(shape: Sequence[int], axes: list[str]) -> tuple[int, int]:
    """How many recordings of how many channels an array holds."""
    size = dict(zip(axes, shape, strict=True))
    return size.get("recording", 1), size.get("channel", 1)


def one_recording(array: NDArray[Any], axes: list[str], number: int) -> Numbers:
    """One recording of an array, (channel, sample), copied out of whatever file it is mapped from."""
    import numpy as np

    part, left = array, list(axes)
    if "recording" in left:
        part = array[tuple(number if axis == "recording" else slice(None) for axis in left)]
        left.remove("recording")
    if "channel" not in left:
        part, left = part[None], ["channel", *left]
    samples = np.array(part.transpose([left.index("channel"), left.index("sample")]), order="C")
    if samples.dtype == np.int8:  # in eight bits the lowest integer is a value like any other, not a missing sample
        samples = samples.astype(np.int16)
    return samples.astype(samples.dtype.newbyteorder("="))
