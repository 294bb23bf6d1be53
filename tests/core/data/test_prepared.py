"""Prepared frames on disk: what others need to read them, and damage that is noticed when they are opened."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from fake_recordings import FakeOptions, fake_entries
from prepared_sets import make
from safetensors.numpy import load_file, save_file

from clocs_core.data import preparation as module
from clocs_core.data.prepared import open_prepared, verify
from clocs_core.errors import ClocsWarning, DataError


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


def test_the_contents_are_those_of_the_frames_wherever_they_were_prepared(tmp_path):
    """Options that change no frame change the fingerprint, and not the contents."""
    first = make(tmp_path / "here", fake_entries(5))
    copy = make(tmp_path / "there", fake_entries(5), FakeOptions(log=tmp_path / "log"))
    other = make(tmp_path / "here", fake_entries(5), FakeOptions(flat="r0-0"))
    assert copy.fingerprint != first.fingerprint
    assert first.contents == copy.contents != other.contents


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


def test_a_finished_set_can_be_read_where_nothing_can_be_written(tmp_path, monkeypatch):
    """Shared data folders are often read-only: opening must take no lock and make no folder."""
    made = make(tmp_path, fake_entries(3))
    monkeypatch.setattr(module, "FileLock", lambda *_: pytest.fail("a lock was asked for"))
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: pytest.fail("a folder was made"))
    read = make(tmp_path, fake_entries(3))
    np.testing.assert_array_equal(read.frames, made.frames)
    assert read.fingerprint == made.fingerprint
