"""Read arrays in .npy and .npz files: headers are checked before any values are read.

No pickle is ever opened.

np.load maps an .npy file but no member of an .npz. np.savez stores members uncompressed, so they are mapped here by
their offset in the file: of 10,000 recordings in 1 GB, loading one reads its own 100 kB. Members that
np.savez_compressed wrote cannot be mapped; each process unpacks them once, as a whole.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from collections.abc import Iterator
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
from clocs_core.data.stored_arrays import ArrayFile, StoredArray, file_of, first_line
from clocs_core.errors import DataError

_WHOLE = 4 << 30  # bytes of a compressed member that a process may unpack at most
_DAMAGE = (BadZipFile, zlib.error, struct.error, EOFError, OverflowError, RuntimeError, SystemError, ValueError)


@attrs.frozen
class NumpyArray(StoredArray):
    """An array in an .npy file, or a member of an .npz. start: its offset in bytes; None where it is compressed."""

    order: Literal["C", "F"]
    start: int | None

    def open(self) -> NDArray[Any]:
        """Map the array, or unpack it once per process where it is compressed. Raises DataError or OSError."""
        return _open_array(self, _stamp(self.path))


def open_numpy(path: Path, beside: tuple[str, ...]) -> ArrayFile:
    """List the arrays of a file, once per process. Raises DataError where a header is impossible, and OSError."""
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
        raise DataError(f"{path} cannot be read: it is not an .npz file ({first_line(problem)}).") from None
    return file_of(path, found, beside)


def _members(path: Path, file: IO[bytes], held: int) -> Iterator[NumpyArray]:
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


def _array(path: Path, name: str, stream: IO[bytes], held: int) -> NumpyArray:
    """Describe the array that begins at the stream's position. held: its size in bytes, with its header."""
    where, begin = f"{name!r} in {path}" if name else f"{path}", stream.tell()
    try:
        with warnings.catch_warnings(action="ignore"):  # files of Python 2 are fine
            read = npy.read_array_header_1_0 if npy.read_magic(stream) == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(stream)
    except (BadZipFile, zlib.error, OSError):
        raise
    except Exception as problem:  # a header is Python text, which can be wrong in any way
        raise DataError(f"{where} cannot be read: it is not a numpy array ({first_line(problem)}).") from None
    if dtype.hasobject:
        raise DataError(
            f"{where} cannot be read: it holds Python objects, as lists of arrays of different lengths do. These are "
            "pickles, which can run any program when they are opened; save one plain array, or one file per recording."
        )
    found = NumpyArray(path, name, shape, dtype, "F" if fortran else "C", stream.tell())
    left = held - (stream.tell() - begin)
    if found.size > left or any(length < 0 for length in shape):
        raise DataError(f"{where} cannot be read: its shape is {shape}, but it has {left:,} bytes; copy it again.")
    return found


@lru_cache(maxsize=2)
def _open_array(array: NumpyArray, stamp: tuple[int, int]) -> NDArray[Any]:
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
        raise DataError(f"{array} is damaged: {first_line(problem)}.") from None
    return values.reshape(array.shape, order=array.order)
