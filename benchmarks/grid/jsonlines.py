"""Files of one line of JSON for each thing that happened, appended and never changed.

A line is written whole or not at all: one write, flushed to the disk, under a lock. What a kill leaves of a last line
is dropped by the next reader and cut off by the next writer.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import attrs
import cattrs

from clocs_core.artifacts.documents import as_plain
from clocs_core.errors import RunFolderError
from clocs_core.files import sync_folder
from grid.converting import json_converter

__all__ = ["append_line", "read_lines"]

T = TypeVar("T")


def append_line(path: Path, record: attrs.AttrsInstance) -> None:
    """Add one line, whole. Raises OSError where the disk does not take it; the file is then as it was."""
    line = (json.dumps(as_plain(attrs.asdict(record)), ensure_ascii=False, allow_nan=False) + "\n").encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with _locked(path) as file:
        end = _cut_torn_line(file)
        try:
            if os.write(file, line) != len(line):
                raise OSError(f"{path} took a part of a line only; is the disk full?")
            os.fsync(file)
        except OSError:
            os.ftruncate(file, end)
            raise
    if is_new:
        sync_folder(path.parent)


def read_lines(path: Path, kind: type[T], what: str, without: str) -> tuple[T, ...]:
    """The records of the lines that were written to their end; none where there is no such file.

    Raises RunFolderError for a line that is none. what: a line should be; without: what follows if it is taken out.
    """
    text = path.read_bytes() if path.exists() else b""
    lines = text.split(b"\n")[:-1]  # str.splitlines() would also cut at U+2028, which a message may hold
    return tuple(_parse(line, f"{path}, line {number}", kind, what, without) for number, line in enumerate(lines, 1))


def _parse(line: bytes, where: str, kind: type[T], what: str, without: str) -> T:
    try:
        return json_converter(forbid_extra_keys=True).structure(json.loads(line.decode()), kind)
    except (ValueError, cattrs.BaseValidationError) as problem:
        shown = line[:60].decode(errors="replace")
        raise RunFolderError(
            f"{where}, is not {what} ({type(problem).__name__}: {shown!r}). It was edited or comes from another "
            f"version: take that line out, and {without}."
        ) from None


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """The file opened for appending, held by this process alone until the block ends or the process dies."""
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def _cut_torn_line(file: int) -> int:
    """Cut off what stands behind the last newline; the length of what remains, in bytes."""
    size = end = os.fstat(file).st_size
    while end > 0:  # backwards in blocks: a ledger may be long, and its last line is near
        start = max(0, end - 65536)
        newline = os.pread(file, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end != size:
        os.ftruncate(file, end)
    return end
