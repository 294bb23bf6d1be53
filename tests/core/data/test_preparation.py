"""Prepared frames: the same whoever makes them, found again, noticed when damaged, never half there."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from enum import Enum, auto
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import attrs
import numpy as np
import pytest
from fake_recordings import (
    FakeOptions,
    fake_entries,
    fake_load,
    load_counts,
    load_file_of_numbers,
    load_without_torch,
)
from filelock import FileLock
from safetensors.numpy import load_file, save_file

from clocs_core.contracts.records import Entry, Framing
from clocs_core.data import preparation as module
from clocs_core.data.preparation import prepare
from clocs_core.data.prepared import open_prepared, verify
from clocs_core.errors import ClocsWarning, DataError

FRAMING = Framing(frame_samples=8)


def no_progress(done, total):
    pass


def make(folder, entries, options=None, framing=FRAMING, load=fake_load, workers=1, progress=no_progress, **changes):
    asked = {"dataset": "fake", "revision": 1, "channels": (), "folder": folder, **changes}
    options = options or FakeOptions()
    return prepare(entries, load, options, framing, workers=workers, progress=progress, **asked)


def names(log: Path) -> list[str]:
    return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


def folders(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def in_another_process(program: str, *arguments: object, wait: bool = True):
    """Start Python on a program that has `make` and friends at hand."""
    head = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from fake_recordings import FakeOptions, fake_entries, fake_load
        from clocs_core.data.preparation import prepare
        from clocs_core.contracts.records import Framing
        def make(folder, entries, options, workers=1, progress=lambda done, total: None):
            return prepare(entries, fake_load, options, Framing(frame_samples=8), dataset="fake", revision=1,
                           channels=(), folder=folder, workers=workers, progress=progress)
        if __name__ == "__main__":
        """
    )
    text = head + textwrap.indent(textwrap.dedent(program), "    ")
    path = [
        str(Path(__file__).parents[2] / "support"),
        str(Path(module.__file__).parents[2]),
        os.environ.get("PYTHONPATH", ""),
    ]
    started = subprocess.Popen(
        [sys.executable, "-c", text, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return started if not wait else (*started.communicate(timeout=60), started.returncode)


def test_frames_and_index_are_those_of_a_plain_loop(tmp_path):
    """150 recordings over three shards: every frame is where the index says, and comes from that recording."""
    entries = fake_entries(150)
    found = make(tmp_path, entries)
    frame = 0
    records = []
    for entry in entries:
        samples = fake_load(entry, FakeOptions()).samples
        for position in range(samples.shape[1] // 8):
            if position == 0:
                records.append((entry.record, entry.patient))
            for lead in range(2):
                cut = samples[lead, position * 8 : position * 8 + 8].astype(np.float32)
                np.testing.assert_array_equal(found.frames[frame, lead], cut)
            assert found.records[found.record[frame]] == (entry.record, entry.patient)
            assert found.position[frame] == position
            assert found.start[frame] == position * 8
            frame += 1
    assert found.frames.shape == (frame, 2, 8)
    assert found.frames.dtype == np.dtype("<f4")
    assert not found.frames.flags.writeable
    assert found.records == tuple(records)
    assert found.valid.dtype == np.bool_
    assert found.valid.all()
    assert (found.channels, found.unit, found.dataset, found.framing) == (("L0", "L1"), "mV", "fake", FRAMING)
    assert found.sampling_rates == {100.0: 150}
    assert found.drops.counts == {}
    assert found.folder == tmp_path / found.fingerprint
    assert found.frames_file.read_bytes() == found.frames.tobytes()
    assert folders(tmp_path) == [found.fingerprint]
    verify(found)


def test_the_manifest_holds_what_others_need_to_read_the_files(tmp_path):
    """Anyone can read the frames with the manifest alone: shape, unit, checksums, versions; no pickle anywhere."""
    found = make(tmp_path, fake_entries(5))
    held = json.loads((found.folder / "manifest.json").read_text())
    content = (found.folder / "frames.bin").read_bytes()
    assert held["files"]["frames.bin"] == [[len(content), sha256(content).hexdigest(), crc32(content)]]
    assert held["shape"] == list(found.frames.shape)
    assert set(held["versions"]) == {"clocs", "numpy", "scipy"}
    assert held["fingerprint"] == found.fingerprint
    assert sorted(path.name for path in found.folder.iterdir()) == ["frames.bin", "index.safetensors", "manifest.json"]


def test_two_workers_write_the_same_bytes_as_none_and_import_no_torch(tmp_path):
    """Which worker is first must not show; torch in a worker costs seconds and a gigabyte each."""
    entries = [*fake_entries(300), Entry("Micro1", "q"), Entry("Broken1", "q"), Entry("Gap1", "q")]
    told = []
    alone = make(tmp_path / "one", entries, load=fake_load)
    helped = make(tmp_path / "two", entries, load=load_without_torch, workers=2, progress=lambda *now: told.append(now))
    assert helped.drops.counts == alone.drops.counts == {"unreadable: EOFError": 1, "NaN": 1}
    for name in ("frames.bin", "index.safetensors", "manifest.json"):
        assert (helped.folder / name).read_bytes() == (alone.folder / name).read_bytes()
    assert told[0] == (0, 303)
    assert told[-1] == (303, 303)
    assert told == sorted(told)


def test_a_second_call_reads_no_recording(tmp_path):
    """Preparing takes minutes for a large set; the next run must begin at once."""
    options = FakeOptions(log=tmp_path / "log")
    first = make(tmp_path / "p", fake_entries(20), options)
    loaded = len(names(options.log))
    second = make(tmp_path / "p", fake_entries(20), options, progress=lambda *_: pytest.fail("nothing was to be done"))
    assert len(names(options.log)) == loaded
    assert second.fingerprint == first.fingerprint
    np.testing.assert_array_equal(second.frames, first.frames)


def test_labels_are_no_part_of_the_fingerprint_and_everything_else_is(tmp_path):
    """Another task on the same recordings shares the frames; another reader, framing or option does not."""
    entries = fake_entries(5)
    first = make(tmp_path, entries).fingerprint
    assert make(tmp_path, [Entry(e.record, e.patient, None) for e in entries]).fingerprint == first
    others = {
        make(tmp_path, entries, revision=2).fingerprint,
        make(tmp_path, entries, dataset="other").fingerprint,
        make(tmp_path, entries, framing=Framing(frame_samples=4)).fingerprint,
        make(tmp_path, entries, options=FakeOptions(samples=16)).fingerprint,
        make(tmp_path, entries, channels=("L1", "L0")).fingerprint,
        make(tmp_path, entries[:4]).fingerprint,
        make(tmp_path, [Entry(e.record, "one patient") for e in entries]).fingerprint,
    }
    assert len(others | {first}) == 8


class Filter(Enum):
    NONE = auto()
    NOTCH = auto()


@attrs.frozen
class EnumOptions(FakeOptions):
    filter: Filter = Filter.NONE
    table: Path = Path("a")


def test_options_that_are_enums_or_paths_are_in_the_fingerprint(tmp_path):
    """An enum was a TypeError, told once the run's folder was made."""
    chosen = [EnumOptions(), EnumOptions(filter=Filter.NOTCH), EnumOptions(table=Path("b"))]
    assert len({make(tmp_path, fake_entries(2), options=one).fingerprint for one in chosen}) == 3


def test_a_changed_file_is_noticed(tmp_path):
    """Old frames of a corrected file would be a silent error; size or time of change is enough to see it."""
    file = tmp_path / "a.txt"
    np.savetxt(file, np.arange(8.0))
    entries = [Entry("a", "p", files=(file,))]
    first = make(tmp_path / "p", entries, load=load_file_of_numbers)
    np.savetxt(file, np.arange(8.0)[::-1])
    os.utime(file, ns=(1, 1))
    second = make(tmp_path / "p", entries, load=load_file_of_numbers)
    assert second.fingerprint != first.fingerprint
    assert second.frames[0, 0].tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
    file.unlink()
    with pytest.raises(DataError, match=r"none of 1 recordings could be read\. The first, a: FileNotFoundError"):
        make(tmp_path / "p", entries, load=load_file_of_numbers)


@pytest.mark.parametrize("name", ["frames.bin", "index.safetensors", "manifest.json"])
@pytest.mark.parametrize("harm", ["truncate", "delete"])
def test_a_damaged_set_is_refused_with_what_to_do_and_made_anew(tmp_path, name, harm):
    """A half-copied folder must not train on zeros; opening says so, preparing mends it."""
    first = make(tmp_path, fake_entries(10))
    content = np.array(first.frames)
    file = first.folder / name
    if harm == "delete":
        file.unlink()
    else:
        os.truncate(file, file.stat().st_size - 40)
    with pytest.raises(DataError, match=r"cannot be used: .*\. Delete that folder and prepare again\."):
        open_prepared(tmp_path, first.fingerprint)
    with pytest.warns(ClocsWarning, match=r"cannot be used: .*; they are prepared again\."):
        again = make(tmp_path, fake_entries(10))
    np.testing.assert_array_equal(again.frames, content)
    verify(again)


def test_what_is_not_there_and_what_is_of_another_schema_say_so(tmp_path):
    with pytest.raises(DataError, match=r"manifest\.json is missing"):
        open_prepared(tmp_path, "0123456789abcdef")
    found = make(tmp_path, fake_entries(3))
    manifest = found.folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"schema": 2', '"schema": 99'))
    with pytest.raises(DataError, match="its schema is 99, expected 2"):
        open_prepared(tmp_path, found.fingerprint)


def flip(at: int):
    def change(raw: bytearray, _record_size: int) -> None:
        raw[at] ^= 1

    return change


def zeros(raw: bytearray, _frame: int) -> None:
    raw[:] = bytes(len(raw))


def half_of_the_samples(raw: bytearray, _frame: int) -> None:
    raw[: len(raw) // 2] = raw[-(len(raw) // 2) :]


def not_a_number(raw: bytearray, frame: int) -> None:
    raw[:frame] = np.full(frame // 4, np.nan, "<f4").tobytes()


def swapped_frames(raw: bytearray, frame: int) -> None:
    raw[:frame], raw[frame : 2 * frame] = raw[frame : 2 * frame], raw[:frame]


@pytest.mark.parametrize(
    "harm", [flip(0), flip(100), flip(-1), zeros, half_of_the_samples, not_a_number, swapped_frames]
)
def test_frames_that_were_changed_are_found_at_opening_and_made_anew(tmp_path, harm):
    """Sizes cannot see it, and a run on such frames gives a full report. 150 recordings are three pieces."""
    found = make(tmp_path, fake_entries(150))
    whole = found.frames_file.read_bytes()
    raw = bytearray(whole)
    harm(raw, found.frames[0].nbytes)
    found.frames_file.write_bytes(raw)
    with pytest.raises(DataError, match=r"cannot be used: frames\.bin has checksum \w+ from byte"):
        open_prepared(tmp_path, found.fingerprint)
    with pytest.raises(DataError, match=r"frames\.bin has checksum"):
        verify(found)
    with pytest.warns(ClocsWarning, match=r"frames\.bin has checksum .*; they are prepared again\."):
        again = make(tmp_path, fake_entries(150))
    assert again.frames_file.read_bytes() == whole


def frame_of_another_patient(folder: Path) -> None:
    index = load_file(folder / "index.safetensors")
    index["record"][:2] = index["record"][:2][::-1] + 1
    save_file(index, folder / "index.safetensors")


def recording_of_another_patient(folder: Path) -> None:
    held = json.loads((folder / "manifest.json").read_text())
    held["records"][0][1] = held["records"][-1][1]
    (folder / "manifest.json").write_text(json.dumps(held))


def frames_of_another_set(folder: Path) -> None:
    other = make(folder.parent / "other", fake_entries(12)[2:]).folder
    for name in ("frames.bin", "index.safetensors", "manifest.json"):
        (other / name).replace(folder / name)


@pytest.mark.parametrize("harm", [frame_of_another_patient, recording_of_another_patient, frames_of_another_set])
def test_frames_that_moved_to_another_patient_are_found_at_opening(tmp_path, harm):
    """The audit would count patients by the wrong ids, and find none in two parts."""
    found = make(tmp_path, fake_entries(10))
    expected = (found.records, found.record.tolist())
    harm(found.folder)
    with pytest.raises(DataError, match=r"cannot be used: (index\.safetensors has checksum|manifest\.json has been)"):
        open_prepared(tmp_path, found.fingerprint)
    with pytest.warns(ClocsWarning, match="they are prepared again"):
        again = make(tmp_path, fake_entries(10))
    assert (again.records, again.record.tolist()) == expected


def test_frames_are_on_the_disk_before_the_set_gets_its_name(tmp_path, monkeypatch):
    """A power cut after the rename would otherwise leave a set of zeros."""
    flushed = []
    real = os.fsync

    def fsync(handle: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{handle}").readlink())
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    found = make(tmp_path, fake_entries(3))
    assembled = tmp_path / f"{found.fingerprint}.partial" / "assembled"
    names = [path.name for path in flushed]
    assert names.index("frames.bin") < flushed.index(assembled) < flushed.index(tmp_path)


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


def test_leftovers_of_killed_preparations_are_swept_and_those_of_live_ones_are_not(tmp_path):
    """Shards of another set can be resumed, so they stay for a week."""
    week = time.time() - 8 * 86_400
    for name in ("old.partial", "new.partial", "live.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "shard-00000.bin").write_bytes(b"1")
    live = f".a.json.{os.getppid()}.tmp"
    for name in (".manifest.json.999999999.tmp", live):
        (tmp_path / name).write_bytes(b"1")
    for name in ("old.partial", "live.partial"):
        os.utime(tmp_path / name, (week, week))
    with FileLock(tmp_path / "live.lock"):
        found = make(tmp_path, fake_entries(3))
    left = {path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")}
    assert left == {found.fingerprint, "new.partial", "live.partial", live}


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


def test_no_frame_in_all_names_the_longest_recording_and_the_way_out(tmp_path):
    """The commonest mistake with one's own data: frames longer than the recordings."""
    with pytest.raises(DataError) as caught:
        make(tmp_path, fake_entries(70), FakeOptions(samples=50), Framing(frame_samples=2500))
    message = str(caught.value)
    assert "no recording gives a frame of 2500 samples. The longest, r9-1, has 50 samples (0.5 s at 100 Hz)" in message
    assert "Windows of half of it can be resampled to a frame each: `source_samples=25`." in message
    assert folders(tmp_path) == []
    with pytest.raises(DataError, match=r"a frame of 51 samples.*`source_samples=25`"):
        make(tmp_path, fake_entries(3), FakeOptions(samples=50), Framing(frame_samples=100, source_samples=51))
    with pytest.raises(DataError, match=r"a frame of 80 samples at 150 Hz.*`frame_samples=37`"):
        make(tmp_path, fake_entries(3), FakeOptions(samples=50), Framing(frame_samples=80, sampling_rate=150))


def test_frames_that_are_all_flat_are_as_good_as_none(tmp_path):
    with pytest.raises(DataError, match=r"no frame can be used: dropped .* flat"):
        make(tmp_path, [Entry("Flat1", "p")])
    assert folders(tmp_path) == []


def test_no_entry_or_one_twice_is_refused(tmp_path):
    """Labels are joined by record name, so a name must be one recording's."""
    with pytest.raises(DataError, match="fake: there is no recording to prepare"):
        make(tmp_path, [])
    with pytest.raises(DataError, match="record r0-1 is listed 2 times"):
        make(tmp_path, [*fake_entries(3), Entry("r0-1", "p")])


def test_an_interrupted_preparation_goes_on_where_it_was(tmp_path):
    """Finished shards are not read again, and the result is that of a preparation in one go."""
    options = FakeOptions(log=tmp_path / "log")

    def stop(done, total):
        if done == 128:
            raise KeyboardInterrupt

    entries = fake_entries(200)
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "p", entries, options, progress=stop)
    assert [name for name in folders(tmp_path / "p") if not name.endswith(".partial")] == []
    before = names(options.log)
    assert len(before) == 1 + 128  # the first is also read to learn channels and unit
    told = []
    found = make(tmp_path / "p", entries, options, progress=lambda *now: told.append(now))
    assert names(options.log)[len(before) :] == [entry.record for entry in entries[128:]]
    assert told == [(128, 200), (192, 200), (200, 200)]
    whole = make(tmp_path / "q", entries, options)
    assert found.frames_file.read_bytes() == whole.frames_file.read_bytes()
    assert folders(tmp_path / "p") == [found.fingerprint]


def test_a_damaged_shard_is_made_again(tmp_path):
    """A loss of power can leave a short file behind a finished note."""
    with pytest.raises(RuntimeError):
        make(tmp_path, fake_entries(100), progress=_stop_at_64)
    (partial,) = tmp_path.glob("*.partial")
    os.truncate(partial / "shard-00000.bin", 10)
    found = make(tmp_path, fake_entries(100))
    np.testing.assert_array_equal(found.frames, make(tmp_path / "q", fake_entries(100)).frames)


def _stop_at_64(done, total):
    if done == 64:
        raise RuntimeError("stop")


def test_partial_folders_of_other_sets_are_left_alone(tmp_path):
    """Another process may be filling them."""
    other = tmp_path / "ffffffffffffffff.partial"
    other.mkdir()
    (other / "shard-00000.bin").write_bytes(b"1234")
    make(tmp_path, fake_entries(3))
    assert (other / "shard-00000.bin").read_bytes() == b"1234"


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 and process groups are of Unix")
def test_killed_with_workers_it_leaves_no_orphan_and_goes_on(tmp_path):
    """kill -9 is what a batch system does. The workers must notice, and finished shards must serve the next call."""
    options = FakeOptions(log=tmp_path / "log", pause=0.004)
    program = """
        options = FakeOptions(log=Path(sys.argv[2]), pause=0.004)
        make(Path(sys.argv[1]), fake_entries(400), options, 2, lambda *now: print(*now, flush=True))
    """
    running = in_another_process(program, tmp_path / "p", options.log, wait=False)
    for line in running.stdout:
        if int(line.split()[0]) >= 128:
            break
    running.send_signal(signal.SIGKILL)
    running.wait()
    running.stdout.close()
    running.stderr.close()
    workers = {int(line.split()[1]) for line in options.log.read_text().splitlines()} - {running.pid}
    assert len(workers) == 2
    assert _all_end(workers, seconds=10)
    before = len(names(options.log))
    told = []
    found = make(tmp_path / "p", fake_entries(400), options, workers=1, progress=lambda *now: told.append(now))
    assert told[0][0] >= 128
    assert len(names(options.log)) - before == 400 - told[0][0]
    assert len({record for record, _ in found.records}) == 400


def _all_end(processes, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(_alive(process) for process in processes):
            return True
        time.sleep(0.05)
    return False


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/stat")  # an orphan that nobody has reaped yet is dead all the same
    return not (status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] == "Z")


@pytest.mark.skipif(sys.platform == "win32", reason="resource limits are of Unix")
@pytest.mark.parametrize("limit", [2_000, 40_000])  # in the first shard; in the file that joins them
def test_a_full_disk_is_an_error_and_leaves_no_finished_folder(tmp_path, limit):
    """A limit on the size of a file stands in for the disk. Afterwards, with room, the next call goes on."""
    program = """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
        try:
            make(Path(sys.argv[1]), fake_entries(400), FakeOptions(samples=16))
        except OSError as error:
            print("told:", error.errno)
    """
    out, err, status = in_another_process(program, tmp_path, limit)
    assert (out.strip().startswith("told: "), status) == (True, 0), err
    assert all(name.endswith(".partial") for name in folders(tmp_path))
    found = make(tmp_path, fake_entries(400), FakeOptions(samples=16))
    assert found.frames.shape == (800, 2, 8)
    assert folders(tmp_path) == [found.fingerprint]


def test_two_processes_at_once_prepare_once(tmp_path):
    """Five seeds are often started together: one prepares, the others wait and find it done."""
    log = tmp_path / "log"
    program = """
        found = make(Path(sys.argv[1]), fake_entries(100), FakeOptions(log=Path(sys.argv[2]), pause=0.003))
        print(found.fingerprint, found.frames.shape[0])
    """
    running = [in_another_process(program, tmp_path / "p", log, wait=False) for _ in range(2)]
    answers = [process.communicate(timeout=60) for process in running]
    assert answers[0][0] == answers[1][0] != "", answers
    assert len(names(log)) == 101


def test_a_finished_set_can_be_read_where_nothing_can_be_written(tmp_path, monkeypatch):
    """Shared data folders are often read-only: opening must take no lock and make no folder."""
    made = make(tmp_path, fake_entries(3))
    monkeypatch.setattr(module, "FileLock", lambda *_: pytest.fail("a lock was asked for"))
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: pytest.fail("a folder was made"))
    read = make(tmp_path, fake_entries(3))
    np.testing.assert_array_equal(read.frames, made.frames)
    assert read.fingerprint == made.fingerprint


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
