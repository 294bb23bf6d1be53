"""Unpack downloaded archives, and trust none of their paths, sizes or links.

An archive is unpacked into a temporary folder beside its target and moved there at the end, so that a kill or a
damaged archive leaves no files behind.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import Any

from clocs_core.data.regular_file import most_unpacked
from clocs_core.errors import DataError

_ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_OPENERS: dict[str, Callable[..., Any]] = {"gz": gzip.open, "tgz": gzip.open, "bz2": bz2.open, "xz": lzma.open}
_MEMBERS = 2_000_000
_LONGEST_READ = 1 << 22  # bytes
_DAMAGED = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, OSError, ValueError, RuntimeError, OverflowError),  # the libraries let these through, too
)

_Members = Generator[tuple[str, int | None, Callable[[str], None]], None, None]
"""Each member's name, its size in bytes (None for a folder), and a function that unpacks it under a safe name."""


class _Refused(Exception):
    """An archive that may be undamaged but is not safe to unpack. The message begins with the verb."""


def is_archive(path: Path) -> bool:
    """Return whether the name of a file is that of an archive."""
    return path.name.lower().endswith(_ENDINGS)


def unpack(archive: Path, target: Path) -> int:
    """Unpack a .zip or .tar(.gz) into the folder `target`, and return how many files it had.

    Files that are in the folder already stay, except those of the same names. Raises DataError, with nothing unpacked,
    for an archive that is damaged, would write outside of the folder, has links, or unpacks to far more than its size.
    """
    room = most_unpacked(archive.stat().st_size)
    read = _zip if archive.name.lower().endswith(".zip") else _tar
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target if target.is_dir() else target.parent  # the target may be a link to another disk
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".unpacking", dir=beside))
    try:
        with closing(read(archive, temporary, room)) as members:
            count = _unpack_all(members, temporary, room)
        temporary.chmod(0o755)  # mkdtemp lets only this user read it
        _move(temporary, target)
        return count
    except _Refused as problem:
        raise DataError(f"{archive} {problem}") from None
    except (FileExistsError, NotADirectoryError) as problem:
        name = Path(problem.filename).name
        raise DataError(f"{archive} has a folder {name!r} in the place of a file; it is not unpacked.") from None
    except _DAMAGED as problem:
        if isinstance(problem, DataError) or (isinstance(problem, OSError) and problem.errno is not None):
            raise  # the fault is in the folder or the disk, not in the archive
        raise DataError(f"{archive} is damaged: {problem}. Delete it and download it again.") from problem
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _unpack_all(members: _Members, folder: Path, room: int) -> int:
    files = 0
    for number, (name, size, unpack_as) in enumerate(members):
        parts = _safe_parts(name)
        place = folder.joinpath(*parts)
        if number >= _MEMBERS:
            raise _Refused(f"has more than {_MEMBERS:,} members; it is not unpacked.")
        if size is None:
            place.mkdir(parents=True, exist_ok=True)
            continue
        if not parts or place.exists():  # some file systems treat "A" and "a" as one name
            raise _Refused(f"has {name!r} twice; it is not unpacked.")
        room -= size  # the libraries write no more than this
        _refuse_bomb(room)
        unpack_as("/".join(parts))
        if place.stat().st_size != size:
            raise EOFError(f"{name} has {place.stat().st_size:,} bytes, expected {size:,}")
        files += 1
    return files


def _safe_parts(name: str) -> tuple[str, ...]:
    """Return the parts of a member's path. Raises _Refused for one that leads out of the folder, on any system."""
    path = PurePosixPath(name.replace("\\", "/"))
    parts = tuple(part for part in path.parts if part != ".")
    evil = (
        path.is_absolute()
        or any(not part.strip(". ") for part in parts)  # "..", and "... ", which Windows shortens
        or any(letter < " " for letter in name)
        or any(":" in part for part in (parts if os.name == "nt" else parts[:1]))  # C:, and NTFS streams
        or any(len(part.encode("utf-8", "surrogateescape")) > 255 for part in parts)
    )
    if evil:
        raise _Refused(f"would write to {name!r}, outside of its folder or under a name that is not safe.")
    return parts


def _refuse_bomb(room: int) -> None:
    if room < 0:
        raise _Refused(
            "unpacks to more than 100 times its size, which no recordings do; it is not unpacked. If you trust it, "
            "unpack it by hand."
        )


def _zip(archive: Path, folder: Path, _room: int) -> _Members:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            if stat.S_ISLNK(info.external_attr >> 16):
                raise _Refused(f"has a link, {info.filename!r}; it is not unpacked.")
            if info.flag_bits & 1:
                raise _Refused("is protected by a password; unpack it by hand.")

            def unpack_as(name: str, info: zipfile.ZipInfo = info) -> None:
                info.filename = name
                opened.extract(info, folder)

            name = info.orig_filename  # the full name: zipfile cuts `filename` at a NUL
            yield name, None if name.endswith("/") else info.file_size, unpack_as


def _tar(archive: Path, folder: Path, room: int) -> _Members:
    opener = _OPENERS.get(archive.name.lower().rpartition(".")[2], open)
    with opener(archive, "rb") as plain, _Metered(plain) as stream:
        stream.room = room
        with tarfile.open(fileobj=stream, mode="r:", errorlevel=2) as opened:
            for info in opened:
                if info.issparse() or not (info.isdir() or info.isreg()):
                    raise _Refused(f"has a link or a device, {info.name!r}; it is not unpacked.")

                def unpack_as(name: str, info: tarfile.TarInfo = info) -> None:
                    opened.extract(info.replace(name=name, deep=False), folder, set_attrs=False, filter="data")

                yield info.name, None if info.isdir() else info.size, unpack_as
        while stream.read(1 << 20):  # gzip's checksum is at the very end
            pass


class _Metered(io.BufferedReader):
    """A stream of at most `room` bytes that refuses long reads: a header in a tar may claim to have gigabytes."""

    room: int

    def read(self, size: int | None = -1, /) -> bytes:
        """Read some bytes."""
        asked = -1 if size is None else size
        if not 0 <= asked <= _LONGEST_READ:
            raise tarfile.ReadError(f"a header of {asked:,} bytes")
        _refuse_bomb(self.room - self.tell())
        return super().read(asked)


def _move(source: Path, target: Path) -> None:
    """Move a folder to `target`; if that exists, move the contents file by file."""
    if not target.exists():
        source.rename(target)
    elif source.is_dir() and target.is_dir():
        for inner in sorted(source.iterdir()):
            _move(inner, target / inner.name)
    elif target.is_dir() and not target.is_symlink():
        raise DataError(f"{target} is a folder, where a file is to be unpacked. Move it away.")
    else:
        source.replace(target)
