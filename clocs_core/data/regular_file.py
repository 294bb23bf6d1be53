"""Open a user's file: only a regular one, and only as large as its reader can use.

A folder of recordings may hold anything. A pipe that is named like a header makes `open` wait for ever, and a small
file can declare or unpack to more than the memory. Every reader of recordings and tables opens its files here.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from clocs_core.errors import DataError

LARGEST = 1 << 31  # bytes of a file that is read as a whole
_RATIO = 100  # signals shrink to a tenth, text of signals to a fortieth; bombs to a thousandth
_HARMLESS = 1 << 28  # bytes that any file may unpack to, however small

# Errors that say what a path is. Any other error number says what the system could not do today: it may have no more
# file handles, the disk or the network may fail, or the permission may be missing.
_OF_THE_FILE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL, errno.ENXIO}


def open_regular(path: Path | str, largest: int = LARGEST) -> BinaryIO:
    """Open a regular file to read its bytes.

    Raises DataError for a pipe, a device, a folder or a file of more than `largest` bytes, and OSError.
    """
    name = os.fspath(path)
    # Without O_NONBLOCK, opening a pipe waits until somebody writes to it.
    handle = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise DataError(f"{name} is not a regular file, but a folder, a pipe or a device; it is not read.")
        if found.st_size > largest:
            raise DataError(f"{name} has {found.st_size:,} bytes, expected at most {largest:,}; it is not read.")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def most_unpacked(packed: int) -> int:
    """Return how many bytes `packed` compressed bytes may unpack to: more than any recording needs."""
    return max(_HARMLESS, _RATIO * packed)


def is_passing(problem: BaseException) -> bool:
    """Return whether an error says what the system could not do today, and nothing about the file.

    The errors that led to this one count too, since readers wrap them in their own.
    """
    seen: set[int] = set()
    found: BaseException | None = problem
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        if isinstance(found, OSError) and found.errno is not None and found.errno not in _OF_THE_FILE:
            return True
        found = found.__cause__ or found.__context__
    return False
