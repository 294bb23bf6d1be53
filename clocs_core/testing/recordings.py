"""Rules for scans: a scan lists every recording once, with its patient and label, and reads no signal."""

from __future__ import annotations

import math
import pickle
import re
import unittest
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs

from clocs_core.contracts.kinds import fault_of_label
from clocs_core.contracts.offers import Dataset
from clocs_core.contracts.records import Column, Entry, Listing, Record, Task
from clocs_core.testing.checks import expect
from clocs_core.testing.isolated import run_isolated
from clocs_core.testing.pace import Clock

FEW = 3  # recordings of each task to load


@attrs.define(slots=False, eq=False)
class DatasetCase:
    """A data set with the folder of its files; scans and loads run once and are kept."""

    offer: Dataset
    root: Path
    options: Any
    clock: Clock

    def scan(self, task: Task) -> Listing:
        """Scan for a task anew."""
        return self.offer.scan(self.root, task, self.options)

    @cached_property
    def scans(self) -> list[tuple[Task, object]]:
        """Results of a scan for every task, of any type."""
        return [(task, self.scan(task)) for task in self.offer.tasks]

    @cached_property
    def listings(self) -> list[tuple[Task, Listing]]:
        """Listings of every task."""
        found = [(task, listing) for task, listing in self.scans if isinstance(listing, Listing)]
        if len(found) < len(self.scans):  # the rule `scan-lists` reports it
            raise unittest.SkipTest("a scan gives no Listing, so there is nothing to look at")
        return found

    @cached_property
    def listed_again(self) -> list[Listing]:
        """Listings of every task from a second scan."""
        return [self.scan(task) for task, _ in self.listings]

    @cached_property
    def some(self) -> list[tuple[Entry, Record]]:
        """The recordings to check, with their entries; those of the first task come first."""
        entries = [entry for _, listing in self.listings for entry in pick_some(listing)]
        return [(entry, self.offer.load(entry, self.options)) for entry in entries]

    @cached_property
    def loaded_again(self) -> list[Record]:
        """The same recordings, loaded a second time."""
        return [self.offer.load(entry, self.options) for entry, _ in self.some]

    @cached_property
    def elsewhere(self) -> dict[str, Any]:
        """Report on the first task's scan and loads in a fresh process."""
        task, listing = self.listings[0]
        sent = pickle.dumps((self.offer, task, self.root, self.options, pick_some(listing)))
        told: dict[str, Any] = run_isolated("dataset", sent)
        advice = "Functions and options must be importable there: define them at the top of an importable module."
        expect(not told["error"], "scan and load to work in a fresh process", told["error"], advice)
        return told


# ------------------------------------------------------------------------------------------------------------ rules


def _scan_lists(case: DatasetCase) -> None:
    """A scan returns a Listing with at least one entry, and a reason for every drop."""
    for _, found in case.scans:
        expect(isinstance(found, Listing), "a Listing", type(found).__name__, "Return clocs_core.Listing(...).")
    for task, listing in case.listings:
        found = f"none for task {task.name!r}, and {len(listing.drops)} drops"
        expect(len(listing.entries) > 0, "an entry or more", found, "Give the kit a root that holds recordings.")
        silent = [drop.record for drop in listing.drops if not drop.reason.strip()]
        expect(not silent, "a reason for every drop", f"none for {', '.join(silent[:3])}", "Say why it is left out.")


def _scan_repeats(case: DatasetCase) -> None:
    """Two scans of the same files are equal, in the same order."""
    for (_, first), second in zip(case.listings, case.listed_again, strict=True):
        expect(second == first, "an equal Listing", "another", "Sort what the file system returns.")


def _scan_elsewhere(case: DatasetCase) -> None:
    """A scan in another process is equal too: it uses no order of a set, no clock, no process id."""
    listing = case.listings[0][1]
    if case.listed_again[0] != listing:  # the rule `scan-repeats` reports it
        raise unittest.SkipTest("two scans differ here already")
    same = case.elsewhere["listing"] == listing
    expect(same, "the Listing of this process", "another", "Sort sets before iterating; draw no random numbers.")


def _scan_reads_no_signal(case: DatasetCase) -> None:
    """A scan reads no signals: it does not open all files of an entry, or reads less than half of their bytes.

    Bytes are counted if the system reports them. Files that several entries share do not count: they may hold labels,
    and a buffer reads small ones whole. Files that a C library opens are not seen.
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
    """Every record has a unique id."""
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


def _about(case: DatasetCase) -> None:
    """Values in `about` are of declared columns: numbers that are finite, names of classes, or texts."""
    for _, listing in case.listings:
        known = {column.name: column for column in listing.columns or case.offer.columns}
        for entry in listing.entries:
            for name, value in entry.about.items():
                expect(name in known, f"columns {', '.join(known) or 'none'}", f"{name!r}", "Declare it in `columns`.")
                fits = value is None or _fits(known[name], value)
                found = f"{value!r} of {entry.record}"
                expect(fits, f"a {known[name].kind} in {name!r}", found, "Use None where it is missing.")


def _fits(column: Column, value: object) -> bool:
    if column.kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, str) and (column.kind == "text" or value in column.classes)


def _patient_form(case: DatasetCase) -> None:
    """No two patient ids differ only in case, outer spaces, leading zeros or a trailing `.0`."""
    for _, listing in case.listings:
        forms: dict[str, str] = {}
        for entry in listing.entries:
            known = forms.setdefault(_plain_id(entry.patient), entry.patient)
            found = f"{known!r} and {entry.patient!r}"
            advice = "Write every patient's id in one form; otherwise one person is on both sides of a split."
            expect(known == entry.patient, "one form of a patient's id", found, advice)


def _same_patients(case: DatasetCase) -> None:
    """A record has the same patient in every task."""
    known: dict[str, set[str]] = {}
    for task, listing in case.listings:
        mine: dict[str, set[str]] = {}
        for entry in listing.entries:
            mine.setdefault(entry.record, set()).add(entry.patient)
        for record, patients in mine.items():
            asked = f"patient {' and '.join(sorted(known.setdefault(record, patients)))!r} for record {record}"
            found = f"{' and '.join(sorted(patients))!r} in task {task.name!r}"
            advice = "Splits are made by patient: what one task trains on, another must not test on."
            expect(known[record] == patients, asked, found, advice)


def _files(case: DatasetCase) -> None:
    """Entries name the files that a load reads, and the files exist; entries of an embedded data set name none."""
    for _, listing in case.listings:
        for entry in listing.entries:
            missing = [path for path in entry.files if not path.is_file()]
            found = f"{missing[0]} of {entry.record}" if missing else ""
            expect(not missing, "files that exist", found, "Name files below the root, with their endings.")
            named = bool(entry.files) != case.offer.embedded
            advice = "Prepared frames are made anew when these files change; set embedded=True where there are none."
            expect(named, "files, unless embedded", f"{len(entry.files)} for {entry.record}", advice)


def _labels(case: DatasetCase) -> None:
    """Labels fit their task: a class, a set of classes (any_of), a number, episodes of these (per frame), or None."""
    for task, listing in case.listings:
        for entry in listing.entries:
            problem = fault_of_label(entry.label, task)
            found = f"{entry.label!r} for record {entry.record}: {problem}"
            expect(
                not problem, f"a label of task {task.name!r}", found, "Number the classes from 0, as Task lists them."
            )


def _plain_id(patient: object) -> str:
    text = str(patient).strip().casefold()
    number = re.fullmatch(r"0*(\d+)(\.0+)?", text)
    return number[1] if number else text


def pick_some(listing: Listing) -> list[Entry]:
    """Return the first entries and the last one."""
    return [*listing.entries[: FEW - 1], *listing.entries[FEW - 1 :][-1:]]
