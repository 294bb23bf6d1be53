"""The form of figshare: the table of diagnoses in every spelling, CSV files with and without names."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clocs_core import DataError, DataNotFound, Drop, Entry, Listing
from clocs_core.data.preparation import prepare
from clocs_core.data.recipe import Recipe
from clocs_core.testing import checks_of
from clocs_plugins.chapman import ChapmanOptions, clocs_datasets, framing, load, scan

(OFFER,) = clocs_datasets()
(RHYTHM,) = OFFER.tasks
NAMES = "I,II,III,aVR,aVL,aVF,V1,V2,V3,V4,V5,V6"
GROUP_OF = {
    "AFIB": ("AFIB", "AF"),
    "GSVT": ("ST", "SVT", "AT", "AVNRT", "AVRT", "SAAWR"),
    "SB": ("SB",),
    "SR": ("SR", "SA", "SI"),
}


def listing_of(root: Path, **options: str) -> Listing:
    return scan(root, RHYTHM, ChapmanOptions(**options))


def wave(rows: int = 5000) -> np.ndarray:
    """Values (sample, lead) in µV with one decimal, each lead its own."""
    at = np.arange(rows)[:, None]
    return np.round(500 * np.sin(at / 40 + np.arange(12)) + 10 * np.arange(12), 1)


def write_csv(file: Path, values: np.ndarray, header: str = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = "\n".join(",".join(f"{value:.5g}" for value in row) for row in values)
    file.write_text(f"{header}\n{rows}\n" if header else f"{rows}\n", encoding="utf-8")
    return file


def write_table(file: Path, rows: list[tuple[str, str]], delimiter: str = ",") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    table = [("FileName", "Rhythm", "Beat"), *((name, rhythm, "NONE") for name, rhythm in rows)]
    if file.suffix.lower() == ".xlsx":
        from openpyxl import Workbook

        workbook = Workbook()
        for row in table:
            workbook.active.append(row)
        workbook.save(file)
    else:
        file.write_text("\n".join(delimiter.join(row) for row in table), encoding="utf-8-sig")


# ------------------------------------------------------------------------------------------------------------ the scan


@pytest.mark.parametrize("name", ["Diagnostics.xlsx", "diagnostics.XLSX", "Diagnostics.csv", "DIAGNOSTICS.CSV"])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_the_table_is_read_in_every_form(tmp_path: Path, name: str, delimiter: str):
    write_table(tmp_path / name, [("MUSE_2", "SB"), ("MUSE_1", "AFIB")], delimiter)
    for record in ("MUSE_1", "MUSE_2"):
        write_csv(tmp_path / "ECGDataDenoised" / f"{record}.csv", wave(2))
    listing = listing_of(tmp_path)
    assert [(entry.record, entry.patient, entry.label) for entry in listing.entries] == [
        ("MUSE_1", "MUSE_1", 0),
        ("MUSE_2", "MUSE_2", 2),
    ]
    assert listing.form == f"figshare: {name} and CSV files in ECGDataDenoised/"
    assert not listing.notes


def test_eleven_rhythms_make_four_groups(tmp_path: Path):
    """AF is flutter here, and belongs with fibrillation, as in the paper."""
    expected = {f"M_{rhythm}": group for group, rhythms in GROUP_OF.items() for rhythm in rhythms}
    write_table(tmp_path / "Diagnostics.csv", [(name, f" {name[2:]} ") for name in expected])
    for name in expected:
        write_csv(tmp_path / "ECGData" / f"{name}.csv", wave(1))
    listing = listing_of(tmp_path, signal="raw")
    assert {entry.record: RHYTHM.classes[entry.label] for entry in listing.entries} == expected
    assert RHYTHM.classes == ("AFIB", "GSVT", "SB", "SR")


def test_what_cannot_serve_is_dropped_with_a_reason_and_what_is_absent_is_counted(tmp_path: Path):
    rows = [("a", "SR"), ("b", "XX"), ("c", "SB"), ("c", "AFIB"), ("e", "SR"), ("f", "SR"), ("g.csv", "ST"), ("", "")]
    write_table(tmp_path / "x" / "Diagnostics.csv", rows)
    for name in "abcdg":
        write_csv(tmp_path / "x" / "ecgdatadenoised" / f"{name}.csv", wave(1))
    listing = listing_of(tmp_path)
    assert [entry.record for entry in listing.entries] == ["a", "g"]
    assert listing.drops == (
        Drop("unmapped label", "b"),
        Drop("several rhythms", "c"),
        Drop("not in the table of diagnoses", "d"),
    )
    assert listing.notes == ("2 of 6 recordings listed in Diagnostics.csv are not in ecgdatadenoised/.",)


def test_the_other_folder_serves_with_a_note_where_the_asked_one_is_absent(tmp_path: Path):
    write_table(tmp_path / "Diagnostics.csv", [("a", "SR")])
    write_csv(tmp_path / "ECGData" / "ECGData" / "a.csv", wave(1))
    listing = listing_of(tmp_path)
    assert listing.notes == ("ECGDataDenoised/ is not there, so the raw recordings of ECGData/ are read.",)
    assert listing.entries[0].files == (tmp_path / "ECGData" / "ECGData" / "a.csv",)
    write_csv(tmp_path / "ECGDataDenoised" / "a.csv", wave(1))
    assert listing_of(tmp_path).entries[0].files == (tmp_path / "ECGDataDenoised" / "a.csv",)
    assert "ECGData/" in listing_of(tmp_path, signal="raw").form


def test_half_a_download_says_which_half_is_missing(tmp_path: Path):
    (tmp_path / "ECGDataDenoised.zip").touch()
    with pytest.raises(DataNotFound, match=r"found ECGDataDenoised.zip. Unpack ECGDataDenoised.zip there"):
        listing_of(tmp_path)
    write_csv(tmp_path / "ECGDataDenoised" / "a.csv", wave(1))
    with pytest.raises(DataNotFound, match=r"has ECGDataDenoised/, but no Diagnostics.xlsx"):
        listing_of(tmp_path)
    (tmp_path / "ECGDataDenoised" / "a.csv").unlink()
    write_table(tmp_path / "Diagnostics.csv", [("a", "SR")])
    with pytest.raises(DataNotFound, match=r"has Diagnostics.csv, but no folder ECGDataDenoised/"):
        listing_of(tmp_path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 damaged", b"FileName;Beat\na;b", b"\0\0\0", b'"open\nquote'])
@pytest.mark.parametrize("suffix", [".xlsx", ".csv"])
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, content: bytes, suffix: str):
    write_csv(tmp_path / "ECGDataDenoised" / "a.csv", wave(1))
    (tmp_path / f"Diagnostics{suffix}").write_bytes(content)
    with pytest.raises(DataError, match="Diagnostics"):
        listing_of(tmp_path)


def test_a_damaged_workbook_is_refused_wherever_the_damage_is(tmp_path: Path):
    write_csv(tmp_path / "ECGDataDenoised" / "a.csv", wave(1))
    table = tmp_path / "Diagnostics.xlsx"
    write_table(table, [("a", "SR")])
    whole = table.read_bytes()
    for cut in range(0, len(whole), 97):
        table.write_bytes(whole[:cut] + b"\xff" * 9 + whole[cut + 9 :])
        with suppress(DataError):
            listing_of(tmp_path)


# ------------------------------------------------------------------------------------------------------------ the load


def entry_of(file: Path) -> Entry:
    return Entry(file.stem, file.stem, 3, (file,))


@pytest.mark.parametrize("header", ["", NAMES, NAMES.upper(), '"I", "II", "III",avr,avl,avf,v1,v2,v3,v4,v5,v6\r'])
def test_a_first_row_of_names_is_no_sample_and_one_of_numbers_is(tmp_path: Path, header: str):
    """Read with the wrong idea of the header, a recording loses its first sample, or does not load."""
    values = wave()
    record = load(entry_of(write_csv(tmp_path / "a.csv", values, header)), ChapmanOptions())
    assert record.channels == tuple(NAMES.split(","))
    assert (record.unit, record.sampling_rate, record.label, record.gain) == ("uV", 500.0, 3, 1.0)
    np.testing.assert_array_equal(record.samples, values.T)


def test_leads_in_another_order_are_told_by_their_names(tmp_path: Path):
    names = NAMES.split(",")[::-1]
    record = load(entry_of(write_csv(tmp_path / "a.csv", wave(9), ",".join(names))), ChapmanOptions())
    assert record.channels == tuple(names)


def test_empty_cells_are_missing_samples(tmp_path: Path):
    file = write_csv(tmp_path / "a.csv", wave(3))
    lines = file.read_text().splitlines()
    lines[0] = "," + lines[0].split(",", 1)[1]
    lines[1] = lines[1].rsplit(",", 1)[0] + ",NaN"
    file.write_text("\n".join(lines))
    missing = load(entry_of(file), ChapmanOptions()).missing()
    assert np.argwhere(missing).tolist() == [[0, 0], [11, 1]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "there is no sample, expected 5000 rows of 12"),
        (NAMES.encode(), "there is no sample"),
        (b"1,2,3\n", "row 1 has 3 columns, expected 12"),
        (b"t," + NAMES.encode() + b"\n" + b"0," * 12 + b"0\n", "the first row has t, I, II"),
        (b"1,2,3,4,5,6,7,8,9,10,11,12\n1,2,3,4,5,6,7,8,9,x,11,12", "row 2, column 10 is 'x'"),
        (b"\x89PNG\r\n\x1a\n\0\0", "the first row has"),
    ],
)
def test_a_file_that_is_no_recording_is_refused_by_name(tmp_path: Path, content: bytes, words: str):
    file = tmp_path / "MUSE_9.csv"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=f"MUSE_9.csv: {words}"):
        load(entry_of(file), ChapmanOptions())


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, 700), put=st.binary(max_size=6), end=st.integers(0, 700))
def test_damage_gives_a_recording_or_a_value_error(tmp_path: Path, cut: int, put: bytes, end: int):
    whole = write_csv(tmp_path / "whole.csv", wave(10)).read_bytes()
    file = tmp_path / "a.csv"
    file.write_bytes(whole[:cut] + put + whole[cut + end :])
    with suppress(ValueError):
        assert load(entry_of(file), ChapmanOptions()).samples.shape[0] == 12


# ------------------------------------------------------------------------------------------------------------- framing


def test_ten_seconds_are_one_frame_or_two_halves(tmp_path: Path):
    """The paper's Chapman frames: the whole recording at 250 Hz, or, for segments, 5 s each at its own 500 Hz."""
    from scipy.signal import resample

    values = wave()
    entry = entry_of(write_csv(tmp_path / "a.csv", values))

    def frames(segments: int) -> np.ndarray:
        recipe = Recipe(
            dataset="chapman",
            entries=[entry],
            load=load,
            options=ChapmanOptions(),
            framing=framing(segments),
            channels=OFFER.channels,
        )
        prepared = prepare(recipe, tmp_path / str(segments), 1, lambda done, total: None)
        return np.asarray(prepared.frames)

    whole, halves = frames(1), frames(2)
    assert whole.shape == (1, 12, 2500)
    assert halves.shape == (2, 12, 2500)
    np.testing.assert_array_equal(whole[0], resample(values, 2500, axis=0).T.astype(np.float32))
    np.testing.assert_array_equal(halves[1], values[2500:].T.astype(np.float32))


# ----------------------------------------------------------------------------------------------------------- real data


def test_real_recordings_have_the_rhythms_of_the_table(test_data: Path):
    listing = listing_of(test_data / "chapman")
    assert Counter(RHYTHM.classes[entry.label] for entry in listing.entries) == {
        "AFIB": 12,
        "GSVT": 8,
        "SB": 8,
        "SR": 7,
    }
    assert listing.notes == ("10,611 of 10,646 recordings listed in Diagnostics.xlsx are not in ECGDataDenoised/.",)
    assert not listing.drops
    for entry in listing.entries[::7]:
        record = load(entry, ChapmanOptions())
        np.testing.assert_array_equal(record.samples, np.loadtxt(entry.files[0], delimiter=",").T)
        heights = np.ptp(record.samples, axis=1)  # of an ECG in µV: some hundreds to some thousands
        assert record.samples.shape == (12, 5000)
        assert 300 < np.median(heights) < 6000


def test_the_whole_table_has_the_counts_of_the_article(test_data: Path):
    from clocs_plugins.chapman.diagnostics import read_rhythms
    from clocs_plugins.chapman.rhythms import group_of_acronym

    rhythms = read_rhythms(test_data / "chapman" / "Diagnostics.xlsx")
    groups = Counter(group_of_acronym(one) for (one,) in rhythms.values())
    assert groups == {0: 2225, 1: 2307, 2: 3889, 3: 2225}


def test_the_offer_keeps_its_promises(test_data: Path, tmp_path: Path):
    """With a short table, which the kit reads many times."""
    (tmp_path / "ECGDataDenoised").symlink_to(test_data / "chapman" / "ECGDataDenoised")
    names = sorted(file.stem for file in (tmp_path / "ECGDataDenoised").iterdir())
    write_table(tmp_path / "Diagnostics.csv", [(name, ("AFIB", "SR")[i % 2]) for i, name in enumerate(names)])
    for check in checks_of(OFFER, root=tmp_path):
        check.run()
