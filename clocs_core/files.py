"""Write files so that a kill at any moment, or a full disk, leaves either the old file or the new one."""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from clocs_core.turns import waiting

_TEMPORARY = re.compile(r"\..+\.(\d{1,9})\.tmp")  # the names that `write_atomically` gives, with the process
_FULL = (errno.ENOSPC, errno.EDQUOT)
_LEFT = 86_400  # seconds; no file of ours is written for so long


def write_atomically(path: Path, data: str | bytes) -> None:
    """Write `data` under a temporary name beside `path`, flush it to the disk, and rename it.

    Raises OSError that names `path`, and the room there is where the disk is full.
    """
    raw = data.encode() if isinstance(data, str) else data
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with naming(path, len(raw)):
        try:
            with open(temporary, "wb") as file:
                file.write(raw)
                flush(file)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def sweep_old(folder: Path, *patterns: str) -> None:
    """Delete temporary files and folders of these names that a killed process left in `folder` a day ago or earlier."""
    for path in [one for pattern in patterns for one in folder.glob(pattern)]:
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime > _LEFT:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def append_line(path: Path, line: str) -> None:
    """Append a line to a file and flush it to the disk. Raises OSError as `write_atomically`."""
    raw = line.encode()
    with naming(path, len(raw)), open(path, "ab") as file:
        file.write(raw)
        flush(file)


def flush(file: IO[bytes]) -> None:
    """Flush a file's buffers to the disk."""
    file.flush()
    with waiting():
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power cut, where the system supports it. Raises OSError that names it."""
    if os.name != "posix":  # Windows has no handle for a folder
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with naming(folder), waiting():
            os.fsync(handle)
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems over a network cannot flush a folder
            raise
    finally:
        os.close(handle)


@contextmanager
def naming(path: Path, size: int | None = None) -> Iterator[None]:
    """Name `path` in an OSError that is raised inside. A full disk says how much room there is.

    size: number of bytes to write, where it is known.
    """
    try:
        yield
    except OSError as problem:
        if problem.errno is None:  # an error of clocs, which is a sentence already
            raise
        raise OSError(problem.errno, explain(problem, path, size), str(path)) from problem


def explain(problem: OSError, path: Path, size: int | None = None) -> str:
    """Return the reason of an OSError; with the room on the disk of `path` where that is full."""
    why = problem.strerror or str(problem)
    if problem.errno not in _FULL or " free)" in why:
        return why
    above = next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())
    asked = "" if size is None else f"{show_bytes(size)} to write, "
    return f"{why} ({asked}{show_bytes(shutil.disk_usage(above).free)} free)"


def is_full_disk(problem: BaseException) -> bool:
    """Return whether an error says that the disk, or a user's share of it, is full."""
    return isinstance(problem, OSError) and problem.errno in _FULL


def show_bytes(count: int) -> str:
    """Return a number of bytes in a unit that people read."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def is_temporary(name: str) -> bool:
    """Return whether `write_atomically` gives such a name to a file that it has not renamed yet."""
    return _TEMPORARY.fullmatch(name) is not None


def sweep(folder: Path) -> None:
    """Delete the files that killed processes were writing in `folder`. The caller holds the lock of the folder."""
    for path in folder.glob(".*.tmp"):
        found = _TEMPORARY.fullmatch(path.name)
        if found and path.is_file() and not _is_at_work(int(found[1])):
            path.unlink(missing_ok=True)


def _is_at_work(process: int) -> bool:
    """Return whether another process of this number is alive."""
    if process == os.getpid():  # this one writes nothing yet: an earlier one had the number, as in a container
        return False
    if os.name != "posix":  # Windows cannot ask without a signal
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # alive, and of another user
        return True
    return True
