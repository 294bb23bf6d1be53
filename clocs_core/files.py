"""Write files so that a kill at any moment, or a full disk, leaves either the old file or the new one."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

_LEFT = 86_400  # seconds; no file of ours is written for so long


def write_atomically(path: Path, data: str | bytes) -> None:
    """Write `data` under a temporary name beside `path`, flush it to the disk, and rename it."""
    raw = data.encode() if isinstance(data, str) else data
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(raw)
            flush(file)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sweep(folder: Path, *patterns: str) -> None:
    """Delete temporary files and folders of these names that a killed process left in `folder` a day ago or earlier."""
    for path in [one for pattern in patterns for one in folder.glob(pattern)]:
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime > _LEFT:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def flush(file: IO[bytes]) -> None:
    """Flush a file's buffers to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power cut, where the system supports it."""
    if os.name != "posix":  # Windows has no handle for a folder
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
