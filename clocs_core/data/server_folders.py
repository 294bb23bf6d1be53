"""List the files of a folder of recordings on a server, by the RECORDS file in every such folder."""

from __future__ import annotations

from pathlib import PurePosixPath

import attrs

from clocs_core.contracts.offers import Source
from clocs_core.errors import DataError

RECORDS = "RECORDS"


def list_folder(folder: Source) -> Source:
    """Return the RECORDS file of a folder as a source to download."""
    return Source(f"{folder.file}{RECORDS}", f"{folder.address}{RECORDS}")


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
            found += [Source(folder.file + line + end, folder.address + line + end) for end in folder.endings]
    return found
