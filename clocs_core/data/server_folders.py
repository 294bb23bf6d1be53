"""List the files of a folder of recordings on a server, by its RECORDS file, and read lists of checksums."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from urllib.parse import quote, urljoin

import attrs

from clocs_core.contracts.offers import Source
from clocs_core.errors import DataError

RECORDS = "RECORDS"
_SHA256 = re.compile("[0-9a-f]{64}")


def list_folder(folder: Source) -> Source:
    """Return the RECORDS file of a folder as a source to download."""
    return attrs.evolve(folder, file=f"{folder.file}{RECORDS}", address=f"{folder.address}{RECORDS}", endings=())


def recordings_of(folder: Source, records: str) -> list[Source]:
    """Return the files of all recordings that a RECORDS file names. Raises DataError for a name outside the folder.

    A line that ends in a slash names a folder with its own RECORDS file; it is returned as a folder to be listed.
    """
    found: list[Source] = []
    for line in filter(None, map(str.strip, records.splitlines())):
        name = PurePosixPath(line)
        if name.is_absolute() or ".." in name.parts or ":" in line or "\\" in line:
            raise DataError(f"{folder.address}{RECORDS} names {line!r}, which leads out of that folder; not followed.")
        if line.endswith("/"):
            found.append(attrs.evolve(folder, file=folder.file + line, address=folder.address + line))
        else:
            names = (line + end for end in folder.endings)
            found += [Source(folder.file + one, folder.address + one, sums=folder.sums) for one in names]
    return found


def read_sums(sums: str, text: str) -> dict[str, str]:
    """Return the SHA-256 of every file in a list of checksums, by address. `sums` is the address of the list."""
    found = (line.split(maxsplit=1) for line in text.splitlines())
    pairs = ((parts[0].lower(), parts[1].strip().lstrip("*")) for parts in found if len(parts) == 2)
    return {urljoin(sums, quote(path)): digest for digest, path in pairs if _SHA256.fullmatch(digest)}
