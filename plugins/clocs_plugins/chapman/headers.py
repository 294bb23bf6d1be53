"""Read the WFDB forms of PhysioNet and of the 2021 challenge: a header with SNOMED codes, and 16-bit counts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from clocs_core import Drop, Entry, Listing, Record, read_header, read_wfdb
from clocs_plugins.chapman.leads import LEADS, lead_name
from clocs_plugins.chapman.rhythms import groups_of_codes

LAST = 10_646  # JS00001 to JS10646 are from Chapman and Shaoxing; later ones are from Ningbo

NUMBERED = re.compile(r"JS([0-9]{5,})")

# Folders that may contain headers, the most specific first; the first one with headers is read.
PLACES = (
    ("WFDBRecords/*/*", "PhysioNet ecg-arrhythmia: WFDBRecords/"),
    ("training/chapman_shaoxing/*", "challenge 2021: training/chapman_shaoxing/"),
    ("chapman_shaoxing/*", "challenge 2021: chapman_shaoxing/"),
    ("g[0-9]*", "challenge 2021: g1/, g2/, …"),
    ("[0-9][0-9]/[0-9][0-9][0-9]", "PhysioNet ecg-arrhythmia: 01/010/, …"),
    (".", "WFDB recordings in one folder"),
)


def list_wfdb(base: Path) -> Listing | None:
    """List the recordings below `base`; None where there are no headers."""
    for place, form in PLACES:
        files = [*base.glob("JS*.hea")] if place == "." else [*base.glob(f"{place}/JS*.hea")]
        ours, others = _divide(files)
        if ours:
            return _list(ours, others, form)
    return None


def read_recording(entry: Entry) -> Record:
    """Read one recording, as counts. Raises ValueError where it does not have the 12 leads, and OSError."""
    found = read_wfdb(entry.files[0])
    leads = tuple(lead_name(name) for name in found.header.channels)
    if sorted(leads) != sorted(LEADS):
        raise ValueError(
            f"record {entry.record} has {len(leads)} channels ({', '.join(leads)[:200]}), expected 12 "
            f"({', '.join(LEADS)})"
        )
    rate = found.header.sampling_rate
    return Record(
        entry.patient, entry.record, leads, found.unit, rate, found.samples, entry.label, found.gain, found.tolerated
    )


def _divide(files: Iterable[Path]) -> tuple[dict[int, Path], int]:
    """Return the headers of Chapman by their number, and the number of headers of Ningbo."""
    ours: dict[int, Path] = {}
    others = 0
    for file in sorted(files):
        found = NUMBERED.fullmatch(file.stem)
        if found and int(found[1]) <= LAST:
            ours.setdefault(int(found[1]), file)
        elif found:
            others += 1
    return ours, others


def _list(ours: dict[int, Path], others: int, form: str) -> Listing:
    entries, drops = [], []
    tolerated: dict[str, list[str]] = {}
    for _, file in sorted(ours.items()):
        record = file.stem
        signal = file.with_suffix(".mat")
        try:
            header = read_header(file)
        except (ValueError, FileNotFoundError):  # what the system cannot read today is no fault of the file
            drops.append(Drop("broken header", record))
            continue
        for fault in header.tolerated:
            tolerated.setdefault(fault, []).append(record)
        groups = groups_of_codes(header.listed("Dx"))
        if not signal.is_file():
            drops.append(Drop("missing file", record))
        elif len(groups) != 1:
            drops.append(Drop("several rhythms" if groups else "no rhythm", record))
        else:
            entries.append(Entry(record, record, groups.pop(), (file, signal)))
    return Listing(entries, drops, form, _notes(others, tolerated, len(ours)))


def _notes(others: int, tolerated: dict[str, list[str]], headers: int) -> tuple[str, ...]:
    notes: tuple[str, ...] = ()
    if others:
        notes += (f"{others:,} recordings above JS{LAST} were ignored: they are of Ningbo, not of Chapman.",)
    for fault, records in sorted(tolerated.items()):
        if len(records) < headers:  # a fault in every header is a convention of the data set
            some = ", ".join(records[:3]) + (", …" if len(records) > 3 else "")
            notes += (f"{len(records):,} of {headers:,} headers have a fault that was tolerated ({some}): {fault}",)
    return notes
