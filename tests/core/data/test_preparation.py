"""Prepared frames: the same whoever makes them, found again, noticed when damaged, never half there."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from fake_recordings import (
    FakeOptions,
    fake_entries,
    fake_load,
    load_without_torch,
)
from filelock import FileLock
from prepared_sets import FRAMING, folders, make, names, run_process, start_process

from clocs_core.contracts.records import Entry, Framing
from clocs_core.data.prepared import verify
from clocs_core.errors import DataError


def test_frames_that_recordings_are_stretched_to_have_a_rate_where_recordings_last_alike(tmp_path):
    """A network that reads them must know how long they lasted."""
    halves = Framing(frame_samples=8, frames_per_record=2)
    alike = make(tmp_path / "a", fake_entries(6), FakeOptions(samples=1000), halves)  # 10 s at 100 Hz
    assert (alike.record_seconds, alike.frame_rate, alike.stretched_rate) == ({10.0: 6}, None, 1.6)
    beats = make(tmp_path / "d", fake_entries(6), FakeOptions(samples=64), halves)
    assert (beats.record_seconds, beats.stretched_rate) == ({0.64: 6}, 25.0)
    differing = make(tmp_path / "b", fake_entries(6), FakeOptions(), halves)
    assert (len(differing.record_seconds) > 1, differing.stretched_rate) == (True, None)
    assert make(tmp_path / "c", fake_entries(6), FakeOptions(samples=1000)).stretched_rate is None


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
    assert sum(found.record_seconds.values()) == len(records)
    assert found.drops.counts == {}
    assert found.folder == tmp_path / found.fingerprint
    assert found.frames_file.read_bytes() == found.frames.tobytes()
    assert folders(tmp_path) == [found.fingerprint]
    verify(found)


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


def test_what_could_not_be_deleted_goes_when_the_set_is_opened_again(tmp_path, monkeypatch):
    """A read that fails while a folder is emptied costs nobody a result."""
    with monkeypatch.context() as broken:
        broken.setattr("clocs_core.data.preparation.shutil.rmtree", lambda path, ignore_errors=False: None)
        first = make(tmp_path, fake_entries(3))
    assert folders(tmp_path) == [first.fingerprint, f"{first.fingerprint}.partial"]
    np.testing.assert_array_equal(make(tmp_path, fake_entries(3)).frames, first.frames)
    assert folders(tmp_path) == [first.fingerprint]


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


def test_partial_folders_of_other_sets_are_left_alone(tmp_path):
    """Another process may be filling them."""
    other = tmp_path / "ffffffffffffffff.partial"
    other.mkdir()
    (other / "shard-00000.bin").write_bytes(b"1234")
    make(tmp_path, fake_entries(3))
    assert (other / "shard-00000.bin").read_bytes() == b"1234"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not list processes in /proc")
def test_killed_with_workers_it_leaves_no_orphan_and_goes_on(tmp_path):
    """kill -9 is what a batch system does. The workers must notice, and finished shards must serve the next call."""
    options = FakeOptions(log=tmp_path / "log", pause=0.004)
    program = """
        options = FakeOptions(log=Path(sys.argv[2]), pause=0.004)
        make(Path(sys.argv[1]), fake_entries(400), options, FRAMING, 2, lambda *now: print(*now, flush=True))
    """
    running = start_process(program, tmp_path / "p", options.log)
    for line in running.stdout:
        if int(line.split()[0]) >= 128:
            break
    workers = _children(running.pid)
    running.send_signal(signal.SIGKILL)
    running.wait()
    running.stdout.close()
    running.stderr.close()
    assert len(workers) >= 2
    assert _all_end(workers, seconds=60)
    assert {int(line.split()[1]) for line in options.log.read_text().splitlines()} - {running.pid} <= workers
    before = len(names(options.log))
    told = []
    found = make(tmp_path / "p", fake_entries(400), options, workers=1, progress=lambda *now: told.append(now))
    assert told[0][0] >= 128
    assert len(names(options.log)) - before == 400 - told[0][0]
    assert len({record for record, _ in found.records}) == 400


def _children(process: int) -> set[int]:
    """Return the processes that a process has started and that still run."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            if int(status.read_text().rsplit(")", 1)[1].split()[1]) == process:  # its parent
                found.add(int(status.parent.name))
    return found


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
    out, err, status = run_process(program, tmp_path, limit)
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
    running = [start_process(program, tmp_path / "p", log) for _ in range(2)]
    answers = [process.communicate(timeout=60) for process in running]
    assert answers[0][0] == answers[1][0] != "", answers
    assert len(names(log)) == 101
