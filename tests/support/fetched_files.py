"""One file to download, the call that downloads it, and a look at what came."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

from clocs_core.data.download import download
from clocs_core.data.transfer import Wanted

BODY = random.Random(1).randbytes(300_000)
SUM = hashlib.sha256(BODY).hexdigest()


def quietly(_done: int, _total: int | None) -> None:
    pass


def fetch(
    address: str, target: Path, size: int | None = None, checksum: str | None = None, pause: float = 0.001
) -> tuple[Path, ...]:
    """Download one file, with short pauses between tries."""
    return download([Wanted(address, target, size, checksum)], quietly, pause=pause)


def left(folder: Path) -> list[str]:
    """Return the names of the files in a folder, without that of the lock."""
    return sorted(path.name for path in folder.iterdir() if path.name != ".download.lock")
