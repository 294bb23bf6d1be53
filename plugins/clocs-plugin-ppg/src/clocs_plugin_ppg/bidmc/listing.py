"""List the recordings of BIDMC from their headers, and from the vital signs if a task needs them; read no waveform."""

from __future__ import annotations

import re
from pathlib import Path

from clocs_core import DataError, DataNotFound, Drop, Entry, Header, Label, Listing, read_header

from clocs_plugin_ppg.bidmc.numerics import episodes_of, plain_name, read_numerics

_SEX = re.compile(r"(?:sex|gender)\W+(female|male|f|m)\b", re.IGNORECASE)
NEEDED = ("II", "PLETH")  # channels of all published recordings


def list_recordings(root: Path, task: str, breaths: tuple[int, int]) -> Listing:
    """List the recordings; each is one patient, as published: 53 recordings of 53 people."""
    headers = sorted(root.rglob("bidmc[0-9][0-9].hea")) if root.is_dir() else []
    if not headers:
        raise DataNotFound(
            f"BIDMC was looked for in {root}, and in all folders below, by headers such as bidmc01.hea. There is none. "
            "`clocs data download bidmc` downloads them, or set `root=...` to the folder that has them."
        )
    named = {path.stem: path for path in reversed(headers)}  # the first of two with one name
    found = [_entry(named[name], task, breaths) for name in sorted(named)]
    entries = [one for one in found if isinstance(one, Entry)]
    drops = [one for one in found if isinstance(one, Drop)]
    bare = sum(entry.label is None or entry.label == () for entry in entries)
    notes = (f"{bare:,} recordings have no label for this task and serve pre-training only.",) if bare else ()
    return Listing(entries, drops, f"{len(named):,} WFDB recordings", notes)


def sex_of(header: Header) -> int | None:
    """Return 0 for female, 1 for male, None if no comment says it. `<sex>: F` and `Gender: F` both occur."""
    found = _SEX.search("\n".join(header.comments))
    return None if found is None else int(found[1].lower().startswith("m"))


def _entry(path: Path, task: str, breaths: tuple[int, int]) -> Entry | Drop:
    files = [path, path.with_suffix(".dat")]
    if not files[1].is_file():
        return Drop("missing file", path.stem)
    try:
        header = read_header(path)
    except DataError:
        return Drop("damaged header", path.stem)
    if missing := [name for name in NEEDED if name not in map(plain_name, header.channels)]:
        return Drop(f"no {missing[0]}", path.stem)
    numerics = [path.with_name(f"{path.stem}n{ending}") for ending in (".hea", ".dat")]
    if all(file.is_file() for file in numerics):
        files += numerics
    label = sex_of(header) if task == "sex" else _breathing(files, header, breaths)
    return Entry(path.stem, path.stem, label, files)


def _breathing(files: list[Path], header: Header, breaths: tuple[int, int]) -> Label:
    if len(files) < 4:
        return None
    try:
        each, values = read_numerics(files[2])
    except (DataError, FileNotFoundError):  # what the system cannot read today is no fault of the file
        return None
    samples = files[1].stat().st_size // (2 * len(header.signals))  # 16-bit integers; the last second has one sample
    return episodes_of(values["RR"], each, samples, header.sampling_rate, breaths) if "RR" in values else None
