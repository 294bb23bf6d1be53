"""Write files so that a kill at any moment, or a full disk, leaves either the old file or the new one."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import IO


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


def write_checked(path: Path, data: bytes) -> dict[str, object]:
    """Write `data` atomically; return its size and checksum, for a manifest."""
    write_atomically(path, data)
    return {"size": len(data), "sha256": sha256(data).hexdigest()}


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
