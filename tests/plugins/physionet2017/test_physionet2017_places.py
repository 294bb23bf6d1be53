"""A copy of the 2017 challenge in several folders: all are read, and each recording counts once."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from clocs_core import DataNotFound, Drop
from clocs_core.data.splits import split_patients
from clocs_core.testing import checks_of, failures
from clocs_plugins.physionet2017 import RHYTHM, PhysioNet2017Options, clocs_datasets, load, scan
from clocs_plugins.physionet2017.places import find_places

(OFFER,) = clocs_datasets()
SAMPLE = "sample2017/validation"


def write(folder: Path, content: dict[str, int], labels: str = "", header: bool = False) -> None:
    """Recordings by name, each of a content that its number stands for; and a symbol for each."""
    folder.mkdir(parents=True, exist_ok=True)
    for record, number in content.items():
        samples = np.random.default_rng(number).integers(-900, 900, 3000).astype("<i2")
        start = struct.pack("<5i", 30, 1, 3000, 0, 4) + b"val\0"
        (folder / f"{record}.mat").write_bytes(start + samples.tobytes())
        if header:
            line = f"{record}.mat 16+24 1000/mV 16 0 {samples[0]} 0 0 ECG"
            (folder / f"{record}.hea").write_text(f"{record} 1 300 3000\n{line}\n")
    if labels:
        rows = [f"{record},{symbol}\n" for record, symbol in zip(content, labels, strict=True)]
        (folder / "REFERENCE-v3.csv").write_text("".join(rows))


def list_in(root: Path, **options: str):
    return scan(root, RHYTHM, PhysioNet2017Options(**options))


def records_of(listing) -> dict[str, str]:
    return {entry.record: "NAO~"[entry.label] if entry.label is not None else "" for entry in listing.entries}


def test_every_folder_is_read_and_what_two_have_counts_once(tmp_path):
    """One recording under two names would be two patients, and could be in two parts of a split."""
    write(tmp_path / "training2017_part", {"train_1": 1, "train_2": 2, "train_3": 3}, "NAO")
    write(tmp_path / SAMPLE, {"A00001": 9, "A00002": 2, "A00003": 3}, "~AN", header=True)
    listing = list_in(tmp_path)
    assert records_of(listing) == {"train_1": "N", "train_2": "A", "train_3": "O", "A00001": "~"}
    assert listing.drops == (
        Drop("the same as another recording", "A00002"),
        Drop("the same as another recording", "A00003"),
    )
    assert listing.notes == (
        f"2 of 3 recordings in {SAMPLE}/ are in training2017_part/ too, byte for byte, and were left out.",
        "For 1 of these the labels differ; those of training2017_part/ were kept.",
    )
    assert listing.form == (f"recordings in training2017_part/, without headers; recordings in {SAMPLE}/, with headers")


def test_one_folder_alone_is_taken_as_it_is(tmp_path):
    """What repeats within a folder is as published: nobody says which of the two names is right."""
    write(tmp_path / "training2017", {"A00001": 1, "A00002": 1}, "NA")
    write(tmp_path / SAMPLE, {"A00001": 1, "A00005": 5}, "AO")
    assert records_of(list_in(tmp_path / "training2017")) == {"A00001": "N", "A00002": "A"}
    for root in (tmp_path / SAMPLE, tmp_path / "sample2017"):
        assert records_of(list_in(root)) == {"A00001": "A", "A00005": "O"}
        assert list_in(root).notes == ()
    assert records_of(list_in(tmp_path)) == {"A00001": "N", "A00002": "A", "A00005": "O"}


def test_the_complete_download_is_the_training_set_alone(tmp_path):
    """The challenge drew its sample set from the training set, under the same names."""
    names = [f"A{number:05}" for number in range(1, 61)]
    write(tmp_path / "training2017", dict(zip(names, range(60), strict=True)), "NAO~" * 15, header=True)
    write(tmp_path / "validation", dict(zip(names[:20], range(20), strict=True)), "NAO~" * 5, header=True)
    write(tmp_path / SAMPLE, dict(zip(names[:20], range(20), strict=True)), "NAO~" * 5, header=True)
    listing = list_in(tmp_path)
    assert [entry.record for entry in listing.entries] == names
    assert {entry.files[0].parent.name for entry in listing.entries} == {"training2017"}
    assert failures(checks_of(OFFER, root=tmp_path)) == {}, "such as that a scan leaves signals unread"
    assert len(listing.drops) == 40, "found and dropped add up"
    assert listing.drops[0].record == "validation/A00001", "a name tells one of the three"
    assert listing.notes == (
        "20 of 20 recordings in validation/ are in training2017/ too, byte for byte, and were left out.",
        f"20 of 20 recordings in {SAMPLE}/ are in training2017/ too, byte for byte, and were left out.",
    )


def test_one_name_with_other_contents_is_another_recording_and_another_patient(tmp_path):
    """Copies are numbered anew, so that a number says nothing beyond its folder."""
    write(tmp_path / "training2017", {"A00001": 1, "A00002": 2}, "NA")
    write(tmp_path / SAMPLE, {"A00001": 5, "A00002": 6, "A00003": 7, "A00004": 1}, "OO~N")
    write(tmp_path / "sample2017", {"A00002": 8}, "~")
    listing = list_in(tmp_path)
    assert records_of(listing) == {
        "A00001": "N", "A00002": "A", f"{SAMPLE}/A00001": "O", f"{SAMPLE}/A00002": "O", "A00003": "~",
        "sample2017/A00002": "~",
    }  # fmt: skip
    assert all(entry.patient == entry.record for entry in listing.entries)
    assert listing.notes[1:] == (
        f"2 recordings in {SAMPLE}/ have the names of others, of other contents; they are listed as {SAMPLE}/A00001 "
        "and so on.",
        "1 recordings in sample2017/ have the names of others, of other contents; they are listed as sample2017/A00002 "
        "and so on.",
    )
    renamed = listing.entries[2]
    record = load(renamed, PhysioNet2017Options())
    assert (record.record, record.patient) == (f"{SAMPLE}/A00001", f"{SAMPLE}/A00001")
    np.testing.assert_array_equal(record.samples[0], np.random.default_rng(5).integers(-900, 900, 3000))


def test_labels_are_chosen_for_each_folder(tmp_path):
    """Each has its own numbering. A label file that two share is told of once."""
    write(tmp_path / "training2017", {"A00001": 1, "A00002": 2})
    write(tmp_path / "more", {"A00003": 3})
    write(tmp_path / SAMPLE, {"A00001": 5}, "~")
    (tmp_path / "REFERENCE-v3.csv").write_text("A00001,N\nA00002,A\nA00003,O\nA00004,N\n")
    listing = list_in(tmp_path)
    expected = {"A00001": "N", "A00002": "A", "A00003": "O", f"{SAMPLE}/A00001": "~"}
    assert records_of(listing) == expected
    assert listing.notes[0] == "1 of 4 recordings listed in REFERENCE-v3.csv are not in training2017/ or more/."
    named = list_in(tmp_path, label_file="REFERENCE-v3.csv")
    assert records_of(named) == {**expected, f"{SAMPLE}/A00001": "N"}, "a file that is named serves every folder"
    assert sum("Labels are those of" in note for note in named.notes) == 1


def test_a_recording_that_the_better_folder_cannot_use_is_taken_from_the_other(tmp_path):
    write(tmp_path / "training2017", {"A00001": 1, "A00002": 2}, "?N")
    write(tmp_path / SAMPLE, {"A00007": 1}, "A")
    listing = list_in(tmp_path)
    assert records_of(listing) == {"A00002": "N", "A00007": "A"}
    assert listing.drops == (Drop("unmapped label", "A00001"),)


@pytest.mark.parametrize("target", ["training", "training/A00", "."])
def test_a_folder_and_a_link_to_it_are_one_place(tmp_path, target):
    """Else every recording of it would be told of as a repetition."""
    if target == ".":
        write(tmp_path, {"A00001": 1}, "N")
    else:
        write(tmp_path / "training" / "A00", {"A00001": 1, "A00002": 2}, "NA")
        write(tmp_path / "training" / "A01", {"A01001": 3}, "N")
    before = list_in(tmp_path)
    (tmp_path / "zzz").symlink_to(tmp_path / target)
    (tmp_path / "validation").symlink_to(tmp_path / target)
    assert list_in(tmp_path) == before
    assert len(find_places(tmp_path)) == 1


@pytest.mark.parametrize("header", [True, False])
def test_recordings_of_another_challenge_beside_good_ones_are_passed_over(tmp_path, header):
    """They have nearly the same names. Alone they are refused."""
    other = tmp_path / "aaa"
    other.mkdir()
    (other / "A0001.mat").write_bytes(struct.pack("<5i", 30, 12, 50, 0, 4) + b"val\0" + bytes(1200))
    if header:
        lines = [f"A0001.mat 16+24 1000/mV 16 0 0 0 0 {lead}" for lead in range(12)]
        (other / "A0001.hea").write_text("\n".join(["A0001 12 500 50", *lines]))
    with pytest.raises(DataNotFound, match="have 12 leads"):
        list_in(tmp_path)
    write(tmp_path / "bbb", {"A00001": 1}, "N")
    listing = list_in(tmp_path)
    assert records_of(listing) == {"A00001": "N"}
    assert listing.notes == ("The recordings in aaa/ have 12 leads (A0001): they are of another set, and left out.",)
    assert "aaa" not in listing.form


def test_real_folders_are_read_together_each_recording_once(test_data: Path):
    """Counted by comparing all contents, whatever their names."""
    root = test_data / "physionet2017"
    listing = list_in(root)
    contents = {path.read_bytes() for path in root.rglob("*.mat")}
    assert (len(listing.entries), len(listing.drops), len(contents)) == (2228, 72, 2228)
    assert {entry.files[-1].read_bytes() for entry in listing.entries} == contents
    split = split_patients((entry.patient for entry in listing.entries), 0, "64/16/20")
    assert tuple(split.counts().values()) == (1427, 356, 445)
    assert sum((entry.files[-1].stat().st_size - 24) // 2 // 2500 for entry in listing.entries) == 7450, "frames"
    assert listing.notes[-2:] == (
        f"72 of 300 recordings in {SAMPLE}/ are in training2017_part/ too, byte for byte, and were left out.",
        "For 1 of these the labels differ; those of training2017_part/ were kept.",
    )
