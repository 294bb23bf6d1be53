"""List the arrays of an HDF5 file, by h5py; values are read when they are asked for, and only those.

A file may name other files, on this machine, as its contents: links and arrays that lead out of it are not followed.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, BinaryIO

import attrs
import numpy as np
from numpy.typing import NDArray

from clocs_core.data.recording import need
from clocs_core.data.regular_file import is_passing, most_unpacked, open_regular
from clocs_core.data.stored_arrays import CHANNELS, RATES, UNITS, ArrayFile, Fact, StoredArray, file_of
from clocs_core.errors import DataError

SIGNALS = ("ecg", "ECG", "tracings", "val", "p_signal", "eeg", "ppg")
"""Names of signals beside the usual ones."""

_MOST = 1000  # objects of a file that are looked at
_DEEP = 3  # groups within groups
_LARGEST = 1 << 40
_HEAP, _SEARCHED = b"GCOL\x01\0\0\0", 1 << 28  # heaps are searched in files of at most this many bytes


@attrs.frozen
class Hdf5Array(StoredArray):
    """An array in an HDF5 file. `turned`: MATLAB wrote it, and its axes stand in the opposite order."""

    turned: bool = False
    place: str = ""

    def open(self) -> NDArray[Any]:
        """Read the whole array."""
        return self.take(tuple(slice(None) for _ in self.shape))

    def take(self, index: tuple[int | slice, ...]) -> NDArray[Any]:
        """Read a part of the array."""
        with opened(self.path) as file:
            found = np.asarray(file[self.place][index[::-1] if self.turned else index])
        return found.T if self.turned else found


def open_hdf5(path: Path, beside: tuple[str, ...], turned: bool = False) -> ArrayFile:
    """List the arrays and facts of a file. Raises DataError where it is damaged, and Unavailable without h5py."""
    with opened(path) as file:
        found = {one.name: one for one in _arrays(path, file, turned)}
        facts = list(_facts(path, file, found))
    plain = [attrs.evolve(one, name=_leaf(one.name)) for one in found.values()]
    names = [one.name for one in plain]
    kept = [one if names.count(one.name) == 1 else whole for one, whole in zip(plain, found.values(), strict=True)]
    held = {one.name for one in kept}
    return file_of(path, [*kept, *(fact for fact in facts if fact.name not in held)], beside, SIGNALS)


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open an HDF5 file; whatever its library raises is a DataError of one line."""
    library = need("h5py", "hdf5", "HDF5 files")
    with open_regular(path, _LARGEST) as stream:  # the library would wait for a pipe
        _refuse_endless_heaps(path, stream)
    try:
        with library.File(path, "r", locking=False) as file:
            yield file
    except DataError:
        raise
    except MemoryError:
        raise DataError(f"{path} cannot be read as HDF5: it declares more than there is memory for.") from None
    except Exception as problem:  # the library reads lazily, and raises anything
        if isinstance(problem, OSError) and is_passing(problem):
            raise
        text = " ".join(str(problem).split()) or type(problem).__name__
        raise DataError(f"{path} cannot be read as HDF5: {text.rstrip('.')[:200]}.") from None


def _refuse_endless_heaps(path: Path, stream: BinaryIO) -> None:
    """Raise DataError for a damaged heap of texts: the library never ends where an object of it has no size.

    A heap begins with GCOL, its version, three zeros and its size. Each object has a number of two bytes, six bytes
    more, a size of eight bytes, and its content up to a multiple of eight; number 0 is the free rest with its head.
    """
    if not 0 < os.fstat(stream.fileno()).st_size <= _SEARCHED:
        return
    with mmap(stream.fileno(), 0, access=ACCESS_READ) as held:
        found = held.find(_HEAP)
        while found >= 0:
            (size,) = struct.unpack_from("<Q", held, found + 8) if found + 16 <= len(held) else (0,)
            at, end = found + 16, min(found + size, len(held))
            while at + 16 <= end:
                number, inside = struct.unpack_from("<H6xQ", held, at)
                if inside > end - at or (number == 0 and inside < 16):
                    raise DataError(f"{path} cannot be read as HDF5: a heap of texts is damaged.")
                at += 16 + (inside + 7) // 8 * 8 if number else inside
            found = held.find(_HEAP, found + 1)


def _arrays(path: Path, file: Any, turned: bool) -> Iterator[StoredArray]:
    library, seen, waiting, size = need("h5py", "hdf5", "HDF5 files"), 0, [(file, "", 0)], path.stat().st_size
    while waiting:
        group, above, depth = waiting.pop(0)
        for name in list(group)[:_MOST]:
            seen += 1
            if seen > _MOST or name.startswith("#"):  # MATLAB's own bookkeeping
                continue
            if not isinstance(group.get(name, getlink=True), library.HardLink):
                continue
            one, place = group[name], f"{above}/{name}"
            if isinstance(one, library.Group) and depth < _DEEP:
                waiting.append((one, place, depth + 1))
            elif isinstance(one, library.Dataset) and one.shape is not None:
                array = _array(path, one, place, turned, size)
                if array is not None:
                    yield array


def _array(path: Path, one: Any, place: str, turned: bool, held: int) -> StoredArray | None:
    """Describe an array, or return None for one that holds no numbers or texts. Raises DataError for a bomb."""
    if one.is_virtual or one.external:
        raise DataError(f"{place[1:]} in {path} lies in other files, which are not opened.")
    most = most_unpacked(held)
    sizes = [prod(one.shape) * one.dtype.itemsize, prod(one.chunks or (1,)) * one.dtype.itemsize]
    if max(sizes) > most:
        raise DataError(f"{place[1:]} in {path} claims {max(sizes):,} bytes, far more than a file of {held:,} holds.")
    name = place[1:]
    if turned and _is_char(one):
        return _fact(path, name, _letters(one))
    if turned and one.attrs.get("MATLAB_class") == b"cell":
        texts = _texts_of_cells(one)
        return None if texts is None else _fact(path, name, np.array(texts))
    if one.dtype.kind == "O":  # texts of any length, or references and arrays of any length, which are no signals
        is_text = need("h5py", "hdf5", "HDF5 files").check_string_dtype(one.dtype) is not None
        return _fact(path, name, np.asarray(one.asstr()[...]).astype(str)) if is_text and one.size <= 1 << 20 else None
    if one.dtype.kind not in "biufSU":
        return None
    shape = tuple(map(int, one.shape))
    return Hdf5Array(path, name, shape[::-1] if turned else shape, one.dtype, turned, place)


def _is_char(one: Any) -> bool:
    return bool(one.attrs.get("MATLAB_class") == b"char")


def _letters(one: Any) -> str:
    return "".join(map(chr, np.asarray(one).T.reshape(-1).tolist()))


def _texts_of_cells(one: Any) -> list[str] | None:
    """Return the texts of a cell array, such as names of channels; None where a cell holds anything else."""
    if not 0 < one.size <= _MOST:
        return None
    references = list(np.asarray(one).T.flat)
    if not all(references):  # an empty cell
        return None
    cells = [one.file[reference] for reference in references]
    return [_letters(cell) for cell in cells] if all(_is_char(cell) and cell.size <= _MOST for cell in cells) else None


def _facts(path: Path, file: Any, found: dict[str, StoredArray]) -> Iterator[StoredArray]:
    """Yield the facts that attributes of the file, of its groups or of its arrays hold."""
    places = dict.fromkeys(["/", *("/" + name.rpartition("/")[0] for name in found), *("/" + name for name in found)])
    for place in list(places)[:_MOST]:
        if place not in file:
            continue
        for name in (*RATES, *CHANNELS, *UNITS, "patient", "patient_id", "subject"):
            if name in file[place].attrs:
                yield _fact(path, name, file[place].attrs[name])


def _fact(path: Path, name: str, value: object) -> Fact:
    array = np.asarray(value)
    if array.dtype.kind == "O":
        array = np.array([one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one) for one in array.flat])
    return Fact(path, name, array.shape, array.dtype, array)


def _leaf(name: str) -> str:
    return name.rpartition("/")[2]
