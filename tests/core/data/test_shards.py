"""Shards: recordings are read one by one, here or in worker processes, and each is mended, dropped or read later."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import attrs
import numpy as np
import pytest
from fake_recordings import (
    FakeOptions,
    fake_entries,
    fake_load,
    load_counts,
    load_file_of_numbers,
)
from prepared_sets import folders, make, names, stop_after_a_shard

from clocs_core.contracts.records import Entry, Framing, Record
from clocs_core.data.shards import Convention, Job, make_shard, run_jobs
from clocs_core.errors import DataError

SUPPORT = Path(__file__).parents[2] / "support"

SCRIPT = """
import os, sys
from pathlib import Path
from fake_recordings import FakeOptions, fake_entries, fake_load
from clocs_core.contracts.records import Framing
from clocs_core.data.preparation import prepare
from clocs_core.data.recipe import Recipe

print("started", os.getpid(), flush=True)
folder = Path(sys.argv[1])
recipe = Recipe(
    dataset="fake", entries=fake_entries(300), load=fake_load, options=FakeOptions(log=folder / "log", samples=40),
    framing=Framing(frame_samples=8),
)
prepared = prepare(recipe, folder / "prepared", 3, lambda done, total: None)
print("prepared", len(prepared.records), flush=True)
"""


@pytest.mark.timeout(120)
def test_a_script_without_a_main_guard_is_not_started_again_by_its_workers(tmp_path: Path) -> None:
    """With multiprocessing's spawn it was: every worker ran the script, and all waited for one lock for ever."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ | {"PYTHONPATH": str(SUPPORT)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("started") == 1
    assert done.stdout.splitlines()[-1] == "prepared 300"
    workers = {line.split()[1] for line in (tmp_path / "log").read_text().splitlines()}
    assert len(workers) >= 2  # the recordings were read by other processes, but for the first


def test_a_finished_shard_of_other_recordings_is_made_again(tmp_path: Path) -> None:
    """Their files are whole, so only the names of the recordings can tell."""
    entries = fake_entries(6)
    how = (fake_load, FakeOptions(), Framing(frame_samples=8), Convention(("L0", "L1"), "mV"))
    first = Job(tmp_path / "shard-00000", tuple(entries[:3]), *how)
    run_jobs([first], 1, lambda done, total: None, "fake")
    assert first.done()
    assert not Job(first.path, tuple(entries[3:]), *how).done()
    assert not Job(first.path, tuple(entries[2::-1]), *how).done()


def test_a_shard_that_is_made_again_is_whole_all_the_time(tmp_path: Path) -> None:
    """Another machine may be joining it: one that was given up for lost can go on for a while."""
    entries, found = tuple(fake_entries(3)), []
    how = (FakeOptions(), Framing(frame_samples=8), Convention(("L0", "L1"), "mV"))
    first = Job(tmp_path / "shard-00000", entries, fake_load, *how)
    assert make_shard(first) == []

    def load(entry: Entry, options: FakeOptions) -> Record:
        found.append(first.done())
        return fake_load(entry, options)

    assert make_shard(Job(first.path, entries, load, *how)) == []
    assert found == [True, True, True]
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".bin", ".index", ".json"]


def test_a_gain_is_converted_with_the_unit(tmp_path):
    """Counts of 200 per mV are 0.2 per µV."""
    entries = [*fake_entries(2), Entry("Micro1", "q")]

    def load(entry, options):
        record = load_counts(entry, options)
        return attrs.evolve(record, unit="µV", gain=0.2) if entry.record == "Micro1" else record

    found = make(tmp_path, entries, FakeOptions(samples=8), load=load)
    record = load(entries[2], FakeOptions(samples=8))
    assert (found.unit, found.frames.dtype) == ("mV", np.int16)
    np.testing.assert_allclose(found.frames[2] / found.gain[2], record.physical() / 1000, rtol=1e-12)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.EMFILE, errno.ESTALE])
def test_what_the_system_cannot_read_today_is_no_drop_and_is_read_next_time(tmp_path, number):
    """A permission that was missing for a minute left recordings out for good."""
    entries, log = fake_entries(150, visits=1), tmp_path / "log"
    order = [entry.record for entry in entries]  # shards have 64 of them
    failing = {order[3], order[140]}

    def load(entry, options):
        record = fake_load(entry, options)
        if entry.record in failing:
            raise DataError(f"{entry.record} cannot be read") from OSError(number, os.strerror(number))
        return record

    with pytest.raises(DataError, match=rf"2 of 150 recordings could not be read now.* The first, {min(failing)}: "):
        make(tmp_path / "p", entries, FakeOptions(log=log), load=load)
    assert all(name.endswith(".partial") for name in folders(tmp_path / "p"))
    failing.clear()
    log.unlink()
    found = make(tmp_path / "p", entries, FakeOptions(log=log), load=load)
    assert found.drops.counts == {}
    assert found.records == make(tmp_path / "q", entries).records
    assert set(names(log)) == {*order[:64], *order[128:]}  # the shard between was kept


def test_files_that_vanish_while_they_are_read_are_no_drops(tmp_path):
    """A drive that is unplugged and plugged in again gives the same fingerprint, with which drops would be kept."""
    entries = [Entry(f"r{i}", f"p{i}", files=(tmp_path / f"r{i}",)) for i in range(4)]

    def plug_in():
        for entry in entries:
            np.savetxt(entry.files[0], np.arange(8.0))
            os.utime(entry.files[0], ns=(1, 1))

    def load(entry, options):
        if entry.record == "r2":
            for other in entries[2:]:
                other.files[0].unlink(missing_ok=True)
        return load_file_of_numbers(entry, options)

    plug_in()
    with pytest.raises(DataError, match="files of recordings changed while they were read"):
        make(tmp_path / "p", entries, load=load)
    plug_in()
    found = make(tmp_path / "p", entries, load=load_file_of_numbers)
    assert found.drops.counts == {}
    assert len(found.records) == 4


def test_the_first_recording_decides_even_if_it_cannot_be_read_today(tmp_path):
    def load(entry, options):
        if entry.record == "r0-0":
            raise PermissionError(errno.EACCES, "Permission denied", "r0-0.hea")
        return fake_load(entry, options)

    with pytest.raises(DataError, match=r"1 of 3 recordings could not be read now.*Permission denied"):
        make(tmp_path, fake_entries(3, visits=1), load=load)


def test_an_absurd_sampling_rate_costs_one_recording(tmp_path):
    """A rate of 0.001 Hz asked for 112 GiB, and ended the preparation."""
    rates = {"r1-0": 0.001, "r2-0": 0.02, "r3-0": 1e9, "r4-0": 1e-300}

    def load(entry, options):
        return attrs.evolve(fake_load(entry, options), sampling_rate=rates.get(entry.record, 100.0))

    framing = Framing(frame_samples=8, sampling_rate=250.0)
    found = make(tmp_path, fake_entries(6, visits=1), FakeOptions(samples=2000), framing, load=load)
    assert found.drops.counts == {"implausible sampling rate": 3, "stretched more than 20 times": 1}
    assert [record for record, _ in found.records] == ["r0-0", "r5-0"]


def test_what_is_wrong_with_a_file_is_said_in_a_line_without_its_path(tmp_path):
    """The recording has a name, and the report of a run is given to others."""
    path = tmp_path / "a.edf"

    def load(entry, options):
        raise ValueError(f"{path} has no\nheader; " + "and more " * 40)

    bad = [Entry("a", "p", files=(path,)), *fake_entries(1, visits=1)]
    found = make(tmp_path, bad, FakeOptions(samples=16), load=lambda e, o: load(e, o) if e.files else fake_load(e, o))
    (said,) = found.drops.why.values()
    assert said.startswith("it has no header; and more")
    assert len(said) <= 160


def test_odd_recordings_are_mended_or_dropped_one_by_one(tmp_path):
    """One bad file in ten thousand must cost one recording, and be named."""
    odd = ["Broken1", "Good1", "Swapped1", "Lost1", "Micro1", "Pressure1", "Short1", "Gap1", "Flat1"]
    found = make(tmp_path, [Entry(name, "p") for name in odd], FakeOptions(samples=16))
    assert found.drops.counts == {
        "unreadable: EOFError": 1,
        "missing channel L0": 1,
        "unit mmHg instead of mV": 1,
        "shorter than a frame": 1,
        "NaN": 1,
        "flat": 4,
    }
    assert found.drops.why == {"unreadable: EOFError": "the file ends in the middle of a sample"}
    assert found.drops.first["missing channel L0"] == ("Lost1",)
    assert found.drops.first["NaN"] == ("Gap1 L0 frame 0",)
    assert [record for record, _ in found.records] == ["Good1", "Swapped1", "Micro1", "Gap1", "Flat1"]
    assert found.valid[:6].all()
    assert found.valid[6:].tolist() == [[False, True], [True, True], [False, False], [False, False]]
    assert found.unit == "mV"
    swapped = fake_load(Entry("Swapped1", "p"), FakeOptions(samples=16)).samples
    np.testing.assert_array_equal(found.frames[2, 0], swapped[1, :8].astype(np.float32))
    micro = fake_load(Entry("Micro1", "p"), FakeOptions(samples=16)).samples
    expected = [np.float32(int(count) / 1000) for count in micro[0, :8]]
    assert found.frames[4, 0].tolist() == expected


def test_the_first_recording_that_loads_decides_unit_and_channels(tmp_path):
    """Not the first that a worker happens to finish: the same set must have the same unit on every machine."""
    entries = [Entry("Broken1", "p"), Entry("Micro1", "p"), Entry("Good1", "p"), Entry("Swapped1", "p")]
    found = make(tmp_path, entries, FakeOptions(samples=8))
    assert found.unit == "µV"
    good = fake_load(Entry("Good1", "p"), FakeOptions(samples=8)).samples
    np.testing.assert_array_equal(found.frames[1], (good * 1000).astype(np.float32))
    other = make(tmp_path, [Entry("Swapped1", "p"), Entry("Good1", "p")], FakeOptions(samples=8))
    assert other.channels == ("L1", "L0")
    np.testing.assert_array_equal(other.frames[1], good[::-1].astype(np.float32))


def test_the_channels_asked_for_come_in_the_order_asked_for(tmp_path):
    """A data set declares its channels; a file that has more of them, or another order, is put right by name."""
    found = make(tmp_path, [Entry("Swapped1", "p")], FakeOptions(samples=8, channels=3), channels=("L1", "L0"))
    assert found.channels == ("L1", "L0")
    samples = fake_load(Entry("Swapped1", "p"), FakeOptions(samples=8, channels=3)).samples  # L2, L1, L0
    np.testing.assert_array_equal(found.frames[0], samples[1:].astype(np.float32))


def test_want_of_memory_is_not_a_broken_file(tmp_path):
    """It would drop half the data set in silence; it stops the preparation instead."""
    with pytest.raises(MemoryError):
        make(tmp_path, [*fake_entries(3), Entry("Memory1", "p")])
    assert [name for name in folders(tmp_path) if not name.endswith(".partial")] == []


def test_a_worker_that_is_killed_is_said_to_be_and_what_is_done_is_kept(tmp_path):
    """The system kills the largest process when memory runs out; a bare BrokenProcessPool helps nobody."""
    entries = [*fake_entries(300), Entry("Killed1", "p")]
    with pytest.raises(DataError, match=r"One of 2 processes .* was killed.*with fewer workers"):
        make(tmp_path, entries, workers=2)
    assert all(name.endswith(".partial") for name in folders(tmp_path))


def test_a_damaged_shard_is_made_again(tmp_path):
    """A loss of power can leave a short file behind a finished note."""
    with pytest.raises(RuntimeError):
        make(tmp_path, fake_entries(100), progress=stop_after_a_shard)
    (partial,) = tmp_path.glob("*.partial")
    os.truncate(partial / "shard-00000.bin", 10)
    found = make(tmp_path, fake_entries(100))
    np.testing.assert_array_equal(found.frames, make(tmp_path / "q", fake_entries(100)).frames)


def test_the_counts_of_a_recorder_are_stored_as_they_are_with_the_gain_of_each_frame(tmp_path):
    """Half the space, and no rounding: a frame divided by its gain is what the reader read."""
    entries = [*fake_entries(70), Entry("Coarse1", "q"), Entry("Hole1", "q")]
    found = make(tmp_path, entries, load=load_counts)
    assert found.frames.dtype == np.int16
    assert set(found.gain) == {200.0, 50.0}
    by_name = {entry.record: entry for entry in entries}
    for frame in range(len(found.frames)):
        name, _ = found.records[found.record[frame]]
        record = load_counts(by_name[name], FakeOptions())
        first = found.start[frame]
        for lead in range(2):
            if found.valid[frame, lead]:
                expected = record.physical()[lead, first : first + 8]
                np.testing.assert_array_equal(found.frames[frame, lead] / found.gain[frame], expected)
    assert found.drops.first["NaN"] == ("Hole1 L0 frame 0",)


def test_one_recording_that_is_not_counted_makes_the_whole_set_float(tmp_path):
    """Rather twice the space than a rounded signal."""
    entries = [*fake_entries(70), Entry("Coarse1", "q"), Entry("Real1", "q")]
    found = make(tmp_path, entries, load=load_counts)
    assert found.frames.dtype == np.float32
    assert set(found.gain) == {1.0}
    by_name = {entry.record: entry for entry in entries}
    for frame in range(len(found.frames)):
        name, _ = found.records[found.record[frame]]
        values = load_counts(by_name[name], FakeOptions()).physical().astype(np.float32)
        np.testing.assert_array_equal(found.frames[frame], values[:, found.start[frame] : found.start[frame] + 8])


def test_resampled_counts_are_float(tmp_path):
    found = make(tmp_path, fake_entries(5), load=load_counts, framing=Framing(frame_samples=8, sampling_rate=50.0))
    assert found.frames.dtype == np.float32


def test_what_a_reader_put_up_with_is_counted_and_dropped_from_nothing(tmp_path):
    """A user is told of a header that was read all the same."""
    found = make(tmp_path, [*fake_entries(3), Entry("Coarse1", "q"), Entry("Coarse2", "q")], load=load_counts)
    assert found.tolerated.counts == {"the gain is coarse": 2}
    assert found.tolerated.reasons() == "2 the gain is coarse (Coarse1, Coarse2)"
    assert found.drops.counts == {}
