"""Find the folders with recordings of the challenge, in each of its published forms."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import attrs

from clocs_core import DataError, open_regular, read_header

TREE = re.compile(r"A[0-9]{2}")  # folders into which the web site divides training/
SHORTS = 30  # MATLAB 4's mark of a matrix of little-endian 16-bit integers; the number of rows follows


@attrs.frozen
class Place:
    """A folder of recordings: its files by record, their form, and its path below the data folder."""

    folder: Path
    path: str  # with slashes on every system, because it is part of names; "" is the data folder itself
    form: str
    signals: dict[str, Path]
    headers: dict[str, Path]

    @property
    def name(self) -> str:
        """Name of the place in messages."""
        return f"{self.path}/" if self.path else "the data folder"

    @property
    def records(self) -> set[str]:
        """Records that have a file."""
        return self.signals.keys() | self.headers.keys()


def find_places(root: Path) -> list[Place]:
    """Find the folders with recordings, the best first: the root, the training set, any other, the sample set last.

    A folder that appears twice through a link is one place.
    """
    seen: set[tuple[int, int]] = set()
    places = []
    for folder in _candidates(root):
        found = _look_into(folder)
        fresh = {one: files for one, files in found.items() if _identity(one) not in seen}
        seen |= {_identity(one) for one in fresh}
        if fresh:
            places.append(_describe(folder, root, fresh))
    return places


def tell_other_set(place: Place) -> str:
    """Return what shows that recordings are of another set, such as "have 12 leads (A0001)"; empty if nothing does.

    The 2018 and 2020 challenges have files of the same kind with nearly the same names and twelve leads. The check
    reads the first bytes of one signal, or one header.
    """
    if place.signals:
        record = min(place.signals, key=natural)
        start = _start_of(place.signals[record])
        if start.startswith(b"MATLAB 5"):
            return f"are structures of MATLAB 5 ({record})"
        kind, leads = struct.unpack("<2i", start) if len(start) == 8 else (0, 0)
        if kind == SHORTS and leads > 0:
            return f"have {leads} leads ({record})" if leads != 1 else ""
    for record in sorted(place.headers, key=natural)[:1]:
        try:
            leads = len(read_header(place.headers[record]).channels)
        except (DataError, OSError):
            return ""  # the load reports a broken header
        return f"have {leads} leads ({record})" if leads != 1 else ""
    return ""


def natural(record: str) -> tuple[tuple[tuple[int, str], ...], str]:
    """Return a sort key that puts "x2" before "x10"."""
    parts = re.findall(r"[0-9]{1,4000}|[^0-9]+", record)
    return tuple((int(part), "") if "0" <= part[0] <= "9" else (-1, part) for part in parts), record


def _candidates(root: Path) -> list[Path]:
    below = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    below = [path for path in below if not TREE.fullmatch(path.name)]
    known = [root / "training2017", root / "training"]
    last = [root / "validation", root / "sample2017" / "validation", root / "sample2017"]
    folders = dict.fromkeys([root, *known, *(path for path in below if path not in last), *last])
    return [folder for folder in folders if folder.is_dir()]


def _look_into(folder: Path) -> dict[Path, list[Path]]:
    """Return the recordings' files by folder: those of the folder itself or, if it has none, of its A00 folders."""
    if files := _recordings(folder):
        return {folder: files}
    parts = sorted(path for path in folder.iterdir() if path.is_dir() and TREE.fullmatch(path.name))
    return {part: files for part in parts if (files := _recordings(part))}


def _recordings(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix in (".mat", ".hea") and not path.name.startswith(".")]


def _identity(folder: Path) -> tuple[int, int]:
    """Return an identity that is equal for a folder and a link to it, and for two spellings on a case-blind disk."""
    found = folder.stat()
    return found.st_dev, found.st_ino


def _start_of(file: Path) -> bytes:
    try:
        with open_regular(file) as stream:
            return stream.read(8)
    except (DataError, OSError):
        return b""  # the load reports it


def _describe(folder: Path, root: Path, found: dict[Path, list[Path]]) -> Place:
    path = "" if folder == root else folder.relative_to(root).as_posix()
    where = "" if folder in found else "folders of "
    files = [file for part in found.values() for file in part]
    signals, headers = ({file.stem: file for file in files if file.suffix == end} for end in (".mat", ".hea"))
    with_headers = "with" if headers.keys() >= signals.keys() else "some without" if headers else "without"
    place = Place(folder, path, "", signals, headers)
    return attrs.evolve(place, form=f"recordings in {where}{place.name}, {with_headers} headers")
