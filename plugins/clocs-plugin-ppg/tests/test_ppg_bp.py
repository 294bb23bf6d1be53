"""PPG-BP: count the published files again, and read malformed files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from clocs_core import DataError, DataNotFound, Entry

from clocs_plugin_ppg.ppg_bp import PPG_BP, PpgBpOptions
from clocs_plugin_ppg.ppg_bp.listing import REPEATED, TWO_SUBJECTS
from clocs_plugin_ppg.ppg_bp.signals import band_pass
from made_ppg_bp import row, wave, write_sheet, write_text

HYPERTENSION, BINARY, DIABETES = PPG_BP.tasks
RAW = PpgBpOptions(band_pass=None)


def scan(root: Path, task=HYPERTENSION):
    return PPG_BP.scan(root, task, PpgBpOptions())


def load(file: Path, options: PpgBpOptions = RAW):
    return PPG_BP.load(Entry(file.stem, file.stem.split("_")[0], 1, [file]), options)


# -------------------------------------------------------------------------------------------------- the published files


@pytest.mark.parametrize(
    ("task", "subjects"),
    [
        (HYPERTENSION, {0: 80, 1: 85, 2: 34, 3: 20}),
        (BINARY, {0: 165, 1: 54}),
        (DIABETES, {0: 181, 1: 38}),
    ],
    ids=lambda item: getattr(item, "name", None),
)
def test_the_published_subjects_have_the_classes_of_the_workbook(real_ppg_bp: Path, task, subjects):
    """The article counts 219 subjects; the classes were counted by hand in the workbook."""
    listing = scan(real_ppg_bp, task)
    label = {entry.patient: entry.label for entry in listing.entries}
    assert len(label) == 219
    assert Counter(label.values()) == subjects
    assert len(listing.entries) == 657 - 8
    assert listing.notes == ()


def test_every_repeated_file_of_the_published_set_is_left_out_and_no_other(real_ppg_bp: Path):
    """One recording is filed under two subjects: in both training and test it would be a leak."""
    names_of: dict[bytes, list[str]] = {}
    for file in real_ppg_bp.glob("*_?.txt"):
        names_of.setdefault(file.read_bytes(), []).append(file.stem)
    again, shared = set(), set()
    for names in names_of.values():
        if len({name.split("_")[0] for name in names}) > 1:
            shared |= set(names)
        else:
            again |= set(sorted(names)[1:])
    assert (again, shared) == (set(REPEATED), set(TWO_SUBJECTS))
    dropped = {drop.record for drop in scan(real_ppg_bp).drops}
    assert dropped == again | shared


def test_every_published_recording_has_2100_samples_and_two_miss_some(real_ppg_bp: Path):
    """Two files hold 4,200 samples, and two are clipped."""
    missing, long = {}, []
    for entry in scan(real_ppg_bp).entries:
        record = PPG_BP.load(entry, RAW)
        assert record.samples.shape == (1, 2100)
        assert record.sampling_rate == 1000.0
        if record.tolerated:
            long.append(record.record)
        if lost := int(np.isnan(record.samples).sum()):
            missing[record.record] = lost
    assert long == ["231_1", "231_2"]
    assert missing == {"125_2": 1401, "245_3": 780}


def test_the_pulse_of_the_waves_is_the_heart_rate_of_the_workbook(real_ppg_bp: Path):
    """Every label depends on the subject of a recording: with subjects mixed up, the two rates would not agree."""
    from openpyxl import load_workbook

    rows = load_workbook(real_ppg_bp / "PPG-BP dataset.xlsx").worksheets[0].iter_rows(min_row=3, values_only=True)
    written = {str(one[1]): one[8] for one in rows}
    found: dict[str, list[float]] = {}
    for entry in scan(real_ppg_bp).entries:
        pulse = PPG_BP.load(entry, PpgBpOptions()).samples[0]
        if np.isfinite(pulse).all():
            size = np.abs(np.fft.rfft(pulse * np.hanning(2100), 16384))
            hertz = np.fft.rfftfreq(16384, 1 / 1000)
            found.setdefault(entry.patient, []).append(
                60 * hertz[np.where((hertz > 0.8) & (hertz < 2.5), size, 0).argmax()]
            )
    off = [abs(float(np.median(rates)) - written[subject]) for subject, rates in found.items()]
    assert len(off) == 219
    assert np.median(off) < 4  # beats per minute


# --------------------------------------------------------------------------------------------------------- odd files


def test_a_recording_is_read_to_its_last_number_and_the_tab_behind_it(tmp_path: Path):
    """A reader that splits at tabs finds an empty number at the end of every published file."""
    counts = wave(3, 1)
    write_text(tmp_path / "3_1.txt", counts)
    record = load(tmp_path / "3_1.txt")
    assert (record.patient, record.record, record.label) == ("3", "3_1", 1)
    np.testing.assert_array_equal(record.samples, counts[None])


def test_of_two_recordings_in_one_file_the_first_is_read(tmp_path: Path):
    """Another recording starts after sample 2,100; a segment across the jump would be meaningless."""
    counts = wave(3, 1, samples=4200)
    write_text(tmp_path / "3_1.txt", counts)
    record = load(tmp_path / "3_1.txt")
    np.testing.assert_array_equal(record.samples[0], counts[:2100])
    assert record.tolerated == ("The file holds 4,200 samples, more than one recording; 2,100 were read.",)


@pytest.mark.parametrize("options", [RAW, PpgBpOptions()], ids=["raw", "filtered"])
def test_clipped_samples_are_missing_filtered_or_not(tmp_path: Path, options: PpgBpOptions):
    """Clipped samples are not the wave, and a filter would make them look like it."""
    counts = wave(3, 1)
    counts[100:120], counts[500] = 4095, 0
    write_text(tmp_path / "3_1.txt", counts)
    lost = np.flatnonzero(np.isnan(load(tmp_path / "3_1.txt", options).samples[0]))
    assert lost.tolist() == [*range(100, 120), 500]


@pytest.mark.parametrize(("text", "says"), [("1\t2\tx3\t", "x3"), ("\t\t", "no number")])
def test_a_file_of_something_else_is_an_error_that_names_it(tmp_path: Path, text: str, says: str):
    """The engine counts it as unreadable and continues; the user sees only the message."""
    (tmp_path / "3_1.txt").write_text(text)
    with pytest.raises(DataError, match=rf"3_1\.txt .*{says}"):
        load(tmp_path / "3_1.txt")


def test_odd_rows_and_files_are_dropped_noted_or_unlabelled(tmp_path: Path):
    """Nothing is dropped silently, and nothing is guessed."""
    rows = [row(1), row(2), (3, 3, "Male", 30, 60, "high", "Type 1 Diabetes")]
    write_sheet(tmp_path / "PPG-BP dataset.xlsx", rows)
    for name in ("1_1", "3_1", "9_1", "24_1"):
        write_text(tmp_path / f"{name}.txt", wave(1, 1))
    (tmp_path / "1_2.txt").touch()
    (tmp_path / "readme_1.txt").write_text("hello")
    listing = scan(tmp_path)
    assert {entry.record: entry.label for entry in listing.entries} == {"1_1": 1, "3_1": None, "9_1": None}
    assert [(drop.record, drop.reason) for drop in listing.drops] == [
        ("1_2", "empty file"),
        ("24_1", "published under two subjects"),
    ]
    assert listing.notes == (
        "1 of 3 subjects of the table have no recording here.",
        "2 recordings have no label for this task and serve pre-training only.",
    )
    assert [entry.label for entry in scan(tmp_path, DIABETES).entries] == [0, None, None]


def test_a_workbook_exported_with_semicolons_serves_as_well(tmp_path: Path):
    """In many countries spreadsheets use semicolons."""
    lines = ["Title;;", "Num.;subject_ID;Hypertension;Diabetes", "1;7;Stage 2 hypertension;"]
    (tmp_path / "PPG-BP dataset.csv").write_text("\n".join(lines), encoding="utf-8-sig")
    write_text(tmp_path / "7_1.txt", wave(7, 1))
    assert [entry.label for entry in scan(tmp_path).entries] == [3]


def test_a_folder_without_the_table_or_without_recordings_says_what_to_do(tmp_path: Path):
    with pytest.raises(DataNotFound, match=r"PPG-BP dataset\.xlsx"):
        scan(tmp_path)
    with pytest.raises(DataNotFound, match="looked for in"):
        scan(tmp_path / "nowhere")
    write_sheet(tmp_path / "PPG-BP dataset.xlsx", [row(1)])
    with pytest.raises(DataNotFound, match=r"no recording such as 100_1\.txt"):
        scan(tmp_path)


@pytest.mark.parametrize("content", [b"no workbook", None])
def test_a_table_that_is_none_is_an_error_that_names_it(tmp_path: Path, content: bytes | None):
    sheet = tmp_path / "PPG-BP dataset.xlsx"
    if content is None:
        write_sheet(sheet, [])
        sheet = tmp_path / "PPG-BP dataset.csv"
        (tmp_path / "PPG-BP dataset.xlsx").unlink()
        sheet.write_text("a,b\n1,2\n")
    else:
        sheet.write_bytes(content)
    with pytest.raises(DataError, match="Download it again"):
        scan(tmp_path)


# ---------------------------------------------------------------------------------------------------------- filtering


@pytest.mark.parametrize(("hertz", "kept"), [(0.1, 0.0), (2.0, 1.0), (40.0, 0.0)])
def test_the_band_pass_keeps_the_pulse_in_place_and_takes_wander_and_noise(hertz: float, kept: float):
    """Compare with the wave itself, sample by sample: a filter with a delay would fail."""
    time = np.arange(2100) / 1000
    clean = np.sin(2 * np.pi * hertz * time)
    passed = band_pass(clean, (0.5, 8.0))
    middle = slice(300, 1800)  # the ends of so short a recording are never quite right
    assert np.abs(passed - kept * clean)[middle].max() < 0.15


@pytest.mark.parametrize("segments", [1, 2, 3])
def test_a_recording_has_frames_for_every_number_of_segments(segments: int):
    """Methods that contrast segments need as many in one recording of 2.1 s."""
    framing = PPG_BP.framing(segments)
    assert 2100 // framing.source_samples >= max(2, segments)
    assert framing.frame_samples == PPG_BP.framing(1).frame_samples
