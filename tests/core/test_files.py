"""Files are there whole or not at all."""

import os
from pathlib import Path
from stat import S_ISDIR

import pytest

from clocs_core.files import write_atomically


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
