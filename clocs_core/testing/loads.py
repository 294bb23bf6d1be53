"""Rules for loading: a load reads one recording as it was listed, the same every time, and nothing else."""

from __future__ import annotations

import unittest

import numpy as np

from clocs_core.contracts.records import Record
from clocs_core.contracts.units import MICROVOLTS
from clocs_core.testing.checks import expect
from clocs_core.testing.pace import expect_quick
from clocs_core.testing.recordings import DatasetCase, pick_some


def _load_agrees(case: DatasetCase) -> None:
    """A record has the ids and the label of its entry, and its episodes lie within its samples."""
    for entry, record in case.some:
        expect(isinstance(record, Record), "a Record", type(record).__name__, "Return clocs_core.Record(...).")
        expected, found = ((one.patient, one.record, one.label) for one in (entry, record))
        expect(found == expected, f"patient, record and label {expected}", found, "Copy them from the entry.")
        samples = record.samples.shape[1]
        if isinstance(record.label, tuple) and samples > 0:  # the rule `load-samples` reports empty records
            last = max((one.offset for one in record.label), default=0)
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
    """All records have the same unit, or units of voltage that convert into each other."""
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
    for (entry, first), second in zip(case.some, case.loaded_again, strict=True):
        same = _facts(second) == _facts(first)
        expect(same, f"the same {entry.record} twice", "two different ones", "Seed random numbers by the record's id.")


def _load_elsewhere(case: DatasetCase) -> None:
    """A load in another process gives the same record."""
    count = len(case.elsewhere["records"])
    here = [_facts(record) for _, record in case.some[:count]]
    if here != [_facts(record) for record in case.loaded_again[:count]]:  # the rule `load-repeats` reports it
        raise unittest.SkipTest("two loads differ here already")
    there = [(*facts, str(samples.dtype), samples.tobytes()) for *facts, samples in case.elsewhere["records"]]
    same = here == there
    expect(same, "the records of this process", "others", "Seed by the record's id, not by hash() or the process.")


def _load_without_torch(case: DatasetCase) -> None:
    """Scanning and loading import no torch: they run in many worker processes."""
    found = "torch imported"
    expect(
        not case.elsewhere["torch"], "a worker without torch", found, "Read with numpy; keep torch out of this module."
    )


def _load_reads_one(case: DatasetCase) -> None:
    """A load opens no file of another recording."""
    listing = case.listings[0][1]
    known = {str(path.resolve()): path for entry in listing.entries for path in entry.files}
    for entry, opened in zip(pick_some(listing), case.elsewhere["opened_by_load"], strict=True):
        own = {str(path.resolve()) for path in entry.files}
        strange = sorted(known[name].name for name in (opened & known.keys()) - own)
        found = f"{', '.join(strange[:3])} opened for {entry.record}"
        advice = "Read the files of the entry; one that recordings share belongs to the files of each."
        expect(not strange, "only the files of the entry", found, advice)


def _load_quick(case: DatasetCase) -> None:
    """Loading one recording takes little processor time."""
    for entry, _ in case.some[:1]:
        advice = "Read arrays, not lines; unpack archives once, before."
        expect_quick(lambda entry=entry: case.offer.load(entry, case.options), entry.record, advice, case.clock)  # type: ignore[misc]


def _offline(case: DatasetCase) -> None:
    """Scanning and loading use no network."""
    found = ", ".join(case.elsewhere["sockets"][:3])
    expect(not found, "no socket", found, "Name what must be downloaded in Dataset.sources.")


def _writes_nothing(case: DatasetCase) -> None:
    """Scanning and loading write no file: recordings may be read-only, and many processes load at the same time."""
    found = ", ".join(case.elsewhere["written"][:3])
    expect(not found, "nothing written", found, "Prepared frames are kept by the engine; keep no others.")


def _facts(record: Record) -> tuple[object, ...]:
    facts = (record.patient, record.record, record.channels, record.unit, record.sampling_rate, record.label)
    return (*facts, str(record.samples.dtype), record.samples.tobytes())
