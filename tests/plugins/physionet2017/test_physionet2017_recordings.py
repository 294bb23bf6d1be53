"""The 2017 challenge in each of its forms: found, labelled from the right file, read bit by bit."""

from __future__ import annotations

import csv
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from real_frames import prepared_by
from scipy.io import loadmat

from clocs_core import DataError, DataNotFound, Drop, Entry
from clocs_core.testing import checks_of, failures
from clocs_plugins.physionet2017 import RHYTHM, PhysioNet2017Options, clocs_datasets, load, scan

(OFFER,) = clocs_datasets()
OLD = {"A00001": "N", "A00002": "A", "A00003": "O", "A00004": "~"}
NEW = {**OLD, "A00003": "~"}  # as if a revision had found it noisy


def write(folder, record, seed=0, length=3000, header=True):
    folder.mkdir(parents=True, exist_ok=True)
    samples = np.random.default_rng(seed).integers(-900, 900, length).astype("<i2")
    start = struct.pack("<5i", 30, 1, length, 0, 4) + b"val\0"
    (folder / f"{record}.mat").write_bytes(start + samples.tobytes())
    if header:
        line = f"{record}.mat 16+24 1000/mV 16 0 {samples[0]} 0 0 ECG "
        (folder / f"{record}.hea").write_bytes(f"{record} 1 300 {length} 2014-05-08 05:05:15 \n{line}\n".encode())
    return samples


def write_all(folder, header=True):
    return {record: write(folder, record, i, header=header) for i, record in enumerate(OLD)}


def write_labels(file, symbols, end="\n"):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes("".join(f"{record},{symbol}{end}" for record, symbol in symbols.items()).encode())


def list_in(root, **options):
    return scan(root, RHYTHM, PhysioNet2017Options(**options))


def symbols_of(listing):
    return {entry.record: None if entry.label is None else "NAO~"[entry.label] for entry in listing.entries}


# --------------------------------------------------------------------------------------------------------------- forms


@pytest.mark.parametrize("root", ["", "training2017", "zip"])
def test_the_unpacked_archive_is_found_with_or_without_its_folder(tmp_path, root):
    place = tmp_path / "zip" / "training2017" if root == "zip" else tmp_path / root
    written = write_all(place)
    write_labels(place / "REFERENCE.csv", OLD, end="\r\n")
    listing = list_in(tmp_path / "zip" if root == "zip" else tmp_path)
    assert symbols_of(listing) == OLD
    assert "with headers" in listing.form
    assert all(entry.patient == entry.record for entry in listing.entries)
    for entry in listing.entries:
        record = load(entry, PhysioNet2017Options())
        np.testing.assert_array_equal(record.samples[0], written[entry.record])
        assert (record.channels, record.unit, record.sampling_rate, record.gain) == (("ECG",), "mV", 300, 1000)


@pytest.mark.parametrize("at_root", [True, False])
def test_the_tree_of_the_web_site_is_found(tmp_path, at_root):
    tree = tmp_path if at_root else tmp_path / "training"
    for record in OLD:
        write(tree / "A00", record)
    write(tree / "A08", "A08528")
    write_labels(tmp_path / "REFERENCE-v3.csv", {**NEW, "A08528": "N"})
    listing = list_in(tmp_path)
    assert symbols_of(listing) == {**NEW, "A08528": "N"}
    assert listing.form.startswith("recordings in folders of")
    assert listing.notes == ()


def test_recordings_without_headers_are_read_as_all_of_the_set_are(tmp_path):
    written = write_all(tmp_path, header=False)
    write_labels(tmp_path / "REFERENCE.csv", OLD)
    listing = list_in(tmp_path)
    assert "without headers" in listing.form
    record = load(listing.entries[1], PhysioNet2017Options())
    np.testing.assert_array_equal(record.samples[0], written["A00002"])
    assert (record.channels, record.unit, record.sampling_rate, record.gain) == (("ECG",), "mV", 300, 1000)
    assert listing.entries[1].files == (tmp_path / "A00002.mat",)


def test_what_is_missing_or_odd_is_told(tmp_path):
    write_all(tmp_path)
    write(tmp_path, "A00010", header=False)
    write(tmp_path, "A00009")
    (tmp_path / "A00004.mat").unlink()
    write_labels(tmp_path / "REFERENCE-v3.csv", {**OLD, "A00009": "?", "A00500": "N", "A00501": "N"})
    listing = list_in(tmp_path)
    assert listing.drops == (Drop("missing file", "A00004"), Drop("unmapped label", "A00009"))
    assert symbols_of(listing) == {"A00001": "N", "A00002": "A", "A00003": "O", "A00010": None}
    folder = tmp_path.name
    assert listing.notes == (
        f"3 of 7 recordings listed in REFERENCE-v3.csv are not in {folder}/.",
        f"1 recordings in {folder}/ are not in REFERENCE-v3.csv: they have no label.",
    )
    assert "some without headers" in listing.form


def test_entries_come_in_the_order_of_their_numbers(tmp_path):
    for record in ("x10", "x9", "x1", "x01"):
        write(tmp_path, record, header=False)
    assert [entry.record for entry in list_in(tmp_path).entries] == ["x01", "x1", "x9", "x10"]


def test_a_folder_without_recordings_is_refused_with_what_was_found(tmp_path):
    (tmp_path / "readme.txt").write_text("hello")
    with pytest.raises(DataNotFound, match=r"No recording of the 2017 challenge .* found readme\.txt"):
        list_in(tmp_path)
    with pytest.raises(DataNotFound, match="found nothing"):
        list_in(tmp_path / "nowhere")


def test_twelve_leads_are_another_data_set(tmp_path):
    lines = [f"A0001.mat 16+24 1000/mV 16 0 0 0 0 {i}" for i in range(12)]
    (tmp_path / "A0001.hea").write_text("\n".join(["A0001 12 500 5000", *lines]))
    with pytest.raises(DataNotFound, match="have 12 leads"):
        list_in(tmp_path)
    (tmp_path / "A0001.mat").write_bytes(struct.pack("<5i", 30, 12, 5000, 0, 4) + b"val\0" + bytes(120_000))
    with pytest.raises(DataNotFound, match="have 12 leads"):
        list_in(tmp_path)
    (tmp_path / "A0001.hea").unlink()
    with pytest.raises(DataNotFound, match=r"have 12 leads \(A0001\), .*physionet2020"):
        list_in(tmp_path)
    with pytest.raises(DataError, match="12 channels, but its header describes 1"):
        load(Entry("A0001", "A0001", None, [tmp_path / "A0001.mat"]), PhysioNet2017Options())
    (tmp_path / "A0001.mat").write_bytes(b"MATLAB 5.0 MAT-file" + bytes(500))
    with pytest.raises(DataNotFound, match="are structures of MATLAB 5"):
        list_in(tmp_path)


# -------------------------------------------------------------------------------------------------------------- labels


def test_of_two_label_files_in_one_folder_the_version_decides(tmp_path):
    write_all(tmp_path)
    write_labels(tmp_path / "REFERENCE-v3.csv", NEW)
    write_labels(tmp_path / "REFERENCE.csv", OLD)
    assert symbols_of(list_in(tmp_path)) == NEW
    assert symbols_of(list_in(tmp_path, labels="plain")) == OLD
    original = list_in(tmp_path, labels="original")
    assert symbols_of(original) == OLD
    assert original.notes == (f"Labels are those of REFERENCE.csv in {tmp_path.name}/, not of REFERENCE-original.csv.",)


def test_the_label_file_beside_the_recordings_comes_before_one_further_away(tmp_path):
    """Copies of the set are numbered anew; the final labels, one folder up, are then those of other recordings."""
    write_all(tmp_path / "training2017")
    write_labels(tmp_path / "training2017" / "REFERENCE.csv", OLD)
    write_labels(tmp_path / "REFERENCE-v3.csv", NEW)
    listing = list_in(tmp_path)
    assert symbols_of(listing) == OLD
    assert listing.notes[0] == "Labels are those of REFERENCE.csv in training2017/, not of REFERENCE-v3.csv."
    assert "is further from the recordings and was not used" in listing.notes[1]
    assert symbols_of(list_in(tmp_path, label_file="REFERENCE-v3.csv")) == NEW


def test_a_label_file_further_away_counts_only_if_it_lists_one_of_the_recordings(tmp_path):
    write(tmp_path / "training2017", "train_1", header=False)
    write_labels(tmp_path / "REFERENCE-v3.csv", NEW)
    (tmp_path / "REFERENCE.csv").write_text("Recording,First_label\nA0001,5\n")  # of another challenge
    listing = list_in(tmp_path)
    assert symbols_of(listing) == {"train_1": None}
    assert listing.notes == ("No label file (REFERENCE-v3.csv, ...) of training2017/ was found: it has no labels.",)
    assert symbols_of(list_in(tmp_path / "training2017")) == {"train_1": None}


def test_a_label_file_above_the_data_folder_is_found(tmp_path):
    write_all(tmp_path / "training2017")
    write_labels(tmp_path / "REFERENCE-v3.csv", NEW)
    assert symbols_of(list_in(tmp_path / "training2017")) == NEW


def test_a_file_that_holds_no_labels_is_refused(tmp_path):
    write_all(tmp_path)
    for raw in (b"", b"\xff\xfe\x00", b"A00001;N\n", b'"' + b"x" * 200_000):
        (tmp_path / "REFERENCE.csv").write_bytes(raw)
        with pytest.raises(DataError, match="lines such as 'A00001,N'"):
            list_in(tmp_path)
    with pytest.raises(DataNotFound, match=r"no label file .*mine\.csv"):
        list_in(tmp_path, label_file="mine.csv")


# ----------------------------------------------------------------------------------------------- promises and real data


def test_the_offer_keeps_its_promises(tmp_path):
    write_all(tmp_path)
    write_labels(tmp_path / "REFERENCE.csv", OLD)
    assert failures(checks_of(OFFER, root=tmp_path)) == {}


def test_the_settings_are_those_of_the_paper():
    """No resampling, no normalisation, 64/16/20, mini-batches of 256 (appendix A)."""
    defaults = OFFER.defaults
    assert (defaults.normalise, defaults.split, defaults.batch_size) == ("none", "64/16/20", 256)
    framing = OFFER.framing(1)
    assert (framing.frame_samples, framing.sampling_rate, framing.source_samples) == (2500, None, None)


@pytest.mark.parametrize(
    ("folder", "count"), [("sample2017/validation", 300), ("sample2017", 300), ("training2017_part", 2000)]
)
def test_real_recordings_have_the_labels_of_their_own_table(test_data: Path, folder, count):
    root = test_data / "physionet2017" / folder
    listing = list_in(root)
    (table,) = root.rglob("REFERENCE.csv")
    with open(table, encoding="utf-8", newline="") as lines:
        expected = {row[0]: row[1].strip() for row in csv.reader(lines)}
    assert len(listing.entries) == count
    assert listing.drops == ()
    found = symbols_of(listing)
    assert found == {record: expected[record] for record in found}


@pytest.mark.parametrize(("folder", "step"), [("sample2017/validation", 3), ("training2017_part", 10)])
def test_real_recordings_are_what_scipy_reads(test_data: Path, folder, step):
    """Of the whole 2,300, each was compared once; a part is enough to see a change."""
    heights = []
    for entry in list_in(test_data / "physionet2017" / folder).entries[::step]:
        record = load(entry, PhysioNet2017Options())
        expected = loadmat(entry.files[-1])["val"]
        np.testing.assert_array_equal(record.samples, expected)
        assert record.samples.shape[1] >= 2700, "nine seconds or more"
        heights.append(np.percentile(np.abs(record.physical()), 99.5))
    assert 0.3 < np.median(heights) < 2, "mV: the height of a QRS"


def test_real_recordings_give_the_frames_that_their_lengths_say(test_data: Path, tmp_path):
    listing = list_in(test_data / "physionet2017" / "sample2017")
    frames = sum((entry.files[-1].stat().st_size - 24) // 2 // 2500 for entry in listing.entries)
    made = prepared_by(OFFER, listing, PhysioNet2017Options(), tmp_path)
    assert made.frames.shape == (frames, 1, 2500)
    assert made.frames.dtype == np.int16, "nothing is lost"
    assert made.valid.sum() == frames - made.drops.counts.get("flat", 0)
    assert set(made.drops.counts) <= {"flat"}


# ---------------------------------------------------------------------------------------------------------------- fuzz


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=st.binary(max_size=60), signal=st.binary(max_size=60), header=st.binary(max_size=60))
def test_files_of_any_bytes_are_read_or_refused(tmp_path, table, signal, header):
    """A damaged download ends in a sentence, not in a traceback of something else."""
    write_all(tmp_path)
    (tmp_path / "REFERENCE.csv").write_bytes(b"A00001,N\n" + table)
    (tmp_path / "A00001.mat").write_bytes(signal)
    (tmp_path / "A00002.hea").write_bytes(header)
    try:
        for entry in list_in(tmp_path).entries[:2]:
            load(Entry(entry.record, entry.patient, entry.label, entry.files), PhysioNet2017Options())
    except (DataError, OSError):
        pass
