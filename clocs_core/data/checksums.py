"""Checksums of a large file, piece by piece: CRC-32 whenever it is opened, SHA-256 when a user asks for it.

CRC-32 finds every single flipped bit, every burst of up to 32 bits, and any other damage with a probability of
1 - 2**-32; pieces that change places have other sums. It reads 2 to 4 GB a second per core, and zlib computes it
without holding Python's lock, so that several threads check several pieces (benchmarks/verification.py).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import attrs

if TYPE_CHECKING:
    from hashlib import _Hash

_AT_ONCE = 1 << 20  # bytes read at a time: they stay in the processor's cache
_THREADS = 8  # more are limited by the memory


@attrs.frozen
class Piece:
    """The size in bytes and the checksums of a part of a file."""

    size: int
    sha256: str
    crc32: int


@attrs.define
class Summing:
    """The checksums of the bytes that have been written so far."""

    size: int = 0
    crc32: int = 0
    sha256: _Hash = attrs.field(factory=sha256)

    def update(self, data: bytes | memoryview) -> None:
        """Add bytes at the end."""
        self.size += memoryview(data).nbytes
        self.crc32 = crc32(data, self.crc32)
        self.sha256.update(data)

    def piece(self) -> Piece:
        """Return the checksums of all bytes."""
        return Piece(self.size, self.sha256.hexdigest(), self.crc32)


def sum_file(file: Path) -> Piece:
    """Read a whole file and return its checksums."""
    found = Summing()
    with open(file, "rb") as stream:
        while data := stream.read(_AT_ONCE):
            found.update(data)
    return found.piece()


def find_damage(file: Path, pieces: Sequence[Piece], thorough: bool = False) -> str | None:
    """Read a file and describe its first piece with another checksum; None where it is whole.

    thorough: compare SHA-256, at a third of the speed, instead of CRC-32.
    """
    begins = accumulate((piece.size for piece in pieces), initial=0)
    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
        jobs = [pool.submit(_check, file, begin, piece, thorough) for begin, piece in zip(begins, pieces, strict=False)]
        try:
            return next((found for job in jobs if (found := job.result()) is not None), None)
        finally:
            pool.shutdown(cancel_futures=True)


def _check(file: Path, begin: int, piece: Piece, thorough: bool) -> str | None:
    found, digest, left = 0, sha256(), piece.size
    buffer = memoryview(bytearray(min(_AT_ONCE, piece.size)))
    with open(file, "rb", buffering=0) as stream:
        stream.seek(begin)
        while left and (size := stream.readinto(buffer[: min(left, len(buffer))])):
            left -= size
            if thorough:
                digest.update(buffer[:size])
            else:
                found = crc32(buffer[:size], found)
    was, expected = (digest.hexdigest()[:12], piece.sha256[:12]) if thorough else (f"{found:08x}", f"{piece.crc32:08x}")
    if was == expected:
        return None
    return f"{file.name} has checksum {was} from byte {begin:,} to {begin + piece.size:,}, expected {expected}"
