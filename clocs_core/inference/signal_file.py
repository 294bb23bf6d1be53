"""One recording in one file of a user's own: text, a NumPy array, or WFDB. No pickle is ever opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import attrs
import numpy as np

from clocs_core.data.wfdb import read_wfdb
from clocs_core.errors import DataError, DataNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

_TIME = {"", "t", "time", "timestamp", "time_s", "time (s)", "time [s]", "seconds"}  # "": the index that pandas writes
_SIGNALS = ("x", "X", "signals", "signal", "data", "samples")
_RATES = ("sampling_rate", "fs", "sfreq")
_CHANNELS = ("channels", "channel_names", "leads")
_UNITS = ("unit", "units")


@attrs.frozen(eq=False)
class SignalFile:
    """What a file holds. None, or an empty unit, stands for what it does not say.

    notes: what a person should know of how it was read.
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
    readers = {".csv": _read_text, ".txt": _read_text, ".npy": _read_npy, ".npz": _read_npz, ".hea": _read_wfdb}
    if not path.is_file():
        raise DataNotFound(f"There is no file {path}.")
    read = readers.get(path.suffix.lower())
    if read is None:
        raise DataError(f"{path} is none of {', '.join(readers)}; save it as one of these.")
    try:
        return read(path)
    except DataError:
        raise
    except (ValueError, EOFError, BadZipFile) as problem:
        raise DataError(f"{path} cannot be read: {str(problem).rstrip('.')}.") from None


def _read_text(path: Path) -> SignalFile:
    """A column per channel, with or without a heading; columns of time are left out, empty cells are missing."""
    lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    if not lines:
        raise DataError(f"{path} is empty.")
    mark = next((mark for mark in "\t;," if mark in lines[0]), None)
    if mark is None:
        lines = [line.strip() for line in lines]  # elsewhere a blank at either end is a cell, and its sample missing
    first = [cell.strip().strip('"') for cell in lines[0].split(mark)]
    if _are_numbers(first):
        return SignalFile(_numbers(lines, mark).T)
    if len(lines) == 1:
        raise DataError(f"{path} has a heading, but no samples below it.")
    kept = [place for place, name in enumerate(first) if name.lower() not in _TIME]
    values = _numbers(lines[1:], mark)
    if not kept or values.shape[1] != len(first):
        raise DataError(f"{path} has {values.shape[1]} columns below the heading {', '.join(first)}.")
    return SignalFile(values.T[kept], _own_names([first[place] for place in kept], path))


def _are_numbers(cells: Sequence[str]) -> bool:
    try:
        return len([float(cell) for cell in cells if cell]) > 0
    except ValueError:
        return False


def _numbers(lines: Sequence[str], mark: str | None) -> NDArray[np.float64]:
    """(sample, column). An empty cell is NaN; anything else that is no number is a ValueError that says where."""
    try:
        return np.loadtxt(lines, delimiter=mark, ndmin=2, comments=None)
    except ValueError:  # a gap, or a mistake to be named: a call per cell takes ten times as long
        return np.loadtxt(lines, delimiter=mark, ndmin=2, comments=None, encoding=None, converters=_or_missing)


def _or_missing(cell: str) -> float:
    return float(cell) if cell.strip() else float("nan")


def _read_npy(path: Path) -> SignalFile:
    return _array_as_recording(np.load(path, allow_pickle=False), None, path)


def _read_npz(path: Path) -> SignalFile:
    with np.load(path, allow_pickle=False) as file:
        held = {name: file[name] for name in file.files}
    signal = _signal_among(held, path)
    names = _first(held, _CHANNELS)
    channels = None if names is None else _own_names([str(name) for name in names.reshape(-1)], path)
    rate, unit = _first(held, _RATES), _first(held, _UNITS)
    if rate is not None and rate.size != 1:
        raise DataError(f"{path} has {rate.size} sampling rates, expected one number, in Hz.")
    units = {str(one) for one in unit.reshape(-1)} if unit is not None else {""}
    if len(units) > 1:
        raise DataError(f"The channels of {path} have the units {', '.join(sorted(units))}, expected one for all.")
    found = _array_as_recording(held[signal], channels, path)
    return attrs.evolve(found, sampling_rate=None if rate is None else float(rate.reshape(())), unit=units.pop())


def _signal_among(held: Mapping[str, NDArray[Any]], path: Path) -> str:
    """The name of the array that holds the samples: one that says so, or the only one that can."""
    known = {*_RATES, *_CHANNELS, *_UNITS}
    numbers = [name for name, one in held.items() if one.dtype.kind in "iuf" and one.ndim]
    likely = [name for name in _SIGNALS if name in numbers]
    possible = likely or [name for name in numbers if name not in known and name.lower() not in _TIME]
    if not possible:
        raise DataError(f"{path} has no array of samples, it has {', '.join(held) or 'nothing'}; call it x.")
    if len(possible) > 1:
        raise DataError(f"{path} has several arrays that may be the signal: {', '.join(possible)}. Keep one, called x.")
    return possible[0]


def _first(held: Mapping[str, NDArray[Any]], names: Sequence[str]) -> NDArray[Any] | None:
    return next((held[name] for name in names if name in held), None)


def _array_as_recording(array: NDArray[Any], channels: tuple[str, ...] | None, path: Path) -> SignalFile:
    """(sample,), (channel, sample), or (sample, channel), which has more rows than columns."""
    if array.dtype.kind not in "iuf":
        raise DataError(f"{path} has values of type {array.dtype}, expected numbers.")
    if array.ndim not in (1, 2) or array.size == 0:
        raise DataError(
            f"{path} has the shape {array.shape}, expected one recording: (sample,) or (channel, sample). Several "
            "recordings are a data set: `dataset=NAME`, `root=FILE`."
        )
    turned = array.ndim == 2 and array.shape[0] > array.shape[1]
    samples = np.atleast_2d(array).T if turned else np.atleast_2d(array)  # (channel, sample)
    if channels is not None and len(channels) != len(samples):
        raise DataError(f"{path} has {len(channels)} names ({', '.join(channels)}) for {len(samples)} channels.")
    kept = samples if samples.dtype.kind == "f" or samples.dtype.itemsize > 1 else samples.astype(np.float64)
    if kept.dtype.kind == "u":  # the lowest value of an unsigned type is a sample like any other
        kept = kept.astype(np.float64)
    notes = (f"{path.name} is read as {array.shape[0]:,} samples of {array.shape[1]} channels.",) if turned else ()
    return SignalFile(kept.astype(kept.dtype.newbyteorder("=")), channels, notes=notes)


def _read_wfdb(path: Path) -> SignalFile:
    found = read_wfdb(path)
    header = found.header
    names = _own_names(header.channels, path)
    return SignalFile(found.samples, names, header.sampling_rate, found.unit, found.gain, found.tolerated)


def _own_names(names: Sequence[str], path: Path) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise DataError(f"A channel of {path} is named twice: {', '.join(names)}.")
    return tuple(names)
