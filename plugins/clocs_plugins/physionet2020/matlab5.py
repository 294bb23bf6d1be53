"""Read one numeric field of one structure in a MATLAB 5 file, which is all that CPSC 2018 needs.

scipy.io.loadmat reads these files too, but crashes the whole process ("Segmentation fault" in scipy 1.17) on some
damaged files; here every size is checked against the file. The format: "MAT-File Level 5 File Format" of MathWorks.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from clocs_core import DataError, open_regular

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

START = 128  # bytes before the first element
MATRIX, COMPRESSED, STRUCTURE = 14, 15, 2
NUMBERS = {1: "<i1", 2: "<u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8", 12: "<i8", 13: "<u8"}
LARGEST = 1 << 24  # bytes, as stored and as unpacked: the longest recording, of 144 s, has 7 million
PARTS = 100  # elements of one matrix; a structure of CPSC 2018 has 8


def read_field(file: Path, structure: str, field: str) -> NDArray[np.float64]:
    """Read `structure.field`, in the shape it has in MATLAB. Raise DataError if the file does not have it."""
    with open_regular(file, LARGEST) as stream:
        raw = stream.read()
    try:
        if raw[126:128] != b"IM":
            raise ValueError("it does not begin as a MATLAB 5 file does, little-endian")
        return _find(raw[START:], structure.encode(), field.encode())
    except (ValueError, struct.error, zlib.error) as problem:
        raise DataError(f"{file} has no structure {structure} with a field {field}: {problem}.") from problem


def _find(raw: bytes, structure: bytes, field: bytes) -> NDArray[np.float64]:
    for kind, body in _elements(raw):
        if kind == COMPRESSED:
            kind, body = next(_elements(zlib.decompressobj().decompress(body, LARGEST)), (0, b""))
        if kind == MATRIX:
            which, _, name, parts = _take_apart(body)
            if which == STRUCTURE and name == structure:
                return _numbers(_field(parts, field))
    raise ValueError("there is none of this name")


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
        at = end if kind == COMPRESSED else end + (-end + at) % 8  # the others are padded


def _take_apart(matrix: bytes) -> tuple[int, tuple[int, ...], bytes, list[tuple[int, bytes]]]:
    """Return the class of a matrix, its dimensions, its name, and the elements of its content."""
    parts = list(islice(_elements(matrix), PARTS))
    if len(parts) < 3 or not parts[0][1]:
        raise ValueError("a matrix has no name")
    dimensions = struct.unpack(f"<{len(parts[1][1]) // 4}i", parts[1][1])
    return parts[0][1][0], dimensions, parts[2][1], parts[3:]


def _field(parts: list[tuple[int, bytes]], field: bytes) -> bytes:
    """Return the matrix in a field of a structure, whose parts begin with the length of names and the names."""
    (length,) = struct.unpack("<i", parts[0][1]) if parts else (0,)
    if length < 1 or len(parts) < 2:
        raise ValueError("the structure has no fields")
    text = parts[1][1]
    names = [text[at : at + length].split(b"\0")[0] for at in range(0, len(text), length)]
    at = 2 + names.index(field) if field in names else len(parts)
    if at >= len(parts) or parts[at][0] != MATRIX:
        raise ValueError("the structure has no such field")
    return parts[at][1]


def _numbers(matrix: bytes) -> NDArray[np.float64]:
    import numpy as np

    _, dimensions, _, parts = _take_apart(matrix)
    if not parts or parts[0][0] not in NUMBERS or min(dimensions, default=0) < 0:
        raise ValueError("the field does not hold numbers")
    # Integers may be stored in fewer bytes than their class has, so the type comes from the element.
    values = np.frombuffer(parts[0][1], dtype=NUMBERS[parts[0][0]]).astype(np.float64)
    return values.reshape(dimensions, order="F")
