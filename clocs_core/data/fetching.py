"""Get the files of a data set: list its folders on the server, download missing files, and unpack archives once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath

import attrs

from clocs_core.contracts.offers import Source
from clocs_core.data.archives import is_archive, unpack
from clocs_core.data.download import Progress, download
from clocs_core.data.server_folders import list_folder, read_sums, recordings_of
from clocs_core.data.transfer import Wanted
from clocs_core.errors import ClocsWarning, DataError, DownloadError
from clocs_core.files import write_atomically

_DEPTH = 4  # levels of nested folders that are followed


@attrs.frozen
class Fetched:
    """The files of a data set: all of them, and those that were newly downloaded."""

    files: tuple[Path, ...]
    new: tuple[Path, ...]

    @property
    def archives(self) -> tuple[Path, ...]:
        """Files that can be unpacked."""
        return tuple(filter(is_archive, self.files))


def fetch(sources: Sequence[Source], folder: Path, progress: Progress, connections: int) -> Fetched:
    """Download the sources of a data set into its folder; folders on the server are read by their RECORDS files.

    Raises DownloadError, and DataError for a name that leads out of the folder or folders nested too deep.
    """
    files = [source for source in sources if not source.endings]
    folders = [source for source in sources if source.endings]
    for _ in range(_DEPTH):
        if not folders:
            once = list(dict.fromkeys(files))  # a list may name a recording twice
            return _fetch_files(_pin(once, folder, progress, connections), folder, progress, connections)
        indices = _pin([list_folder(one) for one in folders], folder, progress, connections)
        lists = _fetch_files(indices, folder, progress, connections).files
        found = [
            source
            for one, path in zip(folders, lists, strict=True)
            for source in recordings_of(one, path.read_text(encoding="utf-8"))
        ]
        files += [source for source in found if not source.endings]
        folders = [source for source in found if source.endings]
    raise DataError(f"The lists of {folders[0].address} go deeper than {_DEPTH} folders; they are not followed.")


def _pin(sources: Sequence[Source], folder: Path, progress: Progress, connections: int) -> list[Source]:
    """Set the SHA-256 of sources that a publisher's list of checksums names, after downloading the list once."""
    known: dict[str, str] = {}
    for sums in dict.fromkeys(source.sums for source in sources if source.sums):
        list_file = folder / f".checksums-{sha256(sums.encode()).hexdigest()[:8]}.txt"  # another version has another
        try:
            download([Wanted(sums, list_file)], progress, connections=connections)
        except DownloadError as problem:
            warnings.warn(f"Files are not checked against their checksums: {problem}", ClocsWarning, stacklevel=2)
        else:
            known |= read_sums(sums, list_file.read_text(encoding="utf-8", errors="replace"))
    return [source if source.sha256 else attrs.evolve(source, sha256=known.get(source.address)) for source in sources]


def _fetch_files(sources: Sequence[Source], folder: Path, progress: Progress, connections: int) -> Fetched:
    wanted = [Wanted(one.address, _place(one, folder), one.size, one.sha256) for one in sources]
    new = download(wanted, progress, connections=connections)
    return Fetched(tuple(one.target for one in wanted), new)


def _place(source: Source, folder: Path) -> Path:
    """Return the target path of a file. Raises DataError for a name that leads out of the folder."""
    path = PurePosixPath(source.file.replace("\\", "/"))
    if path.is_absolute() or not path.parts or ".." in path.parts or ":" in path.parts[0]:
        raise DataError(f"The source {source.file!r} is not the name of a file in the data set's folder.")
    return folder.joinpath(*PurePosixPath(source.file).parts)


def is_unpacked(archive: Path) -> bool:
    """Return whether `unpack_beside` has unpacked this version of the file."""
    mark = _mark(archive)
    return mark.exists() and mark.read_text(encoding="utf-8") == _stamp(archive)


def unpack_beside(archive: Path) -> int:
    """Unpack an archive into its own folder, mark it as unpacked, and return how many files it had."""
    count = unpack(archive, archive.parent)
    write_atomically(_mark(archive), _stamp(archive))
    return count


def _mark(archive: Path) -> Path:
    return archive.with_name(f".{archive.name}.unpacked")


def _stamp(archive: Path) -> str:
    found = archive.stat()
    return f"{found.st_size} {found.st_mtime_ns}"
