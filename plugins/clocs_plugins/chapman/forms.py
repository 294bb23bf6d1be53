"""Find out which of the published forms a folder contains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from clocs_core import DataNotFound, Entry, Listing, Record
from clocs_plugins.chapman.figshare import list_figshare, read_csv
from clocs_plugins.chapman.headers import list_wfdb, read_recording


def list_recordings(root: Path, signal: Literal["denoised", "raw"]) -> Listing:
    """List the recordings in `root` or a folder below it. Raises DataNotFound where there are none."""
    half: DataNotFound | None = None
    for base in _bases(root):
        try:
            listing = list_figshare(base, signal)
        except DataNotFound as problem:  # the table or the signals are missing; another form may be whole
            half, listing = half or problem, None
        if listing := listing or list_wfdb(base):
            return listing
    raise half or DataNotFound(_nothing_found(root))


def read_any(entry: Entry) -> Record:
    """Read a recording of any form."""
    return read_csv(entry) if entry.files[0].suffix.lower() == ".csv" else read_recording(entry)


def _bases(root: Path) -> Iterator[Path]:
    """Yield the root, the folders in it, and the folder where `wget -r` puts files of PhysioNet."""
    if root.is_dir():
        yield root
        yield from sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
        yield from sorted(path for path in root.glob("physionet.org/files/*/*") if path.is_dir())


def _nothing_found(root: Path) -> str:
    names = sorted(path.name for path in root.iterdir()) if root.is_dir() else []
    found = ", ".join(names[:5]) + (", …" if len(names) > 5 else "") if names else "nothing"
    zips = [name for name in names if name.lower().endswith(".zip")]
    advice = f"Unpack {zips[0]} there" if zips else "Point `root=PATH` at the folder that was downloaded and unpacked"
    return (
        f"No Chapman recordings in {root}: looked for Diagnostics.xlsx with ECGDataDenoised/, for WFDBRecords/, and "
        f"for headers JS00001.hea to JS10646.hea; found {found}. {advice}."
    )
