"""Files are there whole or not at all."""

import errno
import os
import re
from pathlib import Path
from stat import S_ISDIR

import pytest

from clocs_core import files
from clocs_core.errors import RunFolderError
from clocs_core.files import append_line, naming, write_atomically


def test_what_is_written_replaces_what_was_there(tmp_path):
    path = tmp_path / "a.txt"
    write_atomically(path, "old")
    write_atomically(path, b"new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    """A full disk shows itself when the data are flushed."""
    path = tmp_path / "a.txt"
    write_atomically(path, "old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("clocs_core.files.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def failing(code):
    def fail(handle):
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("write", [write_atomically, append_line])
def test_a_full_disk_names_the_file_and_the_room(tmp_path, monkeypatch, write):
    """Without them the user knows neither which of several disks is full, nor how much has to go."""
    monkeypatch.setattr("clocs_core.files.os.fsync", failing(errno.ENOSPC))
    with pytest.raises(OSError, match="No space") as caught:
        write(tmp_path / "a.txt", "x" * 1500)
    assert caught.value.filename == str(tmp_path / "a.txt")
    assert re.fullmatch(r"No space left on device \(1\.5 kB to write, [0-9.]+ \wB free\)", caught.value.strerror)


def test_any_other_error_names_the_file_and_not_the_temporary_one(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write_atomically(tmp_path / "gone" / "a.txt", "new")
    assert caught.value.filename == str(tmp_path / "gone" / "a.txt")


def test_an_error_of_clocs_passes_unchanged(tmp_path):
    problem = RunFolderError("a sentence")
    with pytest.raises(RunFolderError) as caught, naming(tmp_path):
        raise problem
    assert caught.value is problem


def test_a_folder_that_cannot_be_flushed_is_no_error(tmp_path, monkeypatch):
    """File systems over a network answer "Invalid argument", and the file is written all the same."""
    write_atomically(tmp_path / "a.txt", "old")
    monkeypatch.setattr(files, "flush", lambda file: None)
    monkeypatch.setattr("clocs_core.files.os.fsync", failing(errno.EINVAL))
    write_atomically(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "new"
    monkeypatch.setattr("clocs_core.files.os.fsync", failing(errno.EIO))
    with pytest.raises(OSError, match=r"Input/output error: '.*a\.txt'"):
        write_atomically(tmp_path / "a.txt", "newer")


def test_a_full_disk_names_the_folder_that_it_could_not_flush(tmp_path, monkeypatch):
    monkeypatch.setattr("clocs_core.files.os.fsync", failing(errno.ENOSPC))
    with pytest.raises(OSError, match=rf"No space left on device \(.* free\): '{re.escape(str(tmp_path))}'"):
        files.sync_folder(tmp_path)


def test_a_file_is_on_the_disk_before_it_has_its_name_and_its_name_before_the_call_ends(tmp_path, monkeypatch):
    """A power cut after a rename that was not synced can leave a name without data, or the old name."""
    events = []
    rename = Path.replace

    def sync(handle):
        found = os.fstat(handle)
        events.append("folder synced" if S_ISDIR(found.st_mode) else f"{found.st_size} bytes synced")

    def renamed(path, target):
        events.append("renamed")
        return rename(path, target)

    monkeypatch.setattr("clocs_core.files.os.fsync", sync)
    monkeypatch.setattr(Path, "replace", renamed)
    write_atomically(tmp_path / "a.txt", "three")
    assert events == ["5 bytes synced", "renamed", "folder synced"]
