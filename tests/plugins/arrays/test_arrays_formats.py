"""Folders of EDF, WFDB, HDF5, MATLAB, DICOM and XML files as data sets: who, what and at which rate, from the files."""

from __future__ import annotations

from pathlib import Path

import attrs
import h5py
import made_files
import numpy as np
import pytest
from made_files import wave, write_edf

from clocs_core import DataError, Framing, Listing, Task, Unavailable
from clocs_core.cli import main
from clocs_core.data.recipe import Recipe
from clocs_plugins.arrays import ArraysOptions, load, scan

ONE = Task("label", classes=())
PLAIN = ArraysOptions()


def fill(folder: Path, ending: str, count: int = 6, rate: int = 100, **more: str) -> Path:
    """Write recordings of half as many patients, who are named by a table beside them."""
    held = folder / "files"
    held.mkdir()
    rows = []
    for number in range(count):
        made_files.WRITERS[ending](held / f"r{number}{ending}", wave(rate, seed=number), rate, **more)
        rows.append(f"r{number},p{number // 2},{'ab'[number // 2 % 2]}")
    (folder / "table.csv").write_text("\n".join(["file,patient,label", *rows]))
    return held


def with_table(folder: Path, options: ArraysOptions = PLAIN) -> ArraysOptions:
    return attrs.evolve(options, patients=folder / "table.csv", labels=folder / "table.csv")


def facts(listing: Listing) -> list[tuple[str, object]]:
    return [(entry.patient, entry.label) for entry in listing.entries]


@pytest.mark.parametrize("ending", made_files.WRITERS)
def test_every_format_is_a_data_set_with_a_table(tmp_path: Path, ending: str):
    options = with_table(tmp_path)
    listing = scan(fill(tmp_path, ending), ONE, options)
    assert facts(listing) == [("p0", 0), ("p0", 0), ("p1", 1), ("p1", 1), ("p2", 0), ("p2", 0)]
    assert listing.shortest == 1000
    assert not listing.drops
    record = load(listing.entries[3], options)
    assert record.sampling_rate == 100.0
    volts = record.physical()[:2] / (1000 if record.unit == "uV" else 1)
    np.testing.assert_allclose(volts, wave(100, seed=3), atol=3e-3)


def test_a_folder_is_a_patient_and_text_beside_recordings_is_not_read(tmp_path: Path):
    for patient in ("anna", "ben"):
        (tmp_path / patient).mkdir()
        write_edf(tmp_path / patient / "night.edf", wave(100), 100, "X")
        (tmp_path / patient / "notes.txt").write_text("she slept well")
    listing = scan(tmp_path, ONE, PLAIN)
    assert [entry.patient for entry in listing.entries] == ["anna", "ben"]
    assert "Files of other kinds are not read: 2 .txt." in listing.notes


def test_the_patient_is_the_one_that_each_file_names(tmp_path: Path):
    for number, patient in enumerate(("anna", "ben", "anna")):
        write_edf(tmp_path / f"{number}.edf", wave(100), 100, patient)
    assert [entry.patient for entry in scan(tmp_path, ONE, PLAIN).entries] == ["anna", "ben", "anna"]
    write_edf(tmp_path / "3.edf", wave(100), 100, "X")  # one that says nothing: no one is known
    listing = scan(tmp_path, ONE, PLAIN)
    assert [entry.patient for entry in listing.entries] == ["0.edf", "1.edf", "2.edf", "3.edf"]
    assert any("each recording counts as one patient" in note for note in listing.notes)


def test_one_name_for_all_files_names_nobody(tmp_path: Path):
    for number in range(3):
        write_edf(tmp_path / f"{number}.edf", wave(100), 100, "ANONYMOUS")
    assert len({entry.patient for entry in scan(tmp_path, ONE, PLAIN).entries}) == 3


def test_a_rule_finds_the_patient_in_the_name(tmp_path: Path):
    for name in ("SC4001E0", "SC4002E0", "SC4011E0"):
        write_edf(tmp_path / f"{name}-PSG.edf", wave(100), 100)
    options = attrs.evolve(PLAIN, patient_pattern=r"^SC4(\d\d)")
    assert [entry.patient for entry in scan(tmp_path, ONE, options).entries] == ["00", "00", "01"]
    with pytest.raises(DataError, match=r"`patient_pattern='x\(.\)'` finds no patient in 'SC4001E0-PSG\.edf'"):
        scan(tmp_path, ONE, attrs.evolve(PLAIN, patient_pattern="x(.)"))


def test_a_long_recording_is_read_by_window(tmp_path: Path):
    samples = wave(100, seconds=25.0)
    (tmp_path / "a").mkdir()
    write_edf(tmp_path / "a" / "night.edf", samples, 100)
    write_edf(tmp_path / "a" / "nap.edf", samples[:, :1200], 100)
    options = attrs.evolve(PLAIN, window=10.0)
    listing = scan(tmp_path, ONE, options)
    assert [entry.record for entry in listing.entries] == ["nap.edf", "night.edf[0:1000]", "night.edf[1000:2500]"]
    assert listing.shortest == 1000
    record = load(listing.entries[2], options)
    np.testing.assert_allclose(record.samples, samples[:, 1000:], atol=2e-4)


def test_channels_that_all_have_are_read_and_some_can_be_chosen(tmp_path: Path):
    write_edf(tmp_path / "1.edf", wave(100, channels=3), 100, names=("ECG", "EEG", "P"), units=("mV", "uV", "mmHg"))
    write_edf(tmp_path / "2.edf", wave(100, channels=2), 100, names=("EEG", "ECG"), units=("uV", "mV"))
    (tmp_path / "3.edf").write_bytes(b"cut")
    listing = scan(tmp_path, ONE, PLAIN)
    assert listing.channels == ("ECG", "EEG")
    assert "Channels that not every recording has are not read: P." in listing.notes
    assert [(drop.reason, drop.record) for drop in listing.drops] == [("cannot be read", "3.edf")]
    options = attrs.evolve(PLAIN, names=("ECG",))
    listing = scan(tmp_path, ONE, options)
    records = [load(entry, options) for entry in listing.entries]
    assert [(record.channels, record.unit) for record in records] == [(("ECG",), "mV")] * 2
    options = attrs.evolve(PLAIN, names=("P",))
    assert [drop.reason for drop in scan(tmp_path, ONE, options).drops][1:] == ["missing channel P"]


def test_what_overrules_the_files_is_told_and_so_is_a_file_that_cannot_be_read(tmp_path: Path):
    write_edf(tmp_path / "1.edf", wave(100), 100, units=("uV", "uV"))
    write_edf(tmp_path / "2.edf", wave(200), 200, units=("uV", "uV"))
    (tmp_path / "3.edf").write_bytes(b"cut")
    said = " ".join(scan(tmp_path, ONE, PLAIN).notes)
    assert "1 of 3 files cannot be read. The first: " in said
    assert "3.edf" in said
    given = " ".join(scan(tmp_path, ONE, attrs.evolve(PLAIN, sampling_rate=100.0, unit="mV")).notes)
    assert "1 of 2 files say 200 Hz; 100 Hz was given, and is used for all." in given
    assert "2 of 2 files say uV; mV was given, and is used without conversion." in given


def test_the_file_that_has_no_channel_of_the_others_is_named(tmp_path: Path):
    for name, channels in (("1", ("ECG", "EEG")), ("2", ("EEG", "ECG")), ("3", ("X", "Y"))):
        write_edf(tmp_path / f"{name}.edf", wave(100, channels=2), 100, names=channels, units=("mV", "mV"))
    with pytest.raises(DataError, match=r"No channel is in all of 3 recordings .*; 3\.edf lacks E.G\."):
        scan(tmp_path, ONE, PLAIN)


def test_processed_copies_of_a_bids_data_set_are_no_patient(tmp_path: Path):
    """They are copies of recordings of all parts, under another name."""
    for folder in ("sub-01/eeg", "sub-02/eeg", "derivatives/filtered/sub-01/eeg"):
        (tmp_path / folder).mkdir(parents=True)
        write_edf(tmp_path / folder / "rest.edf", wave(100), 100)
    listing = scan(tmp_path, ONE, PLAIN)
    assert [entry.patient for entry in listing.entries] == ["sub-01", "sub-02"]
    assert "Not read, since a BIDS data set has no recordings of its own there: derivatives." in listing.notes


def test_an_array_of_recordings_in_hdf5_is_matched_by_its_ids(tmp_path: Path):
    """As CODE-15 is published: (recording, sample, channel), a table in another order, one row more of zeros."""
    values = np.random.default_rng(0).normal(size=(4, 64, 2)).astype(np.float32)
    with h5py.File(tmp_path / "exams.hdf5", "w") as file:
        file["tracings"], file["exam_id"] = values, [11, 12, 13, 0]
    (tmp_path / "exams.csv").write_text("exam_id,patient_id,label\n13,b,AF\n11,a,SR\n12,a,AF\n")
    options = ArraysOptions(
        tmp_path / "exams.csv", tmp_path / "exams.csv", 400.0, axes=("recording", "sample", "channel")
    )
    listing = scan(tmp_path / "exams.hdf5", ONE, options)
    assert facts(listing) == [("a", 1), ("a", 0), ("b", 0)]
    assert [drop.reason for drop in listing.drops] == ["not in the table of patients"]
    assert np.array_equal(load(listing.entries[2], options).samples, values[2].T)


def test_a_missing_library_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_edf(tmp_path / "1.edf", wave(100), 100)
    monkeypatch.setitem(__import__("sys").modules, "edfio", None)
    with pytest.raises(Unavailable, match=r"needs edfio: install it with `pip install 'clocs\[edf\]'`"):
        scan(tmp_path, ONE, PLAIN)


def test_none_that_can_be_read_is_one_sentence(tmp_path: Path):
    for number in range(2):
        (tmp_path / f"{number}.edf").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"None of 2 files can be read. The first: .*0\.edf does not begin as EDF"):
        scan(tmp_path, ONE, PLAIN)


@pytest.mark.parametrize("ending", [".edf", ".csv"])
def test_recordings_of_several_rates_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ending: str
):
    """Frames of one number of samples are of 25 s in one file and of 12.5 s in the other."""
    held = tmp_path / "files"
    held.mkdir()
    for number, rate in enumerate((100, 200, 100)):
        samples = wave(rate, seconds=60)
        if ending == ".edf":
            write_edf(held / f"{number}.edf", samples, rate)
        else:
            rows = [f"{place / rate},{a},{b}" for place, (a, b) in enumerate(samples.T)]
            (held / f"{number}.csv").write_text("\n".join(["time (s),I,II", *rows]))
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    assert main(["data", "prepare", "arrays", "--root", str(held), "--workers", "1"]) == 0
    said = capsys.readouterr().out
    assert "differ in their sampling rate (2 at 100 Hz, 1 at 200 Hz), so that their frames differ in length." in said
    assert "`evaluate_framing.sampling_rate=100`" in said
    plain = ["run", "--plugin", "cmsc", "--dataset", "arrays", "--root", str(held), "--dry-run", "--batch-size", "4"]
    assert main(plain) == 0
    assert "differ in their sampling rate" in capsys.readouterr().out
    same = ["-o", "pretrain_framing.sampling_rate=100", "-o", "evaluate_framing.sampling_rate=100"]
    assert main([*plain, *same]) == 0
    assert "differ in their sampling rate" not in capsys.readouterr().out


@pytest.mark.parametrize("count", [1, 6])
def test_arrays_beside_a_file_of_each_recording_are_not_read_instead(tmp_path: Path, count: int):
    """Peaks that somebody kept there, or embeddings of clocs itself."""
    folder = fill(tmp_path, ".hea", count)
    np.savez(folder / "peaks.npz", rpeaks=np.arange(640.0).reshape(5, 128), fs=250)
    listing = scan(folder, ONE, PLAIN)
    assert len(listing.entries) == count
    assert "Files of other kinds are not read: 1 .npz." in listing.notes


def test_an_array_of_recordings_is_read_whatever_text_says_of_it(tmp_path: Path):
    """Up to four texts or arrays, such as labels; more are recordings."""
    np.savez(tmp_path / "all.npz", x=np.ones((5, 640)), sampling_rate=125)
    np.save(tmp_path / "labels.npy", np.arange(5))
    for number in range(1, 4):
        (tmp_path / f"table{number}.csv").write_text("1\n2\n3\n")
    assert len(scan(tmp_path, ONE, PLAIN).entries) == 5
    for number in range(4, 6):
        (tmp_path / f"table{number}.csv").write_text("1\n2\n3\n" * 10)
    with_more = scan(tmp_path, ONE, attrs.evolve(PLAIN, sampling_rate=125.0))
    assert len(with_more.entries) == 6
    assert "Files of other kinds are not read: 1 .npz." in with_more.notes


def test_new_names_in_the_order_of_the_files_are_refused_where_that_differs(tmp_path: Path):
    """As of record 114 of the MIT-BIH data base, which has V5 first."""
    for number, names in enumerate((("MLII", "V5"), ("V5", "MLII"), ("MLII", "V5"))):
        write_edf(tmp_path / f"{number}.edf", wave(100), 100, names=names)
    with pytest.raises(
        DataError, match=r"0\.edf has MLII, V5, 1\.edf has V5, MLII\. Name the channels as the files do"
    ):
        scan(tmp_path, ONE, attrs.evolve(PLAIN, names=("II", "V5")))
    by_name = attrs.evolve(PLAIN, names=("V5", "MLII"))
    records = [load(entry, by_name) for entry in scan(tmp_path, ONE, by_name).entries]
    assert [record.channels for record in records] == [("MLII", "V5"), ("V5", "MLII"), ("MLII", "V5")]


def test_a_heading_in_another_order_is_not_renamed(tmp_path: Path):
    """Only the first text of a folder is opened by the listing."""
    for number, heading in enumerate(("MLII,V5", "V5,MLII")):
        (tmp_path / f"{number}.csv").write_text(heading + "\n" + "1,2\n3,4\n" * 50)
    options = attrs.evolve(PLAIN, names=("II", "V5"), sampling_rate=100.0)
    first, second = scan(tmp_path, ONE, options).entries
    assert load(first, options).channels == ("II", "V5")
    with pytest.raises(ValueError, match=r"would call the file's channel 'MLII' 'V5'"):
        load(second, options)


def test_the_signals_beside_a_header_are_among_the_files_of_a_recording(tmp_path: Path):
    """Else frames of a broken download stay after it was repeated: its header is the same."""
    folder = fill(tmp_path, ".hea", 2)
    files = [[file.name for file in entry.files] for entry in scan(folder, ONE, PLAIN).entries]
    assert files == [["r0.hea", "r0.dat"], ["r1.hea", "r1.dat"]]


def test_other_labels_and_parts_share_prepared_frames_and_another_unit_does_not(tmp_path: Path):
    folder = fill(tmp_path, ".edf")
    options = with_table(tmp_path)
    entries = scan(folder, ONE, options).entries

    def fingerprint(**changes: object) -> str:
        changed = attrs.evolve(options, **changes)
        return Recipe(dataset="arrays", entries=entries, load=load, options=changed, framing=Framing()).fingerprint()

    same = {"labels": "none", "parts": tmp_path / "parts.csv", "label_separator": "|", "label_column": "x"}
    assert {fingerprint(**{name: value}) for name, value in same.items()} == {fingerprint()}
    for changes in ({"unit": "uV"}, {"gain": 2.0}, {"names": ("II",)}, {"window": 5.0}, {"sampling_rate": 50.0}):
        assert fingerprint(**changes) != fingerprint()
