"""Read arrays in .npy, .npz, HDF5 and MATLAB files: headers are checked before any values are read.

No pickle is ever opened.

np.load maps an .npy file but no member of an .npz. np.savez stores members uncompressed, so they are mapped here by
their offset in the file: of 10,000 recordings in 1 GB, loading one reads its own 100 kB. Members that
np.savez_compressed wrote cannot be mapped; each process unpacks them once, as a whole.
"""

from __future__ import annotations

import struct
import sys
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import IO, Any, Literal
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

import attrs
import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from clocs_core.data.regular_file import is_passing, most_unpacked, open_regular
from clocs_core.errors import DataError

HDF5 = (".h5", ".hdf5")
SIGNALS = ("x", "X", "signals", "signal", "data", "samples")
RATES = ("sampling_rate", "fs", "sfreq")
CHANNELS = ("channels", "channel_names", "leads")
UNITS = ("unit", "units")
TIMES = {"", "t", "time", "timestamp", "time_s", "time (s)", "time [s]", "seconds"}  # "": the index that pandas writes

_WHOLE = 4 << 30  # bytes of a compressed member that a process may unpack at most
_SMALL = 1 << 28  # bytes of ids, labels or names, at most
_DAMAGE = (BadZipFile, zlib.error, struct.error, EOFError, OverflowError, RuntimeError, SystemError, ValueError)


@attrs.frozen
class StoredArray:
    """An array in a file, not read yet. `name` is the member's name in an .npz, and empty for an .npy."""

    path: Path
    name: str
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    dtype: np.dtype[Any]
    start: int | None  # offset in the file, in bytes; None where the array is compressed

    @property
    def size(self) -> int:
        """Size of the array in bytes."""
        return prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.name!r} in {self.path.name}" if self.name else self.path.name

    def open(self) -> NDArray[Any]:
        """Map the array, or unpack it once per process where it is compressed. Raises DataError or OSError."""
        return _open_array(self, _stamp(self.path))

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
            raise DataError(f"{self} is damaged: {_first_line(problem)}.") from None


@attrs.frozen(eq=False)
class ArrayFile:
    """The arrays of an .npz by name, or the array of an .npy under "". None or an empty unit: the file does not say it.

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


def open_array_file(path: Path, beside: tuple[str, ...] = ()) -> ArrayFile:
    """List the arrays of a file of arrays, once per process. beside: names of arrays that are not signals.

    Raises DataError where a header or the facts of the signals are impossible, and OSError.
    """
    kind = path.suffix.lower()
    if kind in HDF5 or kind == ".mat":
        from clocs_core.data.hdf5_file import open_hdf5
        from clocs_core.data.matlab_file import open_matlab

        return (open_hdf5 if kind in HDF5 else open_matlab)(path, beside)
    return _open_file(path, beside, _stamp(path))


def _stamp(path: Path) -> tuple[int, int]:
    """Return size and time of a file, which change when it is written again."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=4)
def _open_file(path: Path, beside: tuple[str, ...], stamp: tuple[int, int]) -> ArrayFile:
    size, zipped = stamp[0], path.suffix.lower() == ".npz"
    try:
        with open_regular(path, size) as stream:
            found = [*_members(path, stream, size)] if zipped else [_array(path, "", stream, size)]
    except (*_DAMAGE, OSError) as problem:
        if isinstance(problem, DataError) or is_passing(problem):
            raise
        raise DataError(f"{path} cannot be read: it is not an .npz file ({_first_line(problem)}).") from None
    return file_of(path, found, beside)


def file_of(path: Path, found: Sequence[StoredArray], beside: tuple[str, ...], also: tuple[str, ...] = ()) -> ArrayFile:
    """Find the signals among the arrays of a file, and their facts. also: further names of signals."""
    arrays = {one.name: one for one in found}
    numbers = [name for name, one in arrays.items() if one.dtype.kind in "iuf" and one.shape]
    others = (one for one in numbers if one not in (*RATES, *CHANNELS, *UNITS, *beside) and one.lower() not in TIMES)
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


def _members(path: Path, file: IO[bytes], held: int) -> Iterator[StoredArray]:
    with ZipFile(file) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name == member.filename:
                continue
            if member.compress_type == ZIP_STORED:
                file.seek(member.header_offset + 26)  # lengths of name and extra field; the array follows these
                file.seek(member.header_offset + 30 + sum(struct.unpack("<HH", file.read(4))))
                yield _array(path, name, file, min(member.file_size, held - file.tell()))
                continue
            if member.compress_type != ZIP_DEFLATED:
                raise DataError(f"{name!r} in {path} is packed in a way that numpy does not use.")
            if member.compress_size > held or member.file_size > most_unpacked(member.compress_size):
                raise DataError(
                    f"{name!r} in {path} claims {member.file_size:,} bytes, more than a file of {held:,} bytes should "
                    "hold; it is not unpacked. If you trust it, save it with np.savez, which does not compress."
                )
            with archive.open(member) as stream:
                yield attrs.evolve(_array(path, name, stream, member.file_size), start=None)


def _array(path: Path, name: str, stream: IO[bytes], held: int) -> StoredArray:
    """Describe the array that begins at the stream's position. held: its size in bytes, with its header."""
    where, begin = f"{name!r} in {path}" if name else f"{path}", stream.tell()
    try:
        with warnings.catch_warnings(action="ignore"):  # files of Python 2 are fine
            read = npy.read_array_header_1_0 if npy.read_magic(stream) == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(stream)
    except (BadZipFile, zlib.error, OSError):
        raise
    except Exception as problem:  # a header is Python text, which can be wrong in any way
        raise DataError(f"{where} cannot be read: it is not a numpy array ({_first_line(problem)}).") from None
    if dtype.hasobject:
        raise DataError(
            f"{where} cannot be read: it holds Python objects, as lists of arrays of different lengths do. These are "
            "pickles, which can run any program when they are opened; save one plain array, or one file per recording."
        )
    found = StoredArray(path, name, shape, "F" if fortran else "C", dtype, stream.tell())
    left = held - (stream.tell() - begin)
    if found.size > left or any(length < 0 for length in shape):
        raise DataError(f"{where} cannot be read: its shape is {shape}, but it has {left:,} bytes; copy it again.")
    return found


@lru_cache(maxsize=2)
def _open_array(array: StoredArray, stamp: tuple[int, int]) -> NDArray[Any]:
    if array.size == 0:
        return np.zeros(array.shape, array.dtype)
    if array.start is not None:
        return np.memmap(array.path, array.dtype, "r", array.start, array.shape, array.order)
    if array.size > _WHOLE:
        raise DataError(
            f"{array} is compressed and has {array.size:,} bytes, too many to unpack in every worker. Save it with "
            "np.savez or np.save instead, which are read piece by piece."
        )
    try:
        with open_regular(array.path, stamp[0]) as file, ZipFile(file) as archive:
            member = archive.getinfo(f"{array.name}.npy")
            with archive.open(member) as stream:
                _array(array.path, array.name, stream, member.file_size)  # moves to the first value
                values = np.frombuffer(stream.read(array.size), array.dtype)
                stream.read()  # the checksum is compared at the end
            if len(values) != prod(array.shape):
                raise EOFError(f"it has {len(values):,} values, expected {prod(array.shape):,}")
    except _DAMAGE as problem:
        if isinstance(problem, DataError):
            raise
        raise DataError(f"{array} is damaged: {_first_line(problem)}.") from None
    return values.reshape(array.shape, order=array.order)


def _has_no_letters(values: NDArray[Any]) -> bool:
    """Return whether a text of numpy has a code point that Unicode lacks. Python makes a string of it that raises."""
    if values.dtype.kind != "U" or not values.size or not values.dtype.itemsize:
        return False
    codes = np.frombuffer(values.tobytes(), np.dtype(np.uint32).newbyteorder(values.dtype.byteorder))
    return bool((codes > sys.maxunicode).any())


def _first_line(problem: BaseException) -> str:
    """Return the first line of a library's message. The next one of numpy may advise to open pickles."""
    return (str(problem).splitlines() or [type(problem).__name__])[0].rstrip(".")
