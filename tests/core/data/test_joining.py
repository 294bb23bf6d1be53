"""Shards are joined in the order of their entries, as soon as all before them are finished."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from fake_recordings import FakeOptions, fake_entries, load_counts

from clocs_core.contracts.records import Entry, Framing
from clocs_core.data.checksums import find_damage
from clocs_core.data.joining import Joining, Piece, append_file
from clocs_core.data.shards import Convention, Job, run_jobs


def made(folder: Path, *shards: list[Entry]) -> list[Job]:
    """Finished shards of recordings in 16-bit integers, but for those that are named otherwise."""
    how = (load_counts, FakeOptions(), Framing(frame_samples=8), Convention(("L0", "L1"), "mV"))
    jobs = [Job(folder / f"shard-{number:05d}", tuple(entries), *how) for number, entries in enumerate(shards)]
    run_jobs(jobs, 1, lambda done, total: None, "fake")
    return jobs


def contents(jobs: list[Job]) -> list[bytes]:
    return [job.file(".bin").read_bytes() for job in jobs]


def test_a_shard_is_appended_when_all_before_it_are_finished(tmp_path: Path) -> None:
    """So that the copy is made while workers read other recordings, and the order is that of the entries."""
    entries = fake_entries(6)
    jobs = made(tmp_path, entries[:2], entries[2:4], entries[4:])
    first, second, third = contents(jobs)
    target = tmp_path / "frames.bin"
    joining = Joining(jobs, target, 16)
    for number, expected in ((2, b""), (0, first), (1, first + second + third)):
        joining.add(jobs[number])
        assert target.read_bytes() == expected
    pieces = [Piece(*piece) for piece in joining.finish()]
    assert [piece.size for piece in pieces] == [len(first), len(second), len(third)]
    assert find_damage(target, pieces, thorough=True) is None
    assert joining.lossless
    assert [len(shard["records"]) for shard in joining.shards] == [2, 2, 2]


@pytest.mark.parametrize("last", [0, 1, 2])
def test_integers_among_other_numbers_are_divided_by_their_gain(tmp_path: Path, last: int) -> None:
    """Which shard brings the other type, and when, changes nothing."""
    entries = fake_entries(4)
    jobs = made(tmp_path, entries[:2], [Entry("Real1", "q")], entries[2:])
    joining, target = Joining(jobs, tmp_path / "frames.bin", 16), tmp_path / "frames.bin"
    for job in [*(one for one in jobs if one is not jobs[last]), jobs[last]]:
        joining.add(job)
    pieces = [Piece(*piece) for piece in joining.finish()]
    assert not joining.lossless
    assert find_damage(target, pieces, thorough=True) is None
    expected = [load_counts(entry, FakeOptions()).physical() for job in jobs for entry in job.entries]
    found = np.fromfile(target, "<f4").reshape(-1, 2, 8)
    frames = [one[:, at : at + 8].astype("<f4") for one in expected for at in range(0, one.shape[1] - 7, 8)]
    np.testing.assert_array_equal(found, np.stack(frames))


@pytest.mark.parametrize("problem", [errno.EXDEV, errno.ENOSYS, None])
def test_where_the_system_does_not_copy_the_rest_is_read_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: int | None
) -> None:
    """Between file systems, on others than Linux, and after a copy that stopped half-way."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(bytes(range(200)))
    target.write_bytes(b"before")
    copy = getattr(os, "copy_file_range", None)

    def some(file: int, out: int, count: int) -> int:
        if copy is not None and os.lseek(file, 0, os.SEEK_CUR) == 0:
            return int(copy(file, out, 50))
        if problem is None:
            return 0
        raise OSError(problem, os.strerror(problem))

    monkeypatch.setattr(os, "copy_file_range", some, raising=False)
    append_file(source, target)
    assert target.read_bytes() == b"before" + bytes(range(200))
    monkeypatch.delattr(os, "copy_file_range")
    append_file(source, target)
    assert target.read_bytes() == b"before" + 2 * bytes(range(200))
