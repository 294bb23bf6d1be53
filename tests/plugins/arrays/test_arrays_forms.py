"""Anybody's arrays: every form of file gives the same recordings, to the last bit, and keeps the kit's promises."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from clocs_core import DataError, Listing, Record, open_array_file
from clocs_core.contracts.records import Framing
from clocs_core.data.preparation import prepare
from clocs_core.data.recipe import Recipe
from clocs_core.testing import checks_of
from clocs_plugins.arrays import ArraysOptions, clocs_datasets, load, scan

OFFER = clocs_datasets()[0]
ONE, MANY, _ = OFFER.tasks
RNG = np.random.default_rng(0)
SIGNAL = RNG.normal(size=(6, 2, 4000)).astype(np.float32)  # (recording, channel, sample)
OWNERS = ["7", "7", "8", "8", "anna", "anna"]
LABELS = ["a", "a", "b", "", "b", "b"]
AT_125 = ArraysOptions(sampling_rate=125.0)


def read(root: Path, options: ArraysOptions = AT_125, task=ONE) -> tuple[Listing, list[Record]]:
    listing = scan(root, task, options)
    return listing, [load(entry, options) for entry in listing.entries]


def same(records: list[Record], signal: Any = SIGNAL) -> bool:
    return len(records) == len(signal) and all(
        record.samples.dtype == np.asarray(one).dtype and np.array_equal(record.samples, one)
        for record, one in zip(records, signal, strict=True)
    )


# ------------------------------------------------------------------------------------------------------------ the forms


def write_npy(folder: Path) -> tuple[Path, ArraysOptions]:
    np.save(folder / "x.npy", SIGNAL)
    return folder / "x.npy", AT_125


def write_fortran(folder: Path) -> tuple[Path, ArraysOptions]:
    np.save(folder / "x.npy", np.asfortranarray(SIGNAL))
    return folder / "x.npy", AT_125


def write_turned(folder: Path) -> tuple[Path, ArraysOptions]:
    np.save(folder / "x.npy", SIGNAL.transpose(2, 0, 1))
    return folder / "x.npy", attrs.evolve(AT_125, axes=("sample", "recording", "channel"))


def write_npz(folder: Path) -> tuple[Path, ArraysOptions]:
    np.savez(folder / "x.npz", patient=OWNERS, label=LABELS, fs=125, x=SIGNAL, channels=["A", "B"], unit="mV")
    return folder / "x.npz", ArraysOptions()


def write_compressed(folder: Path) -> tuple[Path, ArraysOptions]:
    np.savez_compressed(folder / "x.npz", anything=SIGNAL, sampling_rate=np.array([125.0]))
    return folder, ArraysOptions()  # the folder, with nothing else in it


def write_folders(folder: Path) -> tuple[Path, ArraysOptions]:
    for number, (owner, signal) in enumerate(zip(OWNERS, SIGNAL, strict=True)):
        (folder / "unpacked" / owner).mkdir(parents=True, exist_ok=True)
        np.save(folder / "unpacked" / owner / f"{number}.npy", signal)
    return folder, AT_125


def write_parquet(folder: Path) -> tuple[Path, ArraysOptions]:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "patient": np.repeat(OWNERS, 4000),
            "record": np.repeat(np.arange(6), 4000),
            "label": np.repeat(LABELS, 4000),
            "A": SIGNAL[:, 0].ravel(),
            "B": SIGNAL[:, 1].ravel(),
        }
    )
    pq.write_table(table, folder / "x.parquet", row_group_size=3333)
    return folder / "x.parquet", AT_125


FORMS = [write_npy, write_fortran, write_turned, write_npz, write_compressed, write_folders, write_parquet]


@pytest.mark.parametrize("write", FORMS)
def test_every_form_gives_the_samples_to_the_last_bit(tmp_path: Path, write):
    listing, records = read(*write(tmp_path))
    assert same(records)
    assert {record.sampling_rate for record in records} == {125.0}
    assert listing.channels == records[0].channels
    assert listing.form
    assert listing.shortest == min(record.samples.shape[1] for record in records)


@pytest.mark.parametrize("write", FORMS)
def test_every_form_keeps_the_promises_of_a_data_set(tmp_path: Path, write):
    root, options = write(tmp_path)
    for check in checks_of(OFFER, root=root, options=options):
        check.run()


def test_what_an_npz_says_is_used(tmp_path: Path):
    listing, records = read(*write_npz(tmp_path))
    assert [entry.patient for entry in listing.entries] == OWNERS
    assert [entry.label for entry in listing.entries] == [0, 0, 1, None, 1, 1]
    assert listing.task is not None
    assert (listing.task.classes, listing.channels, listing.numbered) == (("a", "b"), ("A", "B"), False)
    assert {(record.unit, record.channels) for record in records} == {("mV", ("A", "B"))}
    assert listing.entries[3].record == "x[3]"


def test_the_users_names_stand_above_those_of_the_file(tmp_path: Path):
    root, options = write_npz(tmp_path)
    listing, records = read(root, attrs.evolve(options, names=("PPG", "ECG"), unit="V"))
    assert (listing.channels, listing.numbered) == (("PPG", "ECG"), False)
    assert (records[0].channels, records[0].unit) == (("PPG", "ECG"), "V")


def test_columns_are_found_by_their_headings_in_any_order(tmp_path: Path):
    """`names` in the order of one file must not rename the channels of another."""
    for file, columns in {"a": ("ppg", "acc"), "b": ("acc", "ppg")}.items():
        sizes = [1000 if name == "acc" else 1 for name in columns]
        rows = [",".join(str(place % 7 * size) for size in sizes) for place in range(400)]
        (tmp_path / f"{file}.csv").write_text("\n".join([",".join(columns), *rows]))
    listing, records = read(tmp_path, attrs.evolve(AT_125, names=("ppg", "acc")))
    assert listing.channels == ("ppg", "acc")
    for record in records:
        assert record.samples[record.channels.index("ppg")].max() == 6
        assert record.samples[record.channels.index("acc")].max() == 6000


def test_parquet_says_who_and_what(tmp_path: Path):
    listing, _ = read(*write_parquet(tmp_path))
    assert [entry.patient for entry in listing.entries] == OWNERS
    assert [entry.record for entry in listing.entries][-1] == "anna/5"
    assert [entry.label for entry in listing.entries] == [0, 0, 1, None, 1, 1]


def test_folders_are_patients_in_natural_order(tmp_path: Path):
    for name in ("p10", "p2", ".hidden", "__MACOSX"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "b.npy", SIGNAL[0])
        np.save(tmp_path / name / "a.npy", SIGNAL[1, 0])
    (tmp_path / "README.txt").write_text("hello")
    listing = scan(tmp_path, ONE, AT_125)
    assert [entry.record for entry in listing.entries] == ["p2/a.npy", "p2/b.npy", "p10/a.npy", "p10/b.npy"]
    assert [entry.patient for entry in listing.entries] == ["p2", "p2", "p10", "p10"]
    assert listing.notes[0] == "Not read, for they are in no patient's folder: README.txt."


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (["{a},{b}"], ("0", "1")),
        (["A,B", "{a},{b}"], ("A", "B")),
        (["A;B", "{a};{b}"], ("A", "B")),
        (["time\tA\tB", "0\t{a}\t{b}"], ("A", "B")),
        ([",A,B", "0,{a},{b}"], ("A", "B")),  # the index that pandas writes
        (["{a} {b}"], ("0", "1")),
        (["{a}\t{b}\t"], ("0", "1")),  # a mark behind the last cell, too
        (["A,B,", "{a},{b},"], ("A", "B")),
    ],
)
def test_text_is_read_with_and_without_a_heading(tmp_path: Path, lines: list[str], names: tuple[str, ...]):
    signal = SIGNAL[0, :, :100].astype(np.float64)
    *heading, line = lines
    rows = [line.format(a=repr(float(a)), b=repr(float(b))) for a, b in signal.T]
    for patient in ("p1", "p2"):
        (tmp_path / patient).mkdir()
        (tmp_path / patient / "r.csv").write_text("\n".join([*heading, *rows]) + "\n", encoding="utf-8-sig")
    listing, records = read(tmp_path)
    assert same(records, [signal, signal])
    assert records[0].channels == listing.channels == names
    assert listing.numbered == (names == ("0", "1"))


@pytest.mark.parametrize(
    ("place", "root", "record", "patient"),
    [
        ("r.csv", "r.csv", "r.csv", "r.csv"),
        ("r.txt", ".", "r.txt", "r.txt"),
        ("ann/r.csv", ".", "ann/r.csv", "ann"),
        ("unpacked/ann/r.csv", ".", "ann/r.csv", "ann"),
        ("ann/r.csv", "ann", "r.csv", "r.csv"),
    ],
)
def test_one_text_file_is_a_recording(tmp_path: Path, place: str, root: str, record: str, patient: str):
    """As many text files are, wherever `root` points."""
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    np.savetxt(tmp_path / place, SIGNAL[0, :, :100].T, header="A,B", comments="", delimiter=",")
    listing, (found,) = read(tmp_path / root)
    assert same([found], [SIGNAL[0, :, :100].astype(np.float64)])
    assert found.channels == ("A", "B")
    assert [(one.record, one.patient) for one in listing.entries] == [(record, patient)]


def test_the_shortest_file_of_a_folder_is_told(tmp_path: Path):
    """Frames follow from it; only the smallest file is read for it."""
    for patient, length in (("a", 900), ("b", 300), ("c", 2000)):
        (tmp_path / patient).mkdir()
        np.savetxt(tmp_path / patient / "x.csv", np.random.default_rng(0).normal(size=length), fmt="%.4f")
    assert scan(tmp_path, ONE, AT_125).shortest == 300


def test_an_empty_cell_is_a_missing_sample(tmp_path: Path):
    for patient in ("p1", "p2"):
        (tmp_path / patient).mkdir()
        (tmp_path / patient / "r.txt").write_text("A,B\n1,2\n,4\n5,6\n" + "7,8\n" * 20)
    _, records = read(tmp_path)
    assert np.isnan(records[0].samples[0, 1])
    assert np.isfinite(records[0].samples).sum() == 2 * 23 - 1


@pytest.mark.parametrize(("rate", "drops"), [(100.0, 0), (None, 1)])
def test_gaps_between_times_are_counted(tmp_path: Path, rate: float | None, drops: int):
    """With a rate that was given, the rows are read and it is said; else the times cannot say the rate."""
    for name, lost in (("a", 0), ("b", 500)):
        times = [(n + (lost if n >= 60 else 0)) / 100 for n in range(120)]
        lines = [f"{t:.2f},{np.sin(t):.4f}" for t in times]
        (tmp_path / f"{name}.csv").write_text("\n".join(["time_s,II", *lines]))
    options = ArraysOptions(sampling_rate=rate, unit="mV")
    listing = scan(tmp_path, ONE, options)
    framing = Framing(frame_samples=40)
    recipe = Recipe(dataset="arrays", entries=listing.entries, load=load, options=options, framing=framing)
    found = prepare(recipe, tmp_path / "prepared", 1, lambda *_: None)
    assert sum(found.drops.counts.values()) == drops
    if drops:
        (why,) = found.drops.why.values()
        assert why.startswith("the sampling rate is not known, for its times have gaps or go back")
    else:
        (reason,) = found.tolerated.counts
        assert reason.startswith("recording whose times have gaps or go back")
        assert found.tolerated.first[reason] == ("b.csv",)


def test_text_with_a_line_per_channel_is_read_when_it_is_said(tmp_path: Path):
    for patient in ("p1", "p2"):
        (tmp_path / patient).mkdir()
        np.savetxt(tmp_path / patient / "r.txt", SIGNAL[0].astype(np.float64), fmt="%.18e", delimiter="\t")
    with pytest.raises(ValueError, match=r"`axes=\['channel', 'sample'\]`"):
        read(tmp_path)
    listing, records = read(tmp_path, attrs.evolve(AT_125, axes=("channel", "sample")))
    assert same(records, [SIGNAL[0].astype(np.float64)] * 2)
    assert listing.channels == ("0", "1")


def test_real_pulses_as_they_are_published(test_data: Path, tmp_path: Path):
    """PPG-BP: a file per recording, all its samples on one line, the subject in front of the file's name."""
    files = sorted((test_data / "ppg_bp").rglob("*_1.txt"))[:6]
    if not files:
        pytest.skip("no PPG-BP here")
    (tmp_path / "files").mkdir()
    for file in files:
        (tmp_path / "files" / file.name).symlink_to(file)
    rows = [f"{file.name},{file.name.split('_')[0]}" for file in files]
    (tmp_path / "ids.csv").write_text("\n".join(["file,subject", *rows]))
    options = ArraysOptions(str(tmp_path / "ids.csv"), sampling_rate=1000.0, axes=("channel", "sample"))
    listing, records = read(tmp_path / "files", options)
    assert sorted(entry.patient for entry in listing.entries) == sorted(file.name.split("_")[0] for file in files)
    for entry, record in zip(listing.entries, records, strict=True):
        assert record.samples.tolist() == [[float(cell) for cell in entry.files[0].read_text().split()]]
        assert record.samples.shape == (1, 2100)


def test_one_long_recording_is_one_recording(tmp_path: Path):
    np.save(tmp_path / "x.npy", SIGNAL[0, 0])
    assert same(read(tmp_path / "x.npy")[1], SIGNAL[:1, :1])
    np.save(tmp_path / "x.npy", SIGNAL[0])
    assert same(read(tmp_path / "x.npy", attrs.evolve(AT_125, axes=("channel", "sample")))[1], SIGNAL[:1])
    assert same(read(tmp_path / "x.npy")[1], [SIGNAL[0, :1], SIGNAL[0, 1:]])  # (recording, sample)


@pytest.mark.parametrize("kind", ["<i2", ">i2", "i1", "u2", "i4", "f2", "f8", ">f4"])
def test_numbers_of_any_kind_keep_their_values(tmp_path: Path, kind: str):
    """In 16 bits and more the lowest integer is a missing sample, as recorders write it; in 8 bits it is a value."""
    values = np.array([[[-128, 127, 0, 5] * 10]] * 2).astype(kind)
    np.save(tmp_path / "x.npy", values)
    _, records = read(tmp_path / "x.npy", attrs.evolve(AT_125, gain=2.0))
    assert np.array_equal(records[0].physical(), values[0].astype(float) / 2)
    assert records[0].samples.dtype.isnative


def test_frames_are_prepared_of_them(tmp_path: Path):
    root, options = write_npz(tmp_path)
    listing = scan(root, ONE, options)
    framing = Framing(frame_samples=2000)
    recipe = Recipe(dataset="arrays", entries=listing.entries, load=load, options=options, framing=framing)
    prepared = prepare(recipe, tmp_path / "prepared", 1, lambda *_: None)
    assert prepared.frames.shape == (12, 2, 2000)
    assert np.array_equal(prepared.frames[1], SIGNAL[0, :, 2000:])
    assert prepared.unit == "mV"


def test_a_stored_member_is_mapped_and_not_read_whole(tmp_path: Path):
    """Ten thousand recordings must not be read by every worker for one of them."""
    root, _ = write_npz(tmp_path)
    assert isinstance(open_array_file(root).arrays["x"].open(), np.memmap)
    np.savez_compressed(tmp_path / "c.npz", x=SIGNAL)
    assert open_array_file(tmp_path / "c.npz").arrays["x"].start is None


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from clocs_plugins.arrays import parquetfiles

    def absent(_name: str) -> None:
        raise ImportError

    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(parquetfiles, "import_module", absent)
    with pytest.raises(DataError, match=r"pip install 'clocs\[parquet\]'"):
        scan(tmp_path / "x.parquet", ONE, AT_125)


def test_parquet_as_pandas_writes_it_keeps_ids_of_any_type(tmp_path: Path):
    """An index is a column like any other, categories are texts, and whole numbers keep all of their digits."""
    pytest.importorskip("pyarrow")
    import pandas as pd

    large = 2**60
    frame = pd.DataFrame(
        {
            "A": np.arange(80, dtype=np.float32),
            "record": pd.Categorical(np.repeat(["b", "a"], 40)),
            "label": pd.array(np.repeat([large + 1, None], 40), dtype="Int64"),
            "patient": np.repeat([large, large + 1], 40),
        }
    ).set_index("patient")
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=30)
    listing, records = read(tmp_path / "x.parquet")
    assert [entry.record for entry in listing.entries] == [f"{large}/b", f"{large + 1}/a"]
    assert listing.task is not None
    assert (listing.task.classes, [entry.label for entry in listing.entries]) == ((str(large + 1),), [0, None])
    assert same(records, np.arange(80, dtype=np.float32).reshape(2, 1, 40))


def test_a_recording_of_parquet_is_read_without_the_row_groups_of_others(tmp_path: Path):
    root, options = write_parquet(tmp_path)
    entries = scan(root, ONE, options).entries
    raw = bytearray(root.read_bytes())
    raw[200:2000] = bytes(1800)  # of the first row group
    (tmp_path / "spoilt.parquet").write_bytes(raw)
    os.utime(tmp_path / "spoilt.parquet", ns=(root.stat().st_atime_ns, root.stat().st_mtime_ns))
    (tmp_path / "spoilt.parquet").replace(root)  # the ids are known from before
    assert np.array_equal(load(entries[-1], options).samples, SIGNAL[-1])
    with pytest.raises((ValueError, OSError)):
        load(entries[0], options)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"record": [1, 1], "A": [0.0, 1.0]}, "has the columns record, A, but no 'patient'"),
        ({"patient": [1, 1], "record": [1, 1]}, "has no column for a channel"),
        ({"patient": [1, 2, 1], "record": [1, 1, 1], "A": [0.0, 1.0, 2.0]}, "do not follow each other"),
        ({"patient": [1, None], "record": [1, 1], "A": [0.0, 1.0]}, "Row 1 of x.parquet has no patient"),
    ],
)
def test_parquet_that_does_not_hold_together_is_said(tmp_path: Path, columns, message: str):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=message):
        scan(tmp_path / "x.parquet", ONE, AT_125)
