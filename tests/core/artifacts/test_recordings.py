"""A folder notices that the recordings it was begun with have changed, and says how."""

from __future__ import annotations

import attrs
import pytest

from clocs_core.artifacts.recordings import UsedRecordings
from clocs_core.artifacts.run_folder import RunFolder
from clocs_core.artifacts.split import Split, from_json
from clocs_core.errors import RunFolderError

USED = UsedRecordings(recordings=60, patients=40, split="s", labels="l", files=("f",), frames="x")
SPLIT = Split({"p1": "train", "p2": "test"}, 0, "60/20/20")


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (
            {"recordings": 90, "patients": 70},
            "it had 60 recordings of 40 patients, now there are 90 recordings of 70 pat",
        ),
        ({"split": "t"}, "other patients are in its parts"),
        ({"labels": "m"}, "patients or labels of some recordings are others"),
        (
            {"files": ("g",), "frames": "y"},
            "files were replaced, or are read in another way: their fingerprint was f and is g",
        ),
    ],
    ids=["more", "other split", "other labels", "other files"],
)
def test_recordings_that_changed_are_refused_with_what_changed(tmp_path, now, why):
    folder = RunFolder(tmp_path)
    folder.keep_recordings(SPLIT, USED)
    kept = folder.split.read_bytes()
    other = Split({"p1": "test", "p2": "train"}, 0, "60/20/20")
    with pytest.raises(RunFolderError, match=f"have changed since .* was begun: {why}.*Put them back.*`out=...`"):
        folder.keep_recordings(other, attrs.evolve(USED, **now))
    assert folder.split.read_bytes() == kept


@pytest.mark.parametrize("now", [{}, {"files": ("g",)}, {"frames": "y"}], ids=["same", "touched", "read elsewhere"])
def test_recordings_that_are_the_same_are_kept_as_they_were(tmp_path, now):
    """Copied files have other times; another machine may round frames otherwise. One of the two is enough."""
    folder = RunFolder(tmp_path)
    folder.keep_recordings(SPLIT, USED)
    kept = folder.recordings.read_bytes()
    folder.keep_recordings(SPLIT, attrs.evolve(USED, **now))
    assert folder.recordings.read_bytes() == kept
    assert from_json(folder.split.read_text(encoding="utf-8")) == SPLIT


def test_other_patients_are_refused_in_a_folder_of_before_recordings_were_kept(tmp_path):
    folder = RunFolder(tmp_path)
    folder.keep_recordings(SPLIT, USED)
    folder.recordings.unlink()
    folder.keep_recordings(SPLIT, USED)
    folder.recordings.unlink()
    with pytest.raises(RunFolderError, match="other patients are in its parts"):
        folder.keep_recordings(Split({"p1": "test", "p2": "train"}, 0, "60/20/20"), USED)
