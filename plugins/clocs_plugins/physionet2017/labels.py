"""Choose and read the label files of the challenge: several versions, in different folders, with different labels."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import attrs

from clocs_core import DataError, DataNotFound

SYMBOLS = {"N": "Normal", "A": "AF", "O": "Other", "~": "Noisy"}

FILES = {"v3": "REFERENCE-v3.csv", "plain": "REFERENCE.csv", "original": "REFERENCE-original.csv"}
PREFERENCE = {  # if the first is missing, the version nearest in time follows
    "v3": ("v3", "plain", "original"),
    "plain": ("plain", "v3", "original"),
    "original": ("original", "plain", "v3"),
}


@attrs.frozen
class Labels:
    """The symbol of each record in a label file, and notes on the choice of the file."""

    symbol: Mapping[str, str]
    file: Path | None
    notes: tuple[str, ...] = ()


def choose_labels(beside: Path, further: Iterable[Path], records: Iterable[str], wanted: str) -> Labels:
    """Choose a label file: those beside the recordings come first, then those in `further` folders, in order.

    Records are identified only by number, and some copies of this data set are renumbered; then only the label file
    that came with the recordings is right. So a near folder comes before a better version; the version decides within
    a folder. A file in a further folder counts only if it lists one of the records.
    """
    near = _files(beside, wanted)
    far = _that_list(set(records), [file for folder in further for file in _files(folder, wanted)])
    if not near and not far:
        told = f"No label file (REFERENCE-v3.csv, ...) of {beside.name}/ was found: it has no labels."
        return Labels({}, None, (told,))
    chosen = near[0] if near else next(iter(far))
    return Labels(_read(chosen) if near else far[chosen], chosen, _tell(chosen, [*near, *far], wanted))


def read_named(root: Path, name: str) -> Labels:
    """Read the label file that the user names, relative to `root`."""
    file = root / Path(name).expanduser()
    if not file.is_file():
        raise DataNotFound(f"There is no label file {file}; `label_file=...` is relative to {root}.")
    return Labels(_read(file), file, (f"Labels are those of {file}.",))


def _files(folder: Path, wanted: str) -> list[Path]:
    return [file for version in PREFERENCE[wanted] if (file := folder / FILES[version]).is_file()]


def _that_list(records: set[str], files: Iterable[Path]) -> dict[Path, dict[str, str]]:
    """Read the files that list one of the records; skip others that only have the name of a label file."""
    found = {}
    for file in files:
        with suppress(DataError):
            symbol = _read(file)
            if records & symbol.keys():
                found[file] = symbol
    return found


def _read(file: Path) -> dict[str, str]:
    """Read lines of record and symbol, such as "A00001,N"; skip others, such as column names."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        rows = [row for row in csv.reader(text.splitlines()) if len(row) >= 2]
    except (UnicodeDecodeError, csv.Error) as problem:
        raise DataError(f"{file} is not a label file: {problem}. It should have lines such as 'A00001,N'.") from problem
    symbol = {row[0].strip(): row[1].strip() for row in rows if row[0].strip()}
    if not set(symbol.values()) & SYMBOLS.keys():
        raise DataError(f"{file} lists no label. It should have lines such as 'A00001,N'.")
    return symbol


def _tell(chosen: Path, files: list[Path], wanted: str) -> tuple[str, ...]:
    notes = []
    if chosen.name != FILES[wanted]:
        notes.append(f"Labels are those of {chosen.name} in {chosen.parent.name}/, not of {FILES[wanted]}.")
    others = [file for file in files if file.name == FILES[wanted] and file != chosen]
    if others and chosen.name != FILES[wanted]:
        notes.append(
            f"{others[0].name} in {others[0].parent.name}/ is further from the recordings and was not used. If it "
            f"has the same numbering, copy it beside them or use `label_file=...`."
        )
    return tuple(notes)
