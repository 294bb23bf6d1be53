"""Read the form of figshare: a table of diagnoses, and a CSV file of 12 columns, in µV at 500 Hz, per recording."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from clocs_core import DataNotFound, Drop, Entry, Listing, Record, open_regular
from clocs_plugins.chapman.diagnostics import find_table, read_rhythms
from clocs_plugins.chapman.leads import LEADS, lead_name
from clocs_plugins.chapman.rhythms import group_of_acronym

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FOLDERS: dict[Literal["denoised", "raw"], str] = {"denoised": "ECGDataDenoised", "raw": "ECGData"}
LARGEST = 64 << 20  # bytes; a recording has half a million, and other tables must not fill the memory


def list_figshare(base: Path, signal: Literal["denoised", "raw"]) -> Listing | None:
    """List the recordings below `base`; None where neither the table nor a folder of signals exists.

    Raises DataNotFound where only one of them exists.
    """
    table = find_table(base)
    folder, note = _signal_folder(base, signal)
    if table is None and folder is None:
        return None
    if folder is None:
        raise DataNotFound(
            f"{base} has {table.name if table else ''}, but no folder ECGDataDenoised/ or ECGData/ with CSV files. "
            "Unpack ECGDataDenoised.zip beside it."
        )
    if table is None:
        raise DataNotFound(f"{base} has {folder.name}/, but no Diagnostics.xlsx or Diagnostics.csv with the rhythms.")
    rhythms = read_rhythms(table)
    files = _csv_files(folder)
    entries, drops = [], []
    for record, file in sorted(files.items()):
        outcome = _label(rhythms.get(record, set()))
        if isinstance(outcome, int):
            entries.append(Entry(record, record, outcome, (file,)))
        else:
            drops.append(Drop(outcome, record))
    absent = len(rhythms.keys() - files.keys())
    notes = [note] if note else []
    if absent:
        notes.append(f"{absent:,} of {len(rhythms):,} recordings listed in {table.name} are not in {folder.name}/.")
    return Listing(entries, drops, f"figshare: {table.name} and CSV files in {folder.name}/", tuple(notes))


def read_csv(entry: Entry) -> Record:
    """Read one recording. Raises ValueError where the file is not a table of 12 leads, and OSError."""
    file = entry.files[0]
    with open_regular(file, LARGEST) as stream:
        text = stream.read()
    try:
        samples, leads = read_leads(text.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as problem:
        raise ValueError(f"{file}: {problem}") from None
    return Record(entry.patient, entry.record, leads, "uV", 500.0, samples, entry.label)


def read_leads(text: bytes) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return the samples (lead, sample) and the leads' names, from the first row if that has names and not numbers.

    Numbers are read by pandas, exactly: 2.6 ms for each of 35 real files of 60,000 numbers, where numpy's own reader
    takes 4.0 ms.
    """
    from clocs_core import read_number_table

    text = text.rstrip()
    first = text[: text.find(b"\n") + 1] or text
    leads: tuple[str, ...] = LEADS
    if not _is_numbers(first):
        leads = tuple(lead_name(cell.decode("utf-8", "replace")) for cell in first.split(b","))
        if sorted(leads) != sorted(LEADS):
            raise ValueError(f"the first row has {', '.join(leads)[:200]}, expected 12 numbers or {', '.join(LEADS)}")
        text = text[len(first) :]
    samples = read_number_table(text, columns=len(LEADS)).T
    if not samples.size:
        raise ValueError("there is no sample, expected 5000 rows of 12")
    if samples.shape[1] != text.count(b"\n") + 1:
        raise ValueError("there is an empty row, expected rows of 12")
    return samples, leads


def _is_numbers(row: bytes) -> bool:
    from clocs_core import read_number_table

    try:
        read_number_table(row)
    except ValueError:
        return False
    return True


def _label(rhythms: set[str]) -> int | str:
    """Return the group, or the reason why there is none."""
    if not rhythms:
        return "not in the table of diagnoses"
    groups = {group_of_acronym(rhythm) for rhythm in rhythms}
    if len(groups) > 1:
        return "several rhythms"
    group = groups.pop()
    return "unmapped label" if group is None else group


def _signal_folder(base: Path, signal: Literal["denoised", "raw"]) -> tuple[Path | None, str]:
    """Return the folder with the CSV files, and a note if it is not the one that was asked for."""
    below = {path.name.lower(): path for path in sorted(base.iterdir()) if path.is_dir()}
    there = {kind: found for kind, name in FOLDERS.items() if (found := _with_files(below.get(name.lower()), name))}
    if signal in there or not there:
        return there.get(signal), ""
    kind, folder = there.popitem()
    return folder, f"{FOLDERS[signal]}/ is not there, so the {kind} recordings of {folder.name}/ are read."


def _with_files(folder: Path | None, name: str) -> Path | None:
    """Return the folder itself, or one of the same name in it, as some programs unpack a zip file."""
    for one in (folder, folder / name) if folder else ():
        if one and one.is_dir() and _csv_files(one):
            return one
    return None


def _csv_files(folder: Path) -> dict[str, Path]:
    with os.scandir(folder) as found:  # 10,646 files: avoids a system call for each
        names = [one.name for one in found if one.name.lower().endswith(".csv") and not one.name.startswith(".")]
    return {name[:-4]: folder / name for name in sorted(names)}
