"""The fingerprint of prepared frames: everything that they depend on, and nothing else."""

from __future__ import annotations

import os
from enum import Enum, auto
from pathlib import Path

import attrs
import numpy as np
import pytest
from fake_recordings import (
    FakeOptions,
    fake_entries,
    load_file_of_numbers,
)
from prepared_sets import make

from clocs_core.contracts.offers import NoOptions
from clocs_core.contracts.records import Entry, Framing
from clocs_core.data.recipe import Recipe
from clocs_core.errors import DataError


def test_labels_are_no_part_of_the_fingerprint_and_everything_else_is(tmp_path):
    """Another task on the same recordings shares the frames; another reader, framing or option does not."""
    entries = fake_entries(5)
    first = make(tmp_path, entries).fingerprint
    assert make(tmp_path, [Entry(e.record, e.patient, None) for e in entries]).fingerprint == first
    others = {
        make(tmp_path, entries, revision=2).fingerprint,
        make(tmp_path, entries, dataset="other").fingerprint,
        make(tmp_path, entries, framing=Framing(frame_samples=4)).fingerprint,
        make(tmp_path, entries, framing=Framing(frame_samples=5, notch=0.1)).fingerprint,
        make(tmp_path, entries, framing=Framing(frame_samples=5, band_pass=(0, 0.1))).fingerprint,
        make(tmp_path, entries, options=FakeOptions(samples=16)).fingerprint,
        make(tmp_path, entries, channels=("L1", "L0")).fingerprint,
        make(tmp_path, entries[:4]).fingerprint,
        make(tmp_path, [Entry(e.record, "one patient") for e in entries]).fingerprint,
    }
    assert len(others | {first}) == 10


def test_frames_that_older_versions_prepared_are_found_where_nothing_is_filtered():
    """Else every data set would be prepared again."""
    entries = [Entry("r", "p")]
    made = Recipe(dataset="d", entries=entries, load=load_file_of_numbers, options=NoOptions(), framing=Framing())
    assert attrs.evolve(made, channels=("I",)).fingerprint() == "34e71c06a87b051d"


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
