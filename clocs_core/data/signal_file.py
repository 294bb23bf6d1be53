"""Read one recording from one of the user's files: text, a NumPy array, or WFDB. No pickle is ever opened."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.data.array_file import TIMES, open_array_file
from clocs_core.data.number_table import NotANumber, read_number_table
from clocs_core.data.regular_file import open_regular
from clocs_core.data.wfdb import read_wfdb
from clocs_core.errors import DataError, DataNotFound


@attrs.frozen(eq=False)
class SignalFile:
    """The recording in a file. None, or an empty unit: the file does not say it.

    notes: remarks for the user on how the file was read.
    """

    samples: NDArray[np.floating | np.integer]  # (channel, sample); divided by `gain`, in `unit`
    channels: tuple[str, ...] | None = None
    sampling_rate: float | None = None  # Hz
    unit: str = ""
    gain: float = 1.0
    notes: tuple[str, ...] = ()


def read_signal_file(path: Path) -> SignalFile:
    """Read one recording: .csv or .txt (a line per sample), .npy, .npz, or .hea (WFDB).

    Raises DataNotFound where there is no such file, and DataError where it is not one recording.
    """
    readers = {".csv": _read_text, ".txt": _read_text, ".npy": _read_array, ".npz": _read_array, ".hea": _read_wfdb}
    if not path.is_file():
        raise DataNotFound(f"There is no file {path}.")
    read = readers.get(path.suffix.lower())
    if read is None:
        raise DataError(f"{path} is none of {', '.join(readers)}; save it as one of these.")
    found = read(path)
    if found.channels is not None and len(set(found.channels)) < len(found.channels):
        raise DataError(f"A channel of {path} is named twice: {', '.join(found.channels)}.")
    return found


def _read_text(path: Path) -> SignalFile:
    """Read a column per channel, with or without a heading; columns of time are left out, empty cells are missing."""
    with open_regular(path) as stream:
        text = stream.read().removeprefix(b"\xef\xbb\xbf").lstrip(b" \r\n")
    if not text.strip():
        raise DataError(f"{path} is empty.")
    line, below = (*re.split(rb"[\r\n]+", text, maxsplit=1), b"")[:2]
    mark = next((mark for mark in (b"\t", b";", b",") if mark in line), None)
    try:
        first = [cell.strip().strip(b'"').decode("utf-8") for cell in line.split(mark)]
        headed = not _are_numbers(first)
        if headed and not below.strip():
            raise DataError(f"{path} has a heading, but no samples below it.")
        values = read_number_table(below if headed else text, mark)
    except NotANumber as problem:
        raise DataError(f"{path} cannot be read: could not convert string {problem.cell!r}: {problem}.") from None
    except DataError:
        raise
    except ValueError as problem:
        raise DataError(f"{path} cannot be read: {problem}.") from None
    if not headed:
        unused = first[-1] == "" and np.isnan(values[:, -1]).all()  # some programs end each line with a separator
        return SignalFile(values.T[: len(first) - unused])
    kept = [place for place, name in enumerate(first) if name.lower() not in TIMES]
    if not kept or values.shape[1] != len(first):
        raise DataError(f"{path} has {values.shape[1]} columns below the heading {', '.join(first)}.")
    return SignalFile(values.T[kept], tuple(first[place] for place in kept))


def _are_numbers(cells: Sequence[str]) -> bool:
    try:
        return len([float(cell) for cell in cells if cell]) > 0
    except ValueError:
        return False


def _read_array(path: Path) -> SignalFile:
    """Read (sample,), (channel, sample), or (sample, channel), which has more rows than columns."""
    file = open_array_file(path)
    names = file.signals
    if not names:
        raise DataError(f"{path} has no array of samples, it has {', '.join(file.arrays) or 'nothing'}; call it x.")
    if len(names) > 1:
        raise DataError(f"{path} has several arrays that may be the signal: {', '.join(names)}. Keep one, called x.")
    array, channels = file.arrays[names[0]].open(), file.channels
    if array.dtype.kind not in "iuf":
        raise DataError(f"{path} has values of type {array.dtype}, expected numbers.")
    if array.ndim not in (1, 2) or array.size == 0:
        raise DataError(
            f"{path} has the shape {array.shape}, expected one recording: (sample,) or (channel, sample). Several "
            "recordings are a data set: `dataset=NAME`, `root=FILE`."
        )
    turned = array.ndim == 2 and array.shape[0] > array.shape[1]
    samples = _as_samples(np.atleast_2d(array).T if turned else np.atleast_2d(array))
    if channels is not None and len(channels) != len(samples):
        raise DataError(f"{path} has {len(channels)} names ({', '.join(channels)}) for {len(samples)} channels.")
    notes = (f"{path.name} is read as {array.shape[0]:,} samples of {array.shape[1]} channels.",) if turned else ()
    return SignalFile(samples, channels, file.sampling_rate, file.unit, notes=notes)


def _as_samples(array: NDArray[Any]) -> NDArray[np.floating | np.integer]:
    """Copy an array out of its file, in native byte order.

    The lowest value of an 8-bit or an unsigned type is an ordinary sample, not a missing one, so these become floats.
    """
    plain = array.dtype.kind == "f" or (array.dtype.kind == "i" and array.dtype.itemsize > 1)
    return np.array(array, dtype=array.dtype.newbyteorder("=") if plain else np.float64)


def _read_wfdb(path: Path) -> SignalFile:
    found = read_wfdb(path)
    header = found.header
    return SignalFile(found.samples, header.channels, header.sampling_rate, found.unit, found.gain, found.tolerated)
