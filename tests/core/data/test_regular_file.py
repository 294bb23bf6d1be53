"""Only regular files are opened; errors of a moment are told from faults of a file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from clocs_core.data.regular_file import is_passing, most_unpacked, open_regular
from clocs_core.data.wfdb import read_wfdb
from clocs_core.data.wfdb_header import read_header
from clocs_core.errors import DataError, DataNotFound


def open_handles() -> int:
    return len([*Path("/dev/fd").iterdir()]) if Path("/dev/fd").exists() else 0


def test_the_bytes_of_a_file_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\r\n\x1a\0")
    with open_regular(tmp_path / "a") as stream:
        assert stream.read() == b"\r\n\x1a\0"
    with open_regular(str(tmp_path / "a"), largest=4) as stream:
        assert stream.read(2) == b"\r\n"


@pytest.mark.timeout(10)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_named_like_a_header_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.hea")
    before = open_handles()
    for read in (open_regular, read_header, read_wfdb):
        with pytest.raises(DataError, match="is not a regular file"):
            read(tmp_path / "a.hea")
    assert open_handles() == before


def test_a_folder_and_a_file_that_is_too_large_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a regular file"):
        open_regular(tmp_path)
    (tmp_path / "a").write_bytes(b"12345")
    with pytest.raises(DataError, match=r"has 5 bytes, expected at most 4; it is not read\."):
        open_regular(tmp_path / "a", largest=4)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "b")


def test_small_files_may_unpack_to_a_quarter_of_a_gigabyte_and_large_ones_to_a_hundred_times_their_size() -> None:
    assert most_unpacked(1) == 1 << 28
    assert most_unpacked(1 << 30) == 100 << 30


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ESTALE, errno.ETIMEDOUT])
def test_an_error_of_the_system_passes(number: int) -> None:
    assert is_passing(OSError(number, os.strerror(number)))
    wrapped = DataError("a reader's own words")
    wrapped.__cause__ = OSError(number, os.strerror(number))
    assert is_passing(wrapped)


@pytest.mark.parametrize(
    "problem",
    [FileNotFoundError(errno.ENOENT, "none"), IsADirectoryError(errno.EISDIR, "one"), OSError("half a block"),
     OSError(errno.EINVAL, "seek"), DataNotFound("none"), ValueError("no number"), EOFError()],
)  # fmt: skip
def test_a_fault_of_the_file_stays(problem: Exception) -> None:
    assert not is_passing(problem)
