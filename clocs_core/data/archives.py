"""Unpacks what was downloaded, trusting nothing that an archive says: not its paths, not its sizes, not its links.

Everything is unpacked beside its place and moved there at the end, so that a kill or a damaged archive leaves nothing.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Generator
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import IO, cast

import attrs

from clocs_core.errors import DataError

_ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_RATIO = 100  # signals shrink to a tenth, text of signals to a fortieth; bombs to a thousandth
_HARMLESS = 1 << 28  # bytes that may come out of any archive, however small
_MEMBERS = 2_000_000
_LONGEST_HEADER = 1 << 22  # bytes
_DAMAGED = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, OSError, ValueError, RuntimeError, OverflowError),  # the libraries let these through, too
)


@attrs.frozen
class _Member:
    """A file or a folder of an archive. `file` is None for a folder."""

    name: str
    file: IO[bytes] | None
    size: int


def is_archive(path: Path) -> bool:
    """Whether a file can be unpacked, by its name."""
    return path.name.lower().endswith(_ENDINGS)


def unpack(archive: Path, target: Path) -> int:
    """Unpack a .zip or .tar(.gz) into the folder `target`, and return how many files it had.

    What is in the folder already stays, except for files of the same names. Raises DataError, with nothing unpacked,
    for an archive that is damaged, would write outside of the folder, has links, or is far larger than it looks.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target if target.is_dir() else target.parent  # the folder itself may be a link to another disk
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".unpacking", dir=beside))
    try:
        count = _unpack_all(archive, temporary)
        temporary.chmod(0o755)  # mkdtemp keeps it to ourselves
        _move(temporary, target)
        return count
    except DataError:
        raise
    except _DAMAGED as problem:
        if isinstance(problem, OSError) and problem.errno is not None:  # the disk, not the archive
            raise
        raise DataError(f"{archive} is damaged: {problem}. Delete it and download it again.") from problem
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _unpack_all(archive: Path, folder: Path) -> int:
    packed = archive.stat().st_size
    room = max(_HARMLESS, _RATIO * packed)
    files = 0
    with closing(_zip(archive) if archive.name.lower().endswith(".zip") else _tar(archive, room)) as members:
        for member in members:
            parts = _safe_parts(member.name, archive)
            place = folder.joinpath(*parts)
            if member.file is None:  # of a tar's "./" nothing is left, which is the folder itself
                _make_folder(place, archive)
                continue
            _make_folder(place.parent, archive)
            if not parts or place.exists() or files >= _MEMBERS:  # a disk may take "A" and "a" for one
                raise DataError(f"{archive} has {member.name!r} twice, or too many files; it is not unpacked.")
            room -= _copy(member, place, room, archive)
            files += 1
    return files


def _safe_parts(name: str, archive: Path) -> tuple[str, ...]:
    """The parts of a member's path. Raises DataError for one that leads out of the folder, on any system."""
    path = PurePosixPath(name.replace("\\", "/"))
    parts = tuple(part for part in path.parts if part != ".")
    evil = (
        path.is_absolute()
        or any(not part.strip(". ") for part in parts)  # "..", and what Windows makes of "... "
        or any(letter < " " for letter in name)
        or any(":" in part for part in (parts if os.name == "nt" else parts[:1]))  # C:, and streams of NTFS
        or any(len(part.encode("utf-8", "surrogateescape")) > 255 for part in parts)
    )
    if evil:
        raise DataError(f"{archive} would write to {name!r}, outside of its folder or under a name that is not safe.")
    return parts


def _make_folder(place: Path, archive: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise DataError(f"{archive} has {place.name!r} both as a file and as a folder; it is not unpacked.") from None


def _copy(member: _Member, place: Path, room: int, archive: Path) -> int:
    """Copy a member's bytes, as many as there really are. Returns how many."""
    assert member.file is not None
    written = 0
    if member.size > room:
        raise _bomb(archive)
    with member.file as source, open(place, "wb") as out:
        while chunk := source.read(1 << 20):
            written += len(chunk)
            if written > room:
                raise _bomb(archive)
            out.write(chunk)
    if written != member.size:
        raise EOFError(f"{member.name} has {written:,} bytes, expected {member.size:,}")
    return written


def _bomb(archive: Path) -> DataError:
    return DataError(
        f"{archive} unpacks to more than {_RATIO} times its size, which no recordings do; it is not unpacked. If you "
        "trust it, unpack it by hand."
    )


def _zip(archive: Path) -> Generator[_Member, None, None]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            if stat.S_ISLNK(info.external_attr >> 16):
                raise DataError(f"{archive} has a link, {info.filename!r}; it is not unpacked.")
            if info.flag_bits & 1:
                raise DataError(f"{archive} is protected by a password; unpack it by hand.")
            name = info.orig_filename  # as it stands there: zipfile cuts it at a NUL
            yield _Member(name, None if name.endswith("/") else opened.open(info), info.file_size)


def _tar(archive: Path, room: int) -> Generator[_Member, None, None]:
    with _open_stream(archive) as stream:
        meter = _Meter(stream, room, archive)
        with tarfile.open(fileobj=meter, mode="r:", errorlevel=2) as opened:  # type: ignore[call-overload]  # reads, seeks
            for info in opened:
                if info.isdir():
                    yield _Member(info.name, None, 0)
                elif info.isreg() and not info.issparse():
                    yield _Member(info.name, opened.extractfile(info), info.size)
                else:
                    raise DataError(f"{archive} has a link or a device, {info.name!r}; it is not unpacked.")
        while meter.read(1 << 20):  # the checksum of gzip stands at the very end
            pass


def _open_stream(archive: Path) -> IO[bytes]:
    name = archive.name.lower()
    if name.endswith(("gz", "tgz")):
        return cast(IO[bytes], gzip.open(archive))
    if name.endswith("bz2"):
        return cast(IO[bytes], bz2.open(archive))
    return cast(IO[bytes], lzma.open(archive)) if name.endswith("xz") else open(archive, "rb")


@attrs.frozen(eq=False)
class _Meter:
    """A stream that gives no more than a number of bytes, and little at a time: names in a tar may claim gigabytes."""

    stream: IO[bytes]
    room: int
    archive: Path

    def read(self, size: int = -1) -> bytes:
        """Some bytes."""
        if not 0 <= size <= _LONGEST_HEADER:
            raise tarfile.ReadError(f"a header of {size:,} bytes")
        if self.stream.tell() > self.room:
            raise _bomb(self.archive)
        return self.stream.read(size)

    def seek(self, place: int) -> int:
        """Go to a place."""
        if place > self.room:
            raise _bomb(self.archive)
        return self.stream.seek(place)

    def tell(self) -> int:
        """Where it stands."""
        return self.stream.tell()


def _move(source: Path, target: Path) -> None:
    """Move a folder to its place; where a folder is there already, what is in it, file by file."""
    if not target.exists():
        source.rename(target)
        return
    if not target.is_dir() or not source.is_dir():
        if target.is_dir() and not target.is_symlink():
            raise DataError(f"{target} is a folder, where a file is to be unpacked. Move it away.")
        source.replace(target)
        return
    for inner in sorted(source.iterdir()):
        _move(inner, target / inner.name)
