"""Find and read the files, in a folder or inside the downloaded zip file, which is never unpacked."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from struct import error as StructError
from typing import TypeAlias
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import attrs

from clocs_core import DataError, DataNotFound

ZIP = "CARDIOL_MAY_2017.zip"
ENDING = ".ecg"
# Exceptions that zipfile raises for damaged bytes. RuntimeError: encrypted, or packed by an unknown method.
DAMAGE = (BadZipFile, OSError, ValueError, EOFError, RuntimeError, StructError, OverflowError, zlib.error)


def find_files(root: Path) -> Files:
    """Find the data set at `root`: the zip file, a folder with the zip file, or the unpacked folder or its parent."""
    if root.is_file():
        return open_files(root)
    if _has_recordings(root):
        return Folder.of(root)
    below = sorted(root.iterdir()) if root.is_dir() else []
    zips = [path for path in below if path.suffix.lower() == ".zip" and path.is_file()]
    for path in sorted(zips, key=lambda path: path.name != ZIP):
        if path.name == ZIP or _holds_recordings(path):
            return open_files(path)
    for path in below:
        if path.is_dir() and _has_recordings(path):
            return Folder.of(path)
    found = ", ".join(path.name for path in below[:4]) or "nothing"
    raise DataNotFound(
        f"Cardiology was looked for in {root}: {ZIP}, or recordings *{ENDING}, there or one folder below. "
        f"There is {found}{', …' if len(below) > 4 else ''}. Download {ZIP} and set `root=...` to it."
    )


def open_files(path: Path) -> Files:
    """Open the folder of the recording `path`, or the zip file `path`."""
    if path.suffix == ENDING:
        return Folder(path.parent, {path.name: path.stat().st_size})
    facts = path.stat()
    # Each process opens the file itself: two that share it after fork() would move each other's file position.
    return _archive(path, facts.st_size, facts.st_mtime_ns, os.getpid())


@attrs.frozen(eq=False)
class Folder:
    """The files of a folder."""

    folder: Path
    sizes: Mapping[str, int]  # bytes

    @classmethod
    def of(cls, folder: Path) -> Folder:
        """List all files of a folder, except hidden ones."""
        found = (path for path in folder.iterdir() if not path.name.startswith(".") and path.is_file())
        return cls(folder, {path.name: path.stat().st_size for path in found})

    @property
    def form(self) -> str:
        """Form of the data set, to show to the user."""
        return f"unpacked folder {self.folder.name}/"

    def path(self, name: str) -> Path:
        """Return the path of a file."""
        return self.folder / name

    def read(self, name: str, limit: int) -> bytes:
        """Read a file. Raise DataError if it has more than `limit` bytes."""
        _refuse_large(name, self.sizes[name], limit)
        with open(self.folder / name, "rb") as file:
            return file.read(limit)


@attrs.frozen(eq=False)
class Archive:
    """The files inside a zip file."""

    file: Path
    opened: ZipFile
    members: Mapping[str, ZipInfo]
    sizes: Mapping[str, int]  # bytes, unpacked

    @property
    def form(self) -> str:
        """Form of the data set, to show to the user."""
        return f"zip file {self.file.name}, read without unpacking"

    def path(self, _name: str) -> Path:
        """Return the path of the zip file."""
        return self.file

    def read(self, name: str, limit: int) -> bytes:
        """Read a member; unpack at most `limit` bytes, whatever size the zip file claims.

        Raise DataError if it is missing, damaged or larger.
        """
        if name not in self.members:
            raise DataError(f"{self.file.name} has no {name}. Download it again.")
        member = self.members[name]
        _refuse_large(name, member.file_size, limit)
        if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise DataError(f"{name} in {self.file.name} is packed by an unknown method. Download it again.")
        try:
            with self.opened.open(member) as stream:
                content = stream.read(limit)
        except DAMAGE as error:
            _raise_passing(error)
            raise DataError(f"{name} in {self.file.name} is damaged ({error}). Download it again.") from error
        if len(content) != member.file_size:
            raise DataError(
                f"{name} in {self.file.name} has {len(content):,} bytes, expected {member.file_size:,}. "
                "Download it again."
            )
        return content


Files: TypeAlias = Folder | Archive
"""Files by name, without their folder: `sizes`, `path(name)` on disk, and `read(name, limit)`."""


@lru_cache(maxsize=1)  # the table of contents takes 25 ms to read, a recording 0.1 ms
def _archive(path: Path, _size: int, _time: int, _process: int) -> Archive:
    try:
        opened = ZipFile(path)
        members: dict[str, ZipInfo] = {}
        for member in opened.infolist():
            name = PurePosixPath(member.filename).name
            # Finder adds "__MACOSX/._name". If two members share a name, the first counts. In a damaged file a name may
            # be empty; is_dir() of Python 3.11 fails on it.
            if name and not name.startswith(".") and not member.is_dir():
                members.setdefault(name, member)
    except DAMAGE as error:
        _raise_passing(error)
        raise DataError(
            f"{path} is not a whole zip file ({error}), as happens when a download is cut short. "
            f"Cardiology is read from {ZIP} or the folder in it: download it again."
        ) from error
    return Archive(path, opened, members, {name: member.file_size for name, member in members.items()})


def _raise_passing(error: Exception) -> None:
    """Raise again what the system could not do today, such as reading the disk: it is no fault of the zip file."""
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):  # EINVAL: a negative offset in the file
        raise error


def _has_recordings(folder: Path) -> bool:
    return folder.is_dir() and any(path.suffix == ENDING and path.is_file() for path in folder.iterdir())


def _holds_recordings(path: Path) -> bool:
    """Return whether a zip file of another name holds this data set; False if it cannot be opened."""
    try:
        return any(name.endswith(ENDING) for name in open_files(path).sizes)
    except DataError:
        return False


def _refuse_large(name: str, size: int, limit: int) -> None:
    if size > limit:
        raise DataError(f"{name} has {size:,} bytes, expected at most {limit:,}. Download it again.")
