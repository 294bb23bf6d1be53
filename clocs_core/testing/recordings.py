"""Rules for recordings: a scan finds them without reading a signal, a load reads them, the same every time."""

from __future__ import annotations

import pickle
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from clocs_core.data.records import Entry, Listing, Record, Task
from clocs_core.data.shards import MICROVOLTS
from clocs_core.extend.offers import Dataset
from clocs_core.testing.checks import expect
from clocs_core.testing.isolated import run_isolated
from clocs_core.testing.labels import fault_of

__all__ = ["RULES", "DatasetCase"]

FEW = 3  # recordings of each task that are loaded


@attrs.define(slots=False, eq=False)
class DatasetCase:
    """A data set, where its files are, and what was found there, scanned and loaded once."""

    offer: Dataset
    root: Path
    options: Any

    def scan(self, task: Task) -> Listing:
        """The listing for a task, made anew."""
        return self.offer.scan(self.root, task, self.options)

    @cached_property
    def listings(self) -> list[tuple[Task, Listing]]:
        """The listing of every task."""
        return [(task, self.scan(task)) for task in self.offer.tasks]

    @cached_property
    def some(self) -> list[tuple[Entry, Record]]:
        """The recordings that are looked at, with their entries: those of the first task come first."""
        entries = [entry for _, listing in self.listings for entry in _pick(listing)]
        return [(entry, self.offer.load(entry, self.options)) for entry in entries]

    @cached_property
    def elsewhere(self) -> dict[str, Any]:
        """What the first task's scan and load do in a fresh process."""
        task, listing = self.listings[0]
        sent = pickle.dumps((self.offer, task, self.root, self.options, _pick(listing)))
        told: dict[str, Any] = run_isolated("dataset", sent)
        advice = "Functions and options must be importable there: define them at the top of an importable module."
        expect(not told["error"], "scan and load to work in a fresh process", told["error"], advice)
        return told


# ---------------------------------------------------------------------------------------------------- what is found


def _scan_lists(case: DatasetCase) -> None:
    """A scan gives a Listing with an entry or more, and a reason for every drop."""
    for task, listing in case.listings:
        expect(isinstance(listing, Listing), "a Listing", type(listing).__name__, "Return clocs_core.Listing(...).")
        found = f"none for task {task.name!r}, and {len(listing.drops)} drops"
        expect(len(listing.entries) > 0, "an entry or more", found, "Give the kit a root that holds recordings.")
        silent = [drop.record for drop in listing.drops if not drop.reason.strip()]
        expect(not silent, "a reason for every drop", f"none for {', '.join(silent[:3])}", "Say why it is left out.")


def _scan_repeats(case: DatasetCase) -> None:
    """Two scans of the same files are equal, in the same order."""
    for task, listing in case.listings:
        expect(case.scan(task) == listing, "an equal Listing", "another", "Sort what the file system returns.")


def _scan_elsewhere(case: DatasetCase) -> None:
    """A scan in another process is equal too: no order of a set, no clock, no process id."""
    same = case.elsewhere["listing"] == case.listings[0][1]
    expect(same, "the Listing of this process", "another", "Sort sets before you go through them; draw nothing.")


def _scan_reads_no_signal(case: DatasetCase) -> None:
    """A scan leaves signals unread: it opens not all files of an entry, or reads less than half of their bytes.

    Bytes are counted where the system says them. Files that several entries share are not looked at: labels may be
    in them, and small ones are read whole by any buffer. Nor is a file seen that a library in C opens by itself.
    """
    told, entries = case.elsewhere, case.listings[0][1].entries
    owners = Counter(path for entry in entries for path in entry.files)
    alone = [entry.files for entry in entries if entry.files and all(owners[path] == 1 for path in entry.files)]
    opened = [files for files in alone if all(str(path.resolve()) in told["opened"] for path in files)]
    size = sum(path.stat().st_size for files in opened for path in files)
    much = told["bytes_read"] is None or 2 * told["bytes_read"] >= size
    found = (
        f"{len(opened)} of {len(alone)} opened in full, such as {', '.join(path.name for path in (opened or [()])[0])}"
    )
    advice = "Take labels and ids from headers and tables; read signals in load."
    expect(not (opened and much), "recordings whose signal is not read by the scan", found, advice)


def _record_ids(case: DatasetCase) -> None:
    """Every record has an id of its own."""
    for _, listing in case.listings:
        count = Counter(entry.record for entry in listing.entries)
        twice = [record for record, times in count.items() if times > 1 or not record]
        expect(
            not twice,
            "an id for each record",
            f"{', '.join(twice[:3]) or 'an empty one'} more than once",
            "Make ids unique.",
        )


def _patient_ids(case: DatasetCase) -> None:
    """Every entry has a patient, as text: splits are made by patient."""
    for _, listing in case.listings:
        bad = [one.record for one in listing.entries if not isinstance(one.patient, str) or not one.patient.strip()]
        advice = "Give every recording its patient's id; where it is unknown, the record's own id."
        expect(not bad, "a patient id for each entry", f"none for {', '.join(bad[:3])}", advice)


def _files(case: DatasetCase) -> None:
    """Entries name the files that a load will read, and they exist; those of an embedded data set name none."""
    for _, listing in case.listings:
        for entry in listing.entries:
            missing = [path for path in entry.files if not path.is_file()]
            found = f"{missing[0]} of {entry.record}" if missing else ""
            expect(not missing, "files that exist", found, "Name files below the root, with their endings.")
            named = bool(entry.files) != case.offer.embedded
            advice = "Prepared frames are made anew when these files change; set embedded=True where there are none."
            expect(named, "files, unless embedded", f"{len(entry.files)} for {entry.record}", advice)


def _labels(case: DatasetCase) -> None:
    """Labels are of their task: a class, a set of classes (any_of), episodes in order (per frame), or None."""
    for task, listing in case.listings:
        for entry in listing.entries:
            problem = fault_of(entry.label, task)
            found = f"{entry.label!r} for record {entry.record}: {problem}"
            expect(
                not problem, f"a label of task {task.name!r}", found, "Number the classes from 0, as Task lists them."
            )


# ---------------------------------------------------------------------------------------------------- what is loaded


def _load_agrees(case: DatasetCase) -> None:
    """A record has the ids and the label of its entry, and its episodes lie within its samples."""
    for entry, record in case.some:
        expect(isinstance(record, Record), "a Record", type(record).__name__, "Return clocs_core.Record(...).")
        expected, found = ((one.patient, one.record, one.label) for one in (entry, record))
        expect(found == expected, f"patient, record and label {expected}", found, "Hand them on from the entry.")
        if isinstance(record.label, tuple):
            last, samples = max((one.offset for one in record.label), default=0), record.samples.shape[1]
            advice = "Count samples of the source, from 0, the last included."
            expect(last < samples, f"episodes within {samples} samples", f"one to {last}", advice)


def _load_channels(case: DatasetCase) -> None:
    """A record has the channels that the data set declares, in any order; all records have the same."""
    declared = set(case.offer.channels) or set(case.some[0][1].channels)
    for entry, record in case.some:
        same = set(record.channels) == declared and len(record.channels) == len(declared)
        advice = "Name the channels as Dataset.channels does; leave it empty where only the files know."
        expect(same, f"channels {sorted(declared)}", f"{sorted(record.channels)} in {entry.record}", advice)


def _load_unit(case: DatasetCase) -> None:
    """Records have one unit, or voltages that can be converted to one."""
    units = {record.unit for _, record in case.some}
    fits = all(isinstance(unit, str) for unit in units) and (len(units) == 1 or units <= MICROVOLTS.keys())
    expect(fits, "one unit, as text", units, f"Convert in load; only {', '.join(MICROVOLTS)} may be mixed.")


def _load_samples(case: DatasetCase) -> None:
    """Samples are floats or integers, one or more per channel, at a finite sampling rate."""
    for entry, record in case.some:
        kind = record.samples.dtype
        number = np.issubdtype(kind, np.floating) or np.issubdtype(kind, np.integer)
        expect(bool(number), "samples of floats or integers", f"{kind} in {entry.record}", "Convert them in load.")
        expect(record.samples.shape[1] > 0, "samples", f"none in {entry.record}", "Drop empty recordings in scan.")
        finite = bool(np.isfinite(record.sampling_rate)) and record.sampling_rate > 0
        expect(finite, "a finite rate in Hz", f"{record.sampling_rate} in {entry.record}", "Read it from the header.")


def _load_repeats(case: DatasetCase) -> None:
    """Loading twice gives the same record."""
    for entry, record in case.some:
        same = _facts(case.offer.load(entry, case.options)) == _facts(record)
        expect(same, f"the same {entry.record} twice", "two different ones", "Seed what is drawn by the record's id.")


def _load_elsewhere(case: DatasetCase) -> None:
    """A load in another process gives the same record."""
    here = [_facts(record) for _, record in case.some[: len(case.elsewhere["records"])]]
    there = [(*facts, str(samples.dtype), samples.tobytes()) for *facts, samples in case.elsewhere["records"]]
    same = here == there
    expect(same, "the records of this process", "others", "Seed by the record's id, not by hash() or the process.")


def _load_without_torch(case: DatasetCase) -> None:
    """Scanning and loading import no torch: they run in many worker processes."""
    found = "torch imported"
    expect(
        not case.elsewhere["torch"], "a worker without torch", found, "Read with numpy; keep torch out of this module."
    )


def _pick(listing: Listing) -> list[Entry]:
    """The first entries and the last."""
    return [*listing.entries[: FEW - 1], *listing.entries[FEW - 1 :][-1:]]


def _facts(record: Record) -> tuple[object, ...]:
    facts = (record.patient, record.record, record.channels, record.unit, record.sampling_rate, record.label)
    return (*facts, str(record.samples.dtype), record.samples.tobytes())


RULES = (
    _scan_lists,
    _scan_repeats,
    _scan_elsewhere,
    _scan_reads_no_signal,
    _record_ids,
    _patient_ids,
    _files,
    _labels,
    _load_agrees,
    _load_channels,
    _load_unit,
    _load_samples,
    _load_repeats,
    _load_elsewhere,
    _load_without_torch,
)
