"""A file that is being downloaded, in any order: `<name>.part`, and beside it what of it is there already.

    <name>.part         as long as the whole file; holes where nothing came yet
    <name>.part.json    length, the server's tag of this version, and the ranges of bytes that are on the disk

A kill leaves both, and the next download goes on from them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import IO

import attrs

from clocs_core.errors import DownloadError
from clocs_core.files import flush, sync_folder, write_atomically

Range = tuple[int, int]
"""Bytes from the first number up to, not including, the second."""

_SAVE_EVERY = 1 << 25  # bytes: what a kill can cost


def merged(ranges: Sequence[Range], new: Range) -> list[Range]:
    """Ranges in order, none touching another, with one more among them."""
    result: list[Range] = []
    for first, end in sorted([*ranges, new]):
        if first >= end:
            continue
        if result and first <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((first, end))
    return result


def gaps(ranges: Sequence[Range], total: int, piece: int) -> list[Range]:
    """What is missing of a file of `total` bytes, in pieces of at most `piece` bytes."""
    missing, at = [], 0
    for first, end in [*ranges, (total, total)]:
        missing += [(start, min(start + piece, first)) for start in range(at, first, piece)]
        at = end
    return missing


@attrs.define(eq=False)
class PartFile:
    """The growing file. Threads may write different ranges at the same time."""

    path: Path
    total: int | None  # bytes; None where the server does not say
    tag: str  # names the version on the server; "" where it has no name
    done: list[Range]
    file: IO[bytes]
    unsaved: int = 0
    lock: threading.Lock = attrs.field(factory=threading.Lock)

    @classmethod
    def open(cls, target: Path, total: int | None, tag: str, trust: bool) -> PartFile:
        """Go on with what is there of this very version, or begin anew.

        trust: go on even where the server has no tag, because a checksum will tell in the end.
        """
        path = target.with_name(f"{target.name}.part")
        done = _read_done(path, total, tag) if total is not None and (tag or trust) else []
        file = open(path, "r+b" if done else "w+b")  # noqa: SIM115  closed by `close`
        return cls(path, total, tag, done, file)

    @property
    def size(self) -> int:
        """How many bytes are there."""
        return sum(end - first for first, end in self.done)

    def write(self, at: int, data: bytes) -> None:
        """Put bytes in their place, and note them."""
        with self.lock:
            self.file.seek(at)
            self.file.write(data)
            self.done = merged(self.done, (at, at + len(data)))
            self.unsaved += len(data)
            if self.unsaved >= _SAVE_EVERY:
                self._save()

    def begin_anew(self) -> None:
        """Forget everything."""
        with self.lock:
            self.file.truncate(0)
            self.done = []
            self._save()

    def close(self) -> None:
        """Put everything on the disk, to go on another time."""
        with self.lock:
            if not self.file.closed:
                try:
                    self._save()
                finally:
                    self.file.close()

    def finish(self, target: Path, size: int | None, checksum: str | None) -> str:
        """Check the whole, give it its name, and return its SHA-256. One that is wrong is kept as `<name>.broken`."""
        self.close()
        found, length = _digest(self.path)
        if (size is not None and length != size) or (checksum is not None and found != checksum.lower()):
            broken = target.with_name(f"{target.name}.broken")
            self.path.replace(broken)
            _sidecar(self.path).unlink(missing_ok=True)
            expected = f"{size:,} bytes" if size is not None and length != size else f"SHA-256 {checksum}"
            got = f"{length:,} bytes" if size is not None and length != size else f"SHA-256 {found}"
            raise DownloadError(
                f"{target.name} has {got}, expected {expected}. What came is kept as {broken}. Try again; if that "
                "happens again, the publisher has changed the file, or something on the way to you does."
            )
        self.path.replace(target)
        _sidecar(self.path).unlink(missing_ok=True)
        sync_folder(target.parent)
        return found

    def _save(self) -> None:
        flush(self.file)  # first the bytes, then the note that they are there
        held = {"total": self.total, "tag": self.tag, "done": self.done}
        write_atomically(_sidecar(self.path), json.dumps(held))
        self.unsaved = 0


def _sidecar(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _read_done(part: Path, total: int | None, tag: str) -> list[Range]:
    """The ranges that are on the disk, as far as the file really is that long; none for another version."""
    try:
        held = json.loads(_sidecar(part).read_text(encoding="utf-8"))
        length = part.stat().st_size
        if (held["total"], held["tag"]) != (total, tag):
            return []
        done: list[Range] = []
        for first, end in held["done"]:
            if 0 <= first < end <= length:
                done = merged(done, (int(first), int(end)))
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return done


def _digest(path: Path) -> tuple[str, int]:
    digest, length = sha256(), 0
    with open(path, "rb") as file:
        while chunk := file.read(1 << 22):
            digest.update(chunk)
            length += len(chunk)
    return digest.hexdigest(), length
