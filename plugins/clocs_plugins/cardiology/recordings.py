"""List and read recordings: 16-bit integers, 200 Hz, no header; labels are in files beside them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from clocs_core import DataError, DataNotFound, Drop, Entry, Listing, Record
from clocs_plugins.cardiology.files import ENDING, Files, find_files, open_files
from clocs_plugins.cardiology.rhythms import class_numbers, gives_a_frame, read_rhythms

SAMPLING_RATE = 200.0  # Hz
LARGEST = 10_000_000  # bytes of a recording: 7 hours; the set's recordings have 12,000
LARGEST_LABEL = 1_000_000  # bytes of a label file; the set's files have a few hundred
_RECORDING = re.compile(rf"(?P<patient>[^_]+)_(?P<number>[0-9]{{1,9}}){re.escape(ENDING)}")
# grp0, grp1, grp2 are committees; rev0 to rev5 are single cardiologists, whose files are not used.
_COMMITTEE = re.compile(r"(?P<record>.+)_grp(?P<committee>[0-9]{1,9})\.episodes\.json")


def list_recordings(root: Path, sudden_brady: Literal["drop", "avb"]) -> Listing:
    """List names and sizes of all files and read the committees' label files, but no signal.

    A recording without a labelled frame of the paper's length is dropped here, for every frame length, so that the
    split has the paper's 313 patients.
    """
    files = find_files(root)
    labels = _label_files(files.sizes)
    names = {name: match for name in files.sizes if (match := _RECORDING.fullmatch(name))}
    if not names:
        raise DataNotFound(
            f"Cardiology: no file in the {files.form} is named like a recording, <patient>_<number>{ENDING}; there is "
            f"{', '.join(sorted(files.sizes)[:4]) or 'nothing'}. Set `root=...` to CARDIOL_MAY_2017.zip."
        )
    numbers = class_numbers(sudden_brady)
    found: list[Entry | Drop] = []
    unknown: Counter[str] = Counter()
    for name in sorted(names, key=lambda name: (names[name]["patient"], int(names[name]["number"]), name)):
        label_file = labels.get(name.removesuffix(ENDING))
        found.append(_entry(files, name, names[name]["patient"], label_file, numbers, unknown))
    entries = [one for one in found if isinstance(one, Entry)]
    drops = [one for one in found if isinstance(one, Drop)]
    lost = sum(f"{record}{ENDING}" not in names for record in labels)
    return Listing(entries, drops, files.form, _notes(entries, unknown, lost, len(labels)))


def read_recording(entry: Entry) -> Record:
    """Load one recording. Raise DataError if it is damaged."""
    import numpy as np

    name = f"{entry.record}{ENDING}"
    content = open_files(entry.files[0]).read(name, LARGEST)
    if not content or len(content) % 2:
        raise DataError(f"{name} has {len(content):,} bytes, expected two for each sample. Download it again.")
    samples = np.frombuffer(content, dtype="<i2").astype(np.int16)[None]  # (1, sample)
    return Record(entry.patient, entry.record, ("ECG",), "counts", SAMPLING_RATE, samples, entry.label)


def _label_files(sizes: Mapping[str, int]) -> dict[str, str]:
    """Return the label file of each record, from the committee with the lowest number."""
    matches = [match for name in sizes if (match := _COMMITTEE.fullmatch(name))]
    matches.sort(key=lambda match: (int(match["committee"]), match.string), reverse=True)
    return {match["record"]: match.string for match in matches}  # the last one, of the lowest number, remains


def _entry(
    files: Files,
    name: str,
    patient: str,
    label_file: str | None,
    numbers: Mapping[str, int | None],
    unknown: Counter[str],
) -> Entry | Drop:
    """Return the entry of a recording, or a drop; add names of unknown rhythms to `unknown`."""
    record, size = name.removesuffix(ENDING), files.sizes[name]
    if size == 0 or size % 2:
        return Drop("half a sample" if size else "empty file", record)
    if size > LARGEST:
        return Drop("more than 10 MB", record)
    if label_file is None:
        return Entry(record, patient, None, [files.path(name)])
    try:
        rhythms = read_rhythms(files.read(label_file, LARGEST_LABEL), size // 2, numbers)
    except ValueError:  # a DataError is one too
        return Drop("broken label file", record)
    unknown.update(rhythms.unknown)
    if not gives_a_frame(rhythms.episodes, size // 2):
        return Drop("no labelled frame", record)
    return Entry(record, patient, rhythms.episodes, [files.path(name)])


def _notes(entries: list[Entry], unknown: Counter[str], lost: int, labels: int) -> tuple[str, ...]:
    notes = []
    if unknown:
        names = ", ".join(f"{name[:40]} ({count:,})" for name, count in sorted(unknown.items())[:5])
        notes.append(f"{unknown.total():,} episodes have a rhythm that is not known here and give no label: {names}.")
    if lost:
        notes.append(f"{lost:,} of {labels:,} recordings with a label file are not there.")
    if bare := sum(entry.label is None for entry in entries):
        notes.append(f"{bare:,} recordings have no label file (_grp*.episodes.json) and serve pre-training only.")
    return tuple(notes)
