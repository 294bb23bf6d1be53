"""Describe the arrays of a file before their values are read, and find the signals and their facts among them."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.data.time_column import is_time
from clocs_core.errors import DataError

SIGNALS = ("x", "X", "signals", "signal", "data", "samples")
RATES = ("sampling_rate", "fs", "sfreq")
CHANNELS = ("channels", "channel_names", "leads")
UNITS = ("unit", "units")

_SMALL = 1 << 28  # bytes of ids, labels or names, at most


@attrs.frozen
class StoredArray(ABC):
    """An array in a file, not read yet. `name` is its name in the file, and empty for an .npy."""

    path: Path
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Size of the array in bytes."""
        return prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.name!r} in {self.path.name}" if self.name else self.path.name

    @abstractmethod
    def open(self) -> NDArray[Any]:
        """Map or read the whole array. Raises DataError or OSError."""

    def take(self, index: tuple[int | slice, ...]) -> NDArray[Any]:
        """Read a part of the array, and no more where the file allows it."""
        return np.asarray(self.open()[index])

    def values(self) -> list[Any]:
        """Read all values of an array of ids, labels or names. Raises DataError where it is too large for these."""
        if self.size > _SMALL:
            raise DataError(f"{self} has {self.size:,} bytes, too many for a value per recording.")
        try:
            held = self.open().reshape(-1)
            if _has_no_letters(held):
                raise DataError(f"{self} is damaged: it holds numbers of letters that do not exist.")
            return list(held.tolist())
        except (SystemError, ValueError) as problem:  # text with letters that do not exist
            if isinstance(problem, DataError):
                raise
            raise DataError(f"{self} is damaged: {first_line(problem)}.") from None


@attrs.frozen
class Fact(StoredArray):
    """A small value that was read with the list of arrays, such as an attribute."""

    value: Any = attrs.field(default=None, eq=False)

    def open(self) -> NDArray[Any]:
        """Return the value."""
        return np.asarray(self.value)


@attrs.frozen(eq=False)
class ArrayFile:
    """The arrays of a file by name; that of an .npy under "". None or an empty unit: the file does not say it.

    signals: the names of arrays that may hold the signals, the likeliest first. If empty, the facts are not looked up.
    """

    arrays: Mapping[str, StoredArray]
    signals: tuple[str, ...]
    channels: tuple[str, ...] | None = None
    sampling_rate: float | None = None  # Hz
    unit: str = ""

    def first_of(self, names: Sequence[str]) -> StoredArray | None:
        """Return the array under the first of these names that the file has, or None."""
        return next((self.arrays[name] for name in names if name in self.arrays), None)


def file_of(path: Path, found: Sequence[StoredArray], beside: tuple[str, ...], also: tuple[str, ...] = ()) -> ArrayFile:
    """Find the signals among the arrays of a file, and their facts. also: further names of signals."""
    arrays = {one.name: one for one in found}
    numbers = [name for name, one in arrays.items() if one.dtype.kind in "iuf" and one.shape]
    others = (one for one in numbers if one not in (*RATES, *CHANNELS, *UNITS, *beside) and not is_time(one))
    usual = ("",) if "" in arrays else tuple(name for name in (*SIGNALS, *also) if name in numbers)
    file = ArrayFile(arrays, usual or tuple(others))
    if not file.signals:
        return file
    channels = _texts(file.first_of(CHANNELS))
    return attrs.evolve(file, channels=channels, sampling_rate=_rate(path, file), unit=_unit(path, file))


def _rate(path: Path, file: ArrayFile) -> float | None:
    if (found := file.first_of(RATES)) is None:
        return None
    if prod(found.shape) != 1 or found.dtype.kind not in "iuf":
        raise DataError(f"{path} has {prod(found.shape)} sampling rates, {found} must be one positive number, in Hz.")
    return float(found.values()[0])


def _unit(path: Path, file: ArrayFile) -> str:
    units = sorted(set(_texts(file.first_of(UNITS)) or [""]))
    if len(units) > 1:
        raise DataError(f"The channels of {path} have the units {', '.join(units)}, expected one for all.")
    return units[0]


def _texts(array: StoredArray | None) -> tuple[str, ...] | None:
    if array is None:
        return None
    plain = (one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one) for one in array.values())
    return tuple(text.strip() for text in plain)


def _has_no_letters(values: NDArray[Any]) -> bool:
    """Return whether a text of numpy has a code point that Unicode lacks. Python makes a string of it that raises."""
    if values.dtype.kind != "U" or not values.size or not values.dtype.itemsize:
        return False
    codes = np.frombuffer(values.tobytes(), np.dtype(np.uint32).newbyteorder(values.dtype.byteorder))
    return bool((codes > sys.maxunicode).any())


def first_line(problem: BaseException) -> str:
    """Return the first line of a library's message. The next one of numpy may advise to open pickles."""
    return (str(problem).splitlines() or [type(problem).__name__])[0].rstrip(".")
