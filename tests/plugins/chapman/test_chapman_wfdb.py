"""The WFDB forms: PhysioNet's tree, the challenge's, and one folder; rhythms among SNOMED codes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from clocs_core import DataNotFound, Drop
from clocs_core.testing import checks_of
from clocs_plugins.chapman import ChapmanOptions, clocs_datasets, load, scan

(OFFER,) = clocs_datasets()
(RHYTHM,) = OFFER.tasks
LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")


def listing_of(root: Path):
    return scan(root, RHYTHM, ChapmanOptions())


def write_record(stem: Path, codes: str, leads: tuple[str, ...] = LEADS, merged: bool = False) -> np.ndarray:
    """A recording as PhysioNet publishes it: MATLAB 4, counts of 1/1000 mV."""
    counts = np.random.default_rng(int(stem.name[2:])).integers(-900, 900, (len(leads), 5000)).astype("<i2")
    counts[0, 7] = -32768
    stem.parent.mkdir(parents=True, exist_ok=True)
    sizes = np.array([30, len(leads), 5000, 0, 4], dtype="<i4").tobytes()
    stem.with_suffix(".mat").write_bytes(sizes + b"val\0" + counts.T.tobytes())
    lines = [
        f"{stem.name}.mat 16+24 1000/mV 16 0 {row[0]} {int(row.sum(dtype=np.int16))} 0 {lead}"
        for row, lead in zip(counts, leads, strict=True)
    ]
    if merged:  # as 01/019/JS01052.hea is
        lines[0] = f"{stem.name} {len(leads)} 500 500000/mV 16 0 " + lines[0].split(" 16 0 ")[1]
    else:
        lines.insert(0, f"{stem.name} {len(leads)} 500 5000")
    stem.with_suffix(".hea").write_text("\n".join([*lines, "#Age: 60", "#Sex: Male", f"#Dx: {codes}"]) + "\n")
    return counts


@pytest.mark.parametrize(
    ("folder", "form"),
    [
        ("WFDBRecords/01/010", "PhysioNet ecg-arrhythmia: WFDBRecords/"),
        ("a-large-scale/WFDBRecords/01/010", "PhysioNet ecg-arrhythmia: WFDBRecords/"),
        ("physionet.org/files/ecg-arrhythmia/1.0.0/WFDBRecords/01/010", "PhysioNet ecg-arrhythmia: WFDBRecords/"),
        ("01/010", "PhysioNet ecg-arrhythmia: 01/010/, …"),
        ("training/chapman_shaoxing/g1", "challenge 2021: training/chapman_shaoxing/"),
        ("chapman_shaoxing/g1", "challenge 2021: chapman_shaoxing/"),
        ("g1", "challenge 2021: g1/, g2/, …"),
        (".", "WFDB recordings in one folder"),
        ("flat", "WFDB recordings in one folder"),
    ],
)
def test_every_tree_is_found(tmp_path: Path, folder: str, form: str):
    counts = write_record(tmp_path / folder / "JS00002", "426783006")
    write_record(tmp_path / folder / "JS00001", "164889003,55827005")
    write_record(tmp_path / folder / "JS10647", "426783006")
    listing = listing_of(tmp_path)
    assert [(entry.record, entry.label) for entry in listing.entries] == [("JS00001", 0), ("JS00002", 3)]
    assert listing.form == form
    assert listing.notes == ("1 recordings above JS10646 were ignored: they are of Ningbo, not of Chapman.",)
    record = load(listing.entries[1], ChapmanOptions())
    assert (record.channels, record.unit, record.gain, record.sampling_rate) == (LEADS, "mV", 1000.0, 500.0)
    assert record.samples.dtype == np.int16
    np.testing.assert_array_equal(record.samples, counts)
    assert np.argwhere(record.missing()).tolist() == [[0, 7]]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ("164889003", "AFIB"),
        ("55827005,164890007", "AFIB"),
        ("427084000", "GSVT"),
        ("426761007", "GSVT"),
        ("713422000", "GSVT"),
        ("233896004", "GSVT"),
        ("251166008", "GSVT"),
        ("233897008", "GSVT"),
        ("195101003", "GSVT"),
        ("17366009", "GSVT"),
        ("426177001,,", "SB"),
        ("426783006", "SR"),
        ("427393009,426783006", "SR"),
        ("426177001,195101003", "SB"),  # WAVN, a finding beside the rhythm
        ("426177001,427393009", "several rhythms"),
        ("164934002", "no rhythm"),
        ("Unknown", "no rhythm"),
    ],
)
def test_the_rhythm_is_picked_out_of_the_codes(tmp_path: Path, codes: str, expected: str):
    """Codes of one group give it; of several, or none, there is nothing to train on."""
    write_record(tmp_path / "JS00344", codes)
    listing = listing_of(tmp_path)
    if expected in RHYTHM.classes:
        assert RHYTHM.classes[listing.entries[0].label] == expected
    else:
        assert listing.drops == (Drop(expected, "JS00344"),)


def test_the_broken_header_of_js01052_is_read(tmp_path: Path):
    """Its first two lines ran into each other, and other readers refuse it."""
    write_record(tmp_path / "JS01051", "426783006")
    counts = write_record(tmp_path / "JS01052", "426177001", merged=True)
    listing = listing_of(tmp_path)
    assert [entry.label for entry in listing.entries] == [3, 2]
    assert "1 of 2 headers have a fault that was tolerated (JS01052)" in listing.notes[0]
    np.testing.assert_array_equal(load(listing.entries[1], ChapmanOptions()).samples, counts)


def test_what_cannot_be_read_is_dropped_or_refused(tmp_path: Path):
    write_record(tmp_path / "JS00001", "426783006")
    (tmp_path / "JS00001.hea").write_text("nonsense")
    write_record(tmp_path / "JS00002", "426783006")
    (tmp_path / "JS00002.mat").unlink()
    write_record(tmp_path / "JS00003", "426783006", leads=LEADS[:11])
    listing = listing_of(tmp_path)
    assert listing.drops == (Drop("broken header", "JS00001"), Drop("missing file", "JS00002"))
    with pytest.raises(ValueError, match=r"record JS00003 has 11 channels .*, expected 12"):
        load(listing.entries[0], ChapmanOptions())


def test_a_folder_of_something_else_is_refused(tmp_path: Path):
    write_record(tmp_path / "JS20000", "426783006")  # Ningbo alone is not Chapman
    with pytest.raises(DataNotFound, match=r"No Chapman recordings in .*found JS20000.hea, JS20000.mat"):
        listing_of(tmp_path)
    with pytest.raises(DataNotFound, match="found nothing"):
        listing_of(tmp_path / "absent")


def test_real_recordings_equal_what_scipy_reads(test_data: Path):
    from scipy.io import loadmat

    listing = listing_of(test_data / "cinc2021_snomed")
    labels = {entry.record: RHYTHM.classes[entry.label] for entry in listing.entries}
    assert Counter(labels.values()) == {"SB": 4, "SR": 2, "GSVT": 2, "AFIB": 1}
    assert labels["JS09740"] == "AFIB"  # flutter
    assert listing.notes == ("36 recordings above JS10646 were ignored: they are of Ningbo, not of Chapman.",)
    for entry in listing.entries:
        record = load(entry, ChapmanOptions())
        np.testing.assert_array_equal(record.samples, loadmat(entry.files[1])["val"])
        assert 0.3 < np.median(np.ptp(record.physical(), axis=1)) < 6  # mV


def test_the_offer_keeps_its_promises_in_this_form(test_data: Path):
    for check in checks_of(OFFER, root=test_data / "cinc2021_snomed"):
        check.run()


def test_a_header_that_the_system_cannot_read_today_is_no_broken_one(tmp_path: Path, monkeypatch):
    """It would be left out, and the scores would be those of another data set."""
    write_record(tmp_path / "JS00001", "426177001")

    def read_header(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("clocs_plugins.chapman.headers.read_header", read_header)
    with pytest.raises(PermissionError):
        scan(tmp_path, clocs_datasets()[0].tasks[0], ChapmanOptions())
