"""BIDMC: compare what is read with the values that were written, in plain loops."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from clocs_core import DataNotFound

from clocs_plugin_ppg.bidmc import BIDMC, NUMERICS
from made_bidmc import RATE, SIGNALS, vital_signs, waveforms, write_bidmc, write_wfdb

BREATHING, SEX = BIDMC.tasks
OPTIONS = BIDMC.options()


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Two recordings that a test may spoil."""
    return write_bidmc(tmp_path / "files", recordings=2, seconds=12)


def scan(root: Path, task=BREATHING):
    return BIDMC.scan(root, task, OPTIONS)


def channel(record, name: str) -> np.ndarray:
    return record.samples[record.channels.index(name)]


def test_waves_and_vital_signs_stand_side_by_side_at_the_rate_of_the_waves(made_bidmc: Path):
    """Names have commas in the files, gains differ, and RESP is two things there."""
    entry = scan(made_bidmc).entries[3]
    record = BIDMC.load(entry, OPTIONS)
    assert (record.record, record.patient, record.sampling_rate) == ("bidmc04", "bidmc04", 125.0)
    for (name, _, gain), expected in zip(SIGNALS, waveforms(4, 60), strict=True):
        assert np.abs(channel(record, name.rstrip(",")) - expected).max() <= 0.5 / gain + 1e-12
    for name, expected in zip(NUMERICS, vital_signs(4, 60), strict=True):
        for sample, value in enumerate(channel(record, name)):
            assert value == pytest.approx(expected[sample // RATE])


def test_every_sample_has_the_class_of_the_breaths_of_its_second(made_bidmc: Path):
    """12 and 20 breaths a minute are normal; a mistake would show at these borders."""
    entry = scan(made_bidmc).entries[0]
    breaths = vital_signs(1, 60)[2]
    for sample in range(RATE * 60 + 1):
        rate = breaths[sample // RATE]
        expected = 0 if rate < 12 else 2 if rate > 20 else 1
        (found,) = [one.label for one in entry.label if one.onset <= sample <= one.offset]
        assert found == expected
    assert len(entry.label) == 3


def test_sex_is_read_from_the_comment(made_bidmc: Path):
    assert [entry.label for entry in scan(made_bidmc, SEX).entries] == [1, 0] * 5


@pytest.mark.parametrize(
    ("comment", "label"),
    [("<age>: 60 <sex>: M", 1), ("Gender: female", 0), ("<age>: 60 <sex>: ?", None), ("", None), ("<sex>: F", 0)],
)
def test_sex_is_told_where_a_comment_tells_it(own: Path, comment: str, label: int | None):
    """A guess could be a wrong label, which is worse than none."""
    write_wfdb(own / "bidmc01", RATE, waveforms(1, 12), list(SIGNALS), comment)
    listing = scan(own, SEX)
    assert listing.entries[0].label == label
    assert bool(listing.notes) == (label is None)


def test_a_lead_that_a_recording_does_not_have_is_missing_from_end_to_end(own: Path):
    """V and AVR are not in all recordings, but every record must have the same channels."""
    kept = [0, 1, 4]
    rows = [waveforms(1, 12)[at] for at in kept]
    write_wfdb(own / "bidmc01", RATE, rows, [SIGNALS[at] for at in kept], "")
    record = BIDMC.load(scan(own).entries[0], OPTIONS)
    assert record.channels == BIDMC.channels
    assert np.isnan(channel(record, "V")).all()
    assert np.isfinite(channel(record, "II")).all()


def test_seconds_without_a_vital_sign_are_missing_and_have_no_label(own: Path):
    """A monitor shows nothing, or zero, while an electrode is off."""
    values = vital_signs(1, 12)
    values[2][3], values[2][7], values[3][5] = np.nan, 0.0, np.nan
    about = [("HR,", "bpm", 1), ("PULSE,", "bpm", 1), ("RESP,", "pm", 10), ("SpO2,", "%", 1)]
    write_wfdb(own / "bidmc01n", 1, values, about, "")
    entry = scan(own).entries[0]
    record = BIDMC.load(entry, OPTIONS)
    for name, lost in (("RR", {3, 7}), ("SpO2", {5}), ("HR", set())):
        gone = np.isnan(channel(record, name))
        assert {int(at) // RATE for at in np.flatnonzero(gone)} == lost
    for second in range(12):
        holding = [one for one in entry.label if one.onset <= second * RATE <= one.offset]
        assert len(holding) == (second not in {3, 7})


def test_numerics_that_are_not_there_or_end_early_leave_the_waves_as_they_are(own: Path):
    """A download by RECORDS has only the waveforms."""
    (own / "bidmc01n.hea").unlink()
    write_wfdb(own / "bidmc02n", 1, [row[:5] for row in vital_signs(2, 12)], [("HR", "bpm", 1)] * 4, "")
    first, second = scan(own, SEX).entries
    bare, short = BIDMC.load(first, OPTIONS), BIDMC.load(second, OPTIONS)
    assert scan(own).entries[0].label is None
    assert np.isnan(channel(bare, "HR")).all()
    assert np.isfinite(channel(bare, "PLETH")).all()
    assert np.flatnonzero(np.isnan(channel(short, "HR")))[0] == 5 * RATE


def test_recordings_that_cannot_serve_are_dropped_with_a_reason(own: Path):
    (own / "bidmc01.dat").unlink()
    write_wfdb(own / "bidmc03", RATE, waveforms(1, 12)[:2], list(SIGNALS[:2]), "")
    (own / "bidmc04.hea").write_text("?")
    shutil.copy(own / "bidmc02.dat", own / "bidmc04.dat")
    listing = scan(own)
    assert [(drop.record, drop.reason) for drop in listing.drops] == [
        ("bidmc01", "missing file"),
        ("bidmc03", "no II"),
        ("bidmc04", "damaged header"),
    ]
    assert [entry.record for entry in listing.entries] == ["bidmc02"]


def test_a_folder_without_recordings_says_what_to_do(tmp_path: Path):
    with pytest.raises(DataNotFound, match=r"bidmc01\.hea"):
        scan(tmp_path)


def test_the_numerics_are_downloaded_beside_the_waveforms():
    """RECORDS names only the waveforms, so their endings must cover the numerics too."""
    (source,) = BIDMC.sources
    assert {f"bidmc01{ending}" for ending in source.endings} >= {"bidmc01.hea", "bidmc01n.hea", "bidmc01n.dat"}


@pytest.mark.parametrize("rate", ["1e-300", "0.001", "1e300"])
def test_numerics_with_an_absurd_rate_give_no_label_and_end_no_scan(own: Path, rate: str):
    header = own / "bidmc01n.hea"
    words = header.read_text().split(" ", 3)
    header.write_text(" ".join([*words[:2], rate, words[3]]))
    assert scan(own).entries[0].label is None
