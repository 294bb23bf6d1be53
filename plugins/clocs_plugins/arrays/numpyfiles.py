"""Arrays in .npy and .npz files: headers read and checked before anything is mapped, no pickle ever opened.

An .npy file and a member of an .npz that `np.savez` wrote are mapped: a load reads its own recording and no more. A
member that `np.savez_compressed` wrote has no such place in the file; each worker process unpacks it once, whole.
"""

from __future__ import annotations

import os
import struct
import warnings
import zipfile
import zlib
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import IO, Any, cast

import attrs
import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

_DEFLATE = 1100  # deflate packs at most 1032 bytes into one; a member that claims more does not hold it
_WHOLE = 4 << 30  # bytes of a compressed member that a worker may unpack
_SMALL = 1 << 28  # bytes of ids or labels


class Unreadable(ValueError):
    """A file that is not the array it claims to be."""


@attrs.frozen
class Header:
    """What an array is, and where in its file it begins if it can be mapped. `name` is the member of an .npz."""

    name: str
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    start: int | None  # bytes

    @property
    def size(self) -> int:
        """In bytes."""
        return prod(self.shape) * self.dtype.itemsize


def headers(path: Path) -> dict[str, Header]:
    """The arrays of an .npz by name, or the one of an .npy under "". Raises Unreadable, or OSError."""
    try:
        return _members(path) if path.suffix.lower() == ".npz" else {"": _npy_header(path)}
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError) as problem:
        raise Unreadable(f"{path.name} is not an .npz file: {problem}") from None


def open_array(path: Path, header: Header) -> NDArray[Any]:
    """The array, mapped where it can be, else unpacked once by each process."""
    found = path.stat()
    return _open(path, header, (found.st_size, found.st_mtime_ns))


def read_small(path: Path, header: Header) -> NDArray[Any]:
    """An array of ids, labels or names, whole."""
    if header.size > _SMALL:
        raise Unreadable(f"{_where(path, header.name)} has {header.size:,} bytes, too many for a value per recording")
    return np.array(open_array(path, header))


@lru_cache(maxsize=2)
def _open(path: Path, header: Header, _stamp: tuple[int, int]) -> NDArray[Any]:
    if header.size == 0:
        return np.zeros(header.shape, header.dtype)
    if header.start is not None:
        order = cast(Any, "F" if header.fortran else "C")
        return np.memmap(path, header.dtype, "r", header.start, header.shape, order)
    if header.size > _WHOLE:
        raise Unreadable(
            f"{_where(path, header.name)} is compressed and has {header.size:,} bytes, too many to unpack in every "
            "worker. Save it with np.savez or np.save instead, which are read piece by piece"
        )
    try:
        with zipfile.ZipFile(path) as archive, archive.open(f"{header.name}.npy") as file:
            _read_header(file, path, header.name)
            raw = file.read(header.size)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as problem:
        raise Unreadable(f"{_where(path, header.name)} is damaged: {problem}") from None
    if len(raw) < header.size:
        raise Unreadable(f"{_where(path, header.name)} ends after {len(raw):,} of {header.size:,} bytes")
    return np.frombuffer(raw, header.dtype).reshape(header.shape, order="F" if header.fortran else "C")


def _npy_header(path: Path) -> Header:
    with open(path, "rb", buffering=0) as file:
        shape, fortran, dtype = _read_header(file, path, "")
        header = Header("", shape, fortran, dtype, file.tell())
        left = os.fstat(file.fileno()).st_size - file.tell()
    if header.size > left:
        raise Unreadable(f"{path.name} should hold {header.size:,} bytes of samples, but has {left:,}; copy it again")
    return header


def _members(path: Path) -> dict[str, Header]:
    found: dict[str, Header] = {}
    with zipfile.ZipFile(path) as archive, open(path, "rb") as raw:
        for info in archive.infolist():
            if info.filename.endswith(".npy"):
                name = info.filename.removesuffix(".npy")
                found[name] = _member(archive, raw, info, path, name)
    return found


def _member(archive: zipfile.ZipFile, raw: IO[bytes], info: zipfile.ZipInfo, path: Path, name: str) -> Header:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Unreadable(f"{_where(path, name)} is packed in a way that numpy does not use")
    packed = os.fstat(raw.fileno()).st_size
    if info.compress_size > packed or info.file_size > _DEFLATE * info.compress_size + 1024:
        raise Unreadable(f"{_where(path, name)} claims {info.file_size:,} bytes, more than the file can hold")
    with archive.open(info) as file:
        shape, fortran, dtype = _read_header(file, path, name)
        offset = file.tell()
    start = None
    if info.compress_type == zipfile.ZIP_STORED:
        raw.seek(info.header_offset + 26)  # the lengths of name and extra field in the member's own header
        start = info.header_offset + 30 + sum(struct.unpack("<HH", raw.read(4))) + offset
    header = Header(name, shape, fortran, dtype, start)
    if header.size > info.file_size - offset or (start is not None and start + header.size > packed):
        raise Unreadable(f"{_where(path, name)} should hold {header.size:,} bytes, but has {info.file_size - offset:,}")
    return header


def _read_header(file: IO[bytes], path: Path, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # files of Python 2 are fine
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(file)
    except (zipfile.BadZipFile, zlib.error, OSError):
        raise
    except Exception as problem:  # a header is Python text, which can be wrong in any way
        raise Unreadable(f"{_where(path, name)} is not a numpy array: {problem}".rstrip(".")) from None
    if dtype.hasobject:
        raise Unreadable(
            f"{_where(path, name)} holds Python objects, as lists of arrays of different lengths do. These are "
            "pickles, which can run any program when they are opened; save one plain array, or one file per recording"
        )
    if any(length < 0 for length in shape):
        raise Unreadable(f"{_where(path, name)} has the shape {shape}")
    return shape, fortran, dtype


def _where(path: Path, name: str) -> str:
    return f"{name!r} in {path.name}" if name else path.name
