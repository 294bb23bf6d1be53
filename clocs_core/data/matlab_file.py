"""List the arrays of a MATLAB file, or read one field: versions 5 to 7 here, 7.3 as the HDF5 file that it is.

scipy.io.loadmat reads versions 5 to 7 too, but crashes the whole process ("Segmentation fault" in scipy 1.17) on some
damaged files; here every size is checked against the file. The format: "MAT-File Level 5 File Format" of MathWorks.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clocs_core.data.hdf5_file import SIGNALS, open_hdf5
from clocs_core.data.regular_file import most_unpacked, open_regular
from clocs_core.data.stored_arrays import ArrayFile, Fact, file_of
from clocs_core.errors import DataError

_START = 128  # bytes before the first element
_MATRIX, _COMPRESSED, _CELLS, _STRUCTURE, _TEXT = 14, 15, 1, 2, 4
_NUMBERS = {1: "<i1", 2: "<u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8", 12: "<i8", 13: "<u8"}
_NUMBERS |= {16: "<u1", 17: "<u2", 18: "<u4"}  # letters
_LARGEST = 1 << 30  # bytes: a file is read as a whole
_PARTS = 1000  # elements of one matrix
_LETTERS = 1 << 16  # letters of a text; a longer one is not a fact of a recording
_DAMAGE = (ValueError, struct.error, zlib.error)


def open_matlab(path: Path, beside: tuple[str, ...]) -> ArrayFile:
    """List the arrays of a file, those in structures by their fields. Raises DataError if it is damaged."""
    with open_regular(path, _LARGEST) as stream:
        raw = stream.read(_START)
        if b"MATLAB 7.3" in raw or raw.startswith(b"\x89HDF"):
            return open_hdf5(path, beside, turned=True)
        raw += stream.read()
    found = [Fact(path, name, value.shape, value.dtype, value) for name, value in _values(path, raw)]
    return file_of(path, found, beside, SIGNALS)


def read_matlab_field(path: Path, structure: str, field: str, largest: int) -> NDArray[np.float64]:
    """Read the numbers of `structure.field` from a file of version 5 to 7, in the shape that they have in MATLAB.

    largest: bytes that the file may have, as stored and as unpacked.
    Raises DataError if the file is damaged or larger, or does not have the field; and OSError.
    """
    with open_regular(path, largest) as stream:
        raw = stream.read()
    try:
        value = _array(_find(raw, structure, field, largest))
        if value is None or value.dtype.kind not in "iuf":
            raise ValueError("the field does not hold numbers")
    except _DAMAGE as problem:
        raise DataError(f"{path} has no structure {structure} with a field {field}: {problem}.") from problem
    return value.astype(np.float64)


def _find(raw: bytes, structure: str, field: str, largest: int) -> bytes:
    """Return the matrix in a field of a structure."""
    for body in _matrices(raw, largest):
        which, _, name, parts = _take_apart(body)
        if which == _STRUCTURE and name == structure:
            matrix = next((matrix for name, matrix in _fields(parts) if name == field), None)
            if matrix is None:
                raise ValueError("the structure has no such field")
            return matrix
    raise ValueError("there is none of this name")


def _values(path: Path, raw: bytes) -> list[tuple[str, NDArray[Any]]]:
    try:
        return list(_variables(raw))
    except _DAMAGE as problem:
        raise DataError(f"{path} cannot be read as a MATLAB file: {problem}.") from None


def _variables(raw: bytes) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the arrays of a file by name, and those in the fields of structures."""
    for body in _matrices(raw, most_unpacked(len(raw))):
        which, _, name, parts = _take_apart(body)
        for title, matrix in _fields(parts) if which == _STRUCTURE else [(name, body)]:
            value = _array(matrix)
            if value is not None:
                yield title, value


def _matrices(raw: bytes, left: int) -> Iterator[bytes]:
    """Yield the matrices of a file. left: bytes that all of them together may unpack to."""
    if raw[126:128] != b"IM":
        raise ValueError("it does not begin as a MATLAB 5 file does, little-endian")
    for kind, body in _elements(raw[_START:]):
        if kind == _COMPRESSED:
            unpacked = zlib.decompressobj().decompress(body, left)
            left -= len(unpacked)
            if left <= 0:
                raise ValueError("it unpacks to far more than it holds")
            kind, body = next(_elements(unpacked), (0, b""))
        if kind == _MATRIX:
            yield body


def _elements(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield each element's type and bytes. Elements of four bytes or less are packed into their tag."""
    at = 0
    while at + 8 <= len(raw):
        kind, size = struct.unpack_from("<II", raw, at)
        first = at + 8
        if kind >> 16:
            kind, size, first = kind & 0xFFFF, kind >> 16, at + 4
        end = first + size
        if end > len(raw) or (first == at + 4 and size > 4):
            raise ValueError("it ends in the middle of an element")
        yield kind, raw[first:end]
        at = end if kind == _COMPRESSED else end + (-end + at) % 8  # the others are padded


def _take_apart(matrix: bytes) -> tuple[int, tuple[int, ...], str, list[tuple[int, bytes]]]:
    """Return the class of a matrix, its dimensions, its name, and the elements of its content."""
    parts = list(islice(_elements(matrix), _PARTS))
    if len(parts) < 3 or not parts[0][1]:
        raise ValueError("a matrix has no name")
    dimensions = struct.unpack(f"<{len(parts[1][1]) // 4}i", parts[1][1])
    return parts[0][1][0], dimensions, parts[2][1].decode("utf-8", "replace"), parts[3:]


def _fields(parts: list[tuple[int, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Yield the fields of a structure, whose parts begin with the length of names and the names."""
    (length,) = struct.unpack("<i", parts[0][1]) if parts else (0,)
    if length < 1 or len(parts) < 2:
        raise ValueError("a structure has no fields")
    text = parts[1][1]
    for at, (kind, body) in zip(range(0, len(text), length), parts[2:], strict=False):
        if kind == _MATRIX and body:
            yield text[at : at + length].split(b"\0")[0].decode("utf-8", "replace"), body


def _array(matrix: bytes) -> NDArray[Any] | None:
    """Return the numbers of a matrix, or a text for each row or cell; None where it holds neither, or many letters.

    Complex numbers are not read: without the imaginary part the signal would be wrong.
    """
    which, dimensions, _, parts = _take_apart(matrix)
    if which == _CELLS:
        return _texts_of_cells([body for kind, body in parts if kind == _MATRIX])
    if not parts or parts[0][0] not in _NUMBERS or min(dimensions, default=0) < 0 or which == _STRUCTURE:
        return None
    # Integers may be stored in fewer bytes than their class has, so the type comes from the element.
    values = np.frombuffer(parts[0][1], dtype=_NUMBERS[parts[0][0]])
    if which == _TEXT:  # a Python string for each letter takes ten times the memory of the file
        fits = len(values) <= _LETTERS and values.dtype.kind in "iu"
        return _rows_of_letters(values, dimensions) if fits else None
    if len(parts) > 1:
        return None  # the second element is the imaginary part
    if len(values) != prod(dimensions):
        raise ValueError(f"a matrix of {' x '.join(map(str, dimensions))} has {len(values):,} values")
    return values.reshape(dimensions, order="F")


def _texts_of_cells(cells: list[bytes]) -> NDArray[Any] | None:
    """Return the texts of a cell array, such as names of channels; None where a cell holds anything else."""
    if not cells or not all(cell and _take_apart(cell)[0] == _TEXT for cell in cells):
        return None
    texts = [_array(cell) for cell in cells]
    return np.array([str(one) for one in texts]) if all(one is not None and one.ndim == 0 for one in texts) else None


def _rows_of_letters(codes: NDArray[Any], dimensions: tuple[int, ...]) -> NDArray[Any]:
    """Return one text, or that of each row, such as names of channels: letters lie column by column."""
    rows = dimensions[0] if prod(dimensions) == len(codes) and dimensions[0] > 1 else 1
    texts = ["".join(map(chr, codes[row::rows].tolist())) for row in range(rows)]
    return np.array(texts) if rows > 1 else np.array(texts[0])
